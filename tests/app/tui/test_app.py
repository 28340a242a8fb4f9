"""The TUI on the embedded site: real runs, driven by keys, judged by what is on the screen."""

import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import pytest
from textual.binding import Binding
from textual.pilot import Pilot
from textual.widgets import Button, Input, Static

from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.app.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.screens.confirm import Confirm
from lumitui.app.tui.screens.new import NewScreen
from lumitui.app.tui.screens.notices import ErrorDialog, HelpDialog
from lumitui.app.tui.screens.resubmit import ResubmitDialog
from lumitui.app.tui.screens.run import RunScreen
from lumitui.app.tui.screens.runs import RunsScreen
from lumitui.app.tui.screens.sending import SendingDialog
from lumitui.app.tui.widgets.log_view import LogView
from lumitui.app.tui.widgets.run_table import RunTable
from lumitui.remote.scheduler.protocol import State
from tests.support.driven_tui import (
    JOB,
    app_of,
    cut_off,
    ended,
    runs_of,
    sees,
    shown,
    submit,
    until,
)

# -- what is on the screen


async def test_without_runs_the_screen_says_what_to_do(settings: Settings) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        await sees(pilot, "Press n to make one from a job file")
        assert not (await looked(pilot)), "nothing is asked without unfinished runs"
        await pilot.press("n")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewScreen), "the screen New")


async def looked(pilot: Pilot[int]) -> int:
    await pilot.pause(0.3)
    return app_of(pilot).schedule.requests


async def test_a_job_file_becomes_a_run_that_is_watched_to_its_end(
    settings: Settings, project: Path
) -> None:
    async with LumiApp(settings).run_test(size=(100, 30)) as pilot:
        run = await submit(pilot)
        await pilot.press("l")
        view = pilot.app.screen.query_one(LogView)
        await until(pilot, lambda: "the last line" in " ".join(view.lines), "the log's end")
        done = await ended(pilot, run.id)
        assert done.state is State.DONE
        log = "\n".join(view.lines)
        assert "[rank0]: Traceback (most recent call last)" in log
        assert "a closing [/] and an opening [red] tag" in log
        assert "title ^[]0;owned^G and colour" in log
        assert "100% of the bar" in log and "50%" not in log
        assert "[/b] x" in log
        await sees(pilot, r"\[rank0\]: Traceback")
        await until(pilot, lambda: "ended: done" in shown(pilot), "the log's last word")
        await pilot.press("i")
        await until(pilot, lambda: run.job_id and run.job_id in shown(pilot), "the job id")
        await pilot.press("1")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen), "the first screen")
        await until(pilot, lambda: "done" in shown(pilot), "its state in the table")
        footprint = app_of(pilot).schedule.requests
        assert footprint > 0
        await sees(pilot, f"{footprint} request")


async def test_plus_shows_one_node_becoming_two_and_sends_a_run_with_a_parent(
    settings: Settings, project: Path
) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        run = await submit(pilot)
        await ended(pilot, run.id)
        await pilot.press("1", "+")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResubmitDialog), "the dialog")
        await sees(pilot, "nodes +1 +2")
        await sees(pilot, "ranks +2 +4")
        assert not cut_off(pilot)
        button = pilot.app.screen.query_one("#yes", Button)
        await until(pilot, lambda: not button.disabled, "a plan that can be sent")
        await pilot.press("enter", "enter")
        await until(pilot, lambda: len(runs_of(pilot)) == 2, "a second run")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "its screen")
        child = runs_of(pilot)[0]
        assert child.parent == run.id
        assert (child.layout.nodes, child.layout.world_size) == (2, 4)
        assert child.snapshot == run.snapshot, "the same code"
        assert (await ended(pilot, child.id)).state is State.DONE


async def test_the_dialog_follows_its_fields(settings: Settings, project: Path) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        run = await submit(pilot)
        await ended(pilot, run.id)
        await pilot.press("R")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResubmitDialog), "the dialog")
        nodes = pilot.app.screen.query_one("#nodes", Input)
        assert nodes.value == "1"
        nodes.value = "3"
        await sees(pilot, "nodes +1 +3")
        nodes.value = "99"
        await until(pilot, lambda: "99 nodes are more than" in shown(pilot), "what is wrong")
        assert pilot.app.screen.query_one("#yes", Button).disabled
        nodes.value = "1"
        await pilot.click("#start")
        await until(pilot, lambda: "does not say how the script continues" in shown(pilot), "no")
        await pilot.press("escape")
        assert len(runs_of(pilot)) == 1


async def test_why_is_told_of_a_failed_run(settings: Settings, project: Path) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        run = await submit(pilot, "fail.yaml")
        assert (await ended(pilot, run.id)).state is State.FAILED
        await pilot.press("d")
        await sees(pilot, r"No module named 'nowhere\[/\]'")
        await sees(pilot, "exit +code 1")
        await pilot.press("1", "d")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the run")
        await sees(pilot, r"No module named 'nowhere\[/\]'")


async def test_a_pane_that_a_key_opens_from_the_table_is_filled(
    settings: Settings, project: Path
) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        run = await submit(pilot)
        await ended(pilot, run.id)
        for key, words in (("l", "the last line"), ("m", "No metrics yet"), ("p", "not measured")):
            await pilot.press("1", key)
            await sees(pilot, words)


async def test_the_script_is_shown_as_it_was_sent(settings: Settings, project: Path) -> None:
    async with LumiApp(settings).run_test(size=(120, 60)) as pilot:
        run = await submit(pilot)
        await pilot.press("b")
        await sees(pilot, "#!/bin/bash -l")
        text = pilot.app.screen.query_one("#script #text", Static).content
        assert str(text).rstrip() == run_script(pilot, run).rstrip()
        await pilot.press("p")
        await sees(pilot, "not measured|pending")
        await pilot.press("m")
        await sees(pilot, "No metrics yet")


def run_script(pilot: Pilot[int], run: Run) -> str:
    return app_of(pilot).runs.history.get(run.id).script


async def test_cancel_asks_and_no_is_the_default(settings: Settings, project: Path) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        run = await submit(pilot, "long.yaml")
        history = app_of(pilot).runs.history
        await until(pilot, lambda: history.get(run.id).state is State.RUNNING, "running")
        await pilot.press("c")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm), "the question")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "back")
        assert history.get(run.id).state is State.RUNNING
        await pilot.press("c")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm), "the question")
        await pilot.press("y")
        assert (await ended(pilot, run.id)).state is State.CANCELLED
        await pilot.press("c")
        await until(pilot, lambda: isinstance(pilot.app.screen, ErrorDialog), "an error")
        await sees(pilot, "has ended: cancelled")


async def test_leaving_is_quick_while_a_log_is_followed(settings: Settings, project: Path) -> None:
    app = LumiApp(settings)
    async with app.run_test(size=(80, 24)) as pilot:
        run = await submit(pilot, "long.yaml")
        await pilot.press("l")
        view = pilot.app.screen.query_one(LogView)
        await until(pilot, lambda: "waiting" in " ".join(view.lines), "the log")
        following = [worker for worker in app.workers if worker.group == "follow"]
        assert following and following[0].is_running
        await pilot.press("q")
        left = time.monotonic()
    try:
        assert app.return_code == 0
        while any(busy(thread) for thread in threading.enumerate()):
            assert time.monotonic() - left < 5, "a worker kept the program alive"
            time.sleep(0.05)
    finally:
        again = Runs(settings)
        again.cancel(run.id)
        again.close()


async def test_leaving_while_a_screen_opens_is_no_error(settings: Settings, project: Path) -> None:
    app = LumiApp(settings)
    async with app.run_test(size=(80, 24)) as pilot:
        run = await submit(pilot)
        await ended(pilot, run.id)
        app.push_screen(NewScreen(app.runs))
        app.push_screen(RunScreen(app.runs, run.id))
        app.push_screen(ResubmitDialog(run, 2))
        app.exit(0)
    assert app.return_code == 0


async def test_leaving_waits_for_a_send(
    settings: Settings, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = LumiApp(settings)
    released, real = threading.Event(), app.runs.send

    def slow(*args: Any, **kwargs: Any) -> Run:
        assert released.wait(60)
        return real(*args, **kwargs)

    monkeypatch.setattr(app.runs, "send", slow)
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(NewScreen(app.runs, project / "job.yaml"))
        await sees(pilot, "asks for")
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, SendingDialog), "the send")
        await pilot.press("ctrl+q")
        await sees(pilot, "Quit when that is done")
        await pilot.press("y")
        assert app.is_running and app.mutations == 1
        released.set()
        await until(pilot, lambda: not app.is_running, "the end")
    assert app.return_code == 0
    again = Runs(settings)
    (run,) = again.history.page()
    assert run.job_id, "it was sent before the program ended"
    again.close()


def busy(thread: threading.Thread) -> bool:
    """Whether a thread is still reading the log."""
    stack = traceback.walk_stack(sys._current_frames().get(thread.ident or 0))
    return any(frame.f_code.co_filename.endswith("follow_log.py") for frame, _ in stack)


async def test_a_bad_job_file_is_an_error_dialog_and_nothing_else(
    settings: Settings, project: Path
) -> None:
    bad = project / "bad.yaml"
    bad.write_text(JOB.format(launcher="srun", args="") + "nods: 2\nstrategy: [/]\n")
    async with LumiApp(settings, bad).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, ErrorDialog), "the error")
        await sees(pilot, "nods")
        await sees(pilot, "nodes")
        assert not cut_off(pilot)
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, NewScreen)
        assert pilot.app.screen.query(".action").first(Button).disabled
        await pilot.press("escape")
        assert isinstance(pilot.app.screen, RunsScreen)
        assert runs_of(pilot) == []


async def test_a_job_given_on_the_command_line_is_open(settings: Settings, project: Path) -> None:
    async with LumiApp(settings, project / "job.yaml").run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "1 node, 2 ranks, 2 GPUs" in shown(pilot), "its preview")
        await sees(pilot, "billed +nothing")


async def test_the_cursor_and_the_scroll_stay_with_the_run(
    settings: Settings, project: Path
) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        run = await submit(pilot)
        done = await ended(pilot, run.id)
        history = app_of(pilot).runs.history
        for number in range(40):
            history.begin(copied(done, number, done.created - number - 1))
        await pilot.press("1")
        table = pilot.app.screen.query_one(RunTable)
        await until(pilot, lambda: table.row_count == 41, "all rows")
        await pilot.press(*["j"] * 25)
        chosen, top = table.selected, table.scroll_offset.y
        assert top > 0
        history.begin(copied(done, 99, done.created + 5))
        await until(pilot, lambda: table.row_count == 42, "the new row")
        await pilot.pause(0.3)
        assert table.selected == chosen
        assert table.scroll_offset.y == top
        await pilot.press("G")
        assert table.selected == "copy-000039"
        await pilot.press("g")
        assert table.selected == "copy-000099"


def copied(run: Run, number: int, created: float) -> Run:
    from dataclasses import replace

    return replace(run, id=f"copy-{number:06d}", created=created, job_id=str(1000 + number))


async def test_a_page_is_fifty_runs_and_more_on_demand(settings: Settings, project: Path) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        run = await submit(pilot)
        done = await ended(pilot, run.id)
        for number in range(60):
            app_of(pilot).runs.history.begin(copied(done, number, done.created - number - 1))
        await pilot.press("1")
        table = pilot.app.screen.query_one(RunTable)
        await until(pilot, lambda: table.row_count == 50, "a page")
        await sees(pilot, "o for older")
        await pilot.press("o")
        await until(pilot, lambda: table.row_count == 61, "the rest")
        await pilot.press("/", *"1007")
        await until(pilot, lambda: table.row_count == 1, "the run with that job id")
        assert table.selected == "copy-000007"
        await pilot.press("escape")
        await until(pilot, lambda: table.row_count == 61, "all again")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_no_button_is_cut_off(
    settings: Settings, project: Path, size: tuple[int, int]
) -> None:
    async with LumiApp(settings).run_test(size=size) as pilot:
        assert not cut_off(pilot)
        run = await submit(pilot, "long.yaml")
        assert not cut_off(pilot)
        for key in ("c", "+", "?"):
            await pilot.press(key)
            await until(pilot, lambda: pilot.app.screen.is_modal, "a dialog")
            assert not cut_off(pilot)
            await pilot.press("escape")
        await pilot.press("2")
        assert not cut_off(pilot)
        app_of(pilot).runs.cancel(run.id)


async def test_help_is_built_from_the_bindings(settings: Settings) -> None:
    async with LumiApp(settings).run_test(size=(80, 48)) as pilot:
        await pilot.press("?")
        await until(pilot, lambda: isinstance(pilot.app.screen, HelpDialog), "the help")
        await sees(pilot, r"\+ =? *Send it again on twice the nodes")
        await sees(pilot, r"/ +Show only runs with a text")


async def test_every_binding_has_an_id_and_a_tooltip(settings: Settings, project: Path) -> None:
    async with LumiApp(settings).run_test() as pilot:
        run = await submit(pilot)
        for keys in ("1", "2", "1 enter", "1 c", "1 +", "1 ?"):
            await pilot.press("escape", *keys.split())
            for active in pilot.app.screen.active_bindings.values():
                if type(active.node).__module__.startswith("lumitui."):
                    binding = active.binding
                    ours = binding.id or binding.key in TEXTUALS
                    assert ours, f"{binding.key} of {active.node} has no id"
                    assert active.tooltip or not binding.id, f"{binding.id} has no tooltip"
        assert run.id


TEXTUALS = {
    "ctrl+q", "ctrl+c", "super+c", "tab", "shift+tab", "up", "down", "left", "right", "home",
    "end", "pageup", "pagedown", "ctrl+pageup", "ctrl+pagedown", "ctrl+home", "ctrl+end",
    *(key for item in Input.BINDINGS if isinstance(item, Binding) for key in item.key.split(",")),
}  # fmt: skip


async def test_a_mouse_is_enough(settings: Settings, project: Path) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        run = await submit(pilot)
        await ended(pilot, run.id)
        (button,) = [b for b in pilot.app.screen.query(Button) if str(b.label) == "Resubmit x2"]
        await pilot.click(button)
        await until(pilot, lambda: isinstance(pilot.app.screen, ResubmitDialog), "the dialog")
        await sees(pilot, "nodes +1 +2")
        close = pilot.app.screen.query_one("#no").region
        pilot.app.screen.query_one("#nodes", Input).value = "1"
        await sees(pilot, "Send on 1 node ")
        assert pilot.app.screen.query_one("#no").region == close, "a click on it must not send"
        await pilot.click("#no")
        assert len(runs_of(pilot)) == 1
