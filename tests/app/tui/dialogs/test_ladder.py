"""Several sizes sent at once: marked, confirmed once, and told one by one."""

from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Button, Input

from lumitui.app.history.run import Run
from lumitui.app.job.settings import Settings
from lumitui.app.scale.resubmission import Resubmission
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.confirm_dialog import Confirm
from lumitui.app.tui.dialogs.notice_dialogs import ErrorDialog
from lumitui.app.tui.dialogs.resubmit_dialog import ResubmitDialog
from lumitui.app.tui.screens.runs_screen import RunsScreen
from lumitui.app.tui.widgets.tables.size_ladder import SizeLadder
from lumitui.remote.site.errors import LinkError, RefusedError
from tests.support.jobs.trained_runs import train
from tests.support.program.driven_tui import cut_off, ended, runs_of, sees, sent, shown, until


async def test_two_marked_sizes_are_sent_after_one_yes(settings: Settings, project: Path) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        first = await sent(pilot)
        await sees(pilot, first.id)
        await pilot.press("+")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResubmitDialog), "the dialog")
        await sees(pilot, r"▶ +2 +4 +- +- +nothing")
        await sees(pilot, "↑↓ choose a size, space marks several")
        await pilot.press("?")  # in the field, where the dialog begins
        await sees(pilot, "Send the code of this run")
        await pilot.press("escape", "down")
        assert isinstance(pilot.app.screen.focused, SizeLadder), "as the frame says"
        await pilot.press("up")
        await sees(pilot, r"(?s)nodes 1 .*▶ +1 .*\[ \] +2 .*Send on 1 node ")
        await pilot.press("down", "space")
        await sees(pilot, r"(?s)\[ \] +1 .*\[x\] +2 ")  # not as it was before space
        await pilot.press("g")
        await sees(pilot, r"(?s)shown 1 .*\[ \] +1 .*\[x\] +2 .*Send on 2 nodes")
        await pilot.press("space")
        await sees(pilot, "Send on 1, 2 nodes")
        assert not cut_off(pilot)
        await pilot.press("enter", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm), "the question")
        assert pilot.app.screen.focused is pilot.app.screen.query_one("#no")
        await sees(pilot, f"Send {first.id} again as 2 runs with the code that ran[?]")
        await pilot.press("y")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen), "the runs")
        both = [run for run in runs_of(pilot) if run.parent == first.id]
        assert sorted(run.layout.nodes for run in both) == [1, 2]
        assert {run.snapshot for run in both} == {first.snapshot}, "the same code"
        for run in both:
            assert (await ended(pilot, run.id)).job_id


@pytest.mark.slow
async def test_what_fails_keeps_no_other_size_back_and_all_is_told(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = LumiApp(settings)
    run = train(app.runs.history, {1: 1000.0, 2: 1940.0})[0]
    app.runs.history.update(run.id, snapshot="0123456789abcdef")
    tried: list[int] = []

    def send(preview: Any, **rest: Any) -> Run:
        nodes = preview.launch.layout.nodes
        tried.append(nodes)
        if nodes == 2:
            raise RefusedError("The queue is full.", "Wait.")
        if nodes == 8:
            raise LinkError("lumi cannot be reached.", "Look at the network.")
        return app.runs.history.get(run.id)

    monkeypatch.setattr(app.runs, "send", send)
    async with app.run_test(size=(80, 34)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, RunsScreen), "the runs")
        first = app.screen
        assert isinstance(first, RunsScreen)
        first.choose(run.id)
        await pilot.press("+")
        await until(pilot, lambda: isinstance(app.screen, ResubmitDialog), "the dialog")
        await sees(pilot, r"\[ \] +16 +128 +\S+ +12-99 +\S+ +predicted")
        await sees(
            pilot, "Each step trains on 512 samples instead of 256; the learning rate changes"
        )
        await pilot.press("down", "a")
        await sees(pilot, "Send on 1, 2, 4, 8, 16 nodes")
        await pilot.press("j")  # the plan of another size; the button stays
        await sees(pilot, "nodes +1 +4")
        await sees(pilot, "5 sizes marked, billed at most 124 GPU-hours, about 3.30 in all")
        await sees(pilot, "Send on 1, 2, 4, 8, 16 nodes")
        await pilot.press("enter", "enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        await sees(pilot, r"1 node +at most \S+, billed at most 4 GPU-hours, about 0.11")
        await sees(pilot, r"16 nodes +at most \S+, billed at most 64 GPU-hours, about 1\.69")
        await sees(pilot, r"in all +billed at most 124 GPU-hours, about 3.30")
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog), "what was not sent")
        await sees(pilot, f"1 node: sent, {run.id} is job 81")
        await sees(pilot, "2 nodes: not sent. The queue is full")
        await sees(pilot, "4 nodes: sent")
        await sees(pilot, "8 nodes: not sent. lumi cannot be reached")
        await sees(pilot, "16 nodes: not sent. lumitui did not try it")
        assert tried == [1, 2, 4, 8]
        assert app.runs.series.unsent(), "a ladder that failed is offered again"
        assert not app.under_way


async def test_a_refused_size_is_neither_marked_nor_sent(settings: Settings) -> None:
    app = LumiApp(settings)
    run = train(app.runs.history, {1: 1000.0})[0]
    app.runs.history.update(run.id, snapshot="0123456789abcdef")
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(ResubmitDialog(app.runs.history.get(run.id), 5000))
        await sees(pilot, r"\[ \] +5,000 .* refused")
        await sees(pilot, "from scratch ▸ +◂ same code ▸")
        button = app.screen.query_one("#yes", Button)
        assert button.disabled and str(button.label) == "Send ^s"
        await pilot.press("down", "G", "space")
        assert app.screen.query_one(SizeLadder).marked == {16}
        await sees(pilot, "Send on 16 nodes")
        await pilot.press("space", "a")
        await sees(pilot, "Send on 1, 2, 4, 8, 16 nodes")
        await pilot.resize_terminal(40, 10)
        await sees(pilot, r"\[x\]")
        assert str(button.label) in ("Send on 1, 2, 4, 8, 16 nodes ^s",) and button.is_on_screen
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen), "nothing sent")
        assert len(runs_of(pilot)) == 1


async def test_errors_of_the_check_are_asked_about_and_a_no_leads_back(settings: Settings) -> None:
    app, sent = LumiApp(settings), list[tuple[Resubmission, ...] | None]()
    run = train(app.runs.history, {1: 1000.0})[0]
    app.runs.history.update(run.id, snapshot="0123456789abcdef")
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(ResubmitDialog(run, 2, ("time=5-00:00:00",)), sent.append)
        await sees(pilot, "Send on 2 nodes")
        await pilot.press("enter", "enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        await sees(pilot, f"Send {run.id} again with the code that ran, despite 1 error")
        await sees(pilot, "error +5-00:00:00 is longer than")
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, ResubmitDialog), "the dialog again")
        assert sent == []
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        await pilot.press("y")
        await until(pilot, lambda: bool(sent), "what is sent")
        assert sent[0] is not None
        (plan,) = sent[0]
        assert plan.preview.errors and not plan.preview.blocking, "forced"


async def test_a_second_ladder_is_refused_with_the_key_that_sends_the_first(
    settings: Settings,
) -> None:
    app = LumiApp(settings)
    run = train(app.runs.history, {1: 1000.0})[0]
    app.runs.history.update(run.id, snapshot="0123456789abcdef")
    plans = [app.runs.plan_resubmission(run.id, nodes=nodes) for nodes in (2, 4)]
    app.runs.series.begin_again(plans)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, run.id)
        app.sends.confirm_ladder(tuple(plans), None)
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog), "the refusal")
        await sees(pilot, "Press U to send the rest")
        assert "lumitui resubmit" not in shown(pilot)


async def test_time_and_price_are_those_of_the_job_that_is_sent(settings: Settings) -> None:
    app = LumiApp(settings)
    run = train(app.runs.history, {1: 1000.0, 2: 1940.0})[0]
    app.runs.history.update(run.id, snapshot="0123456789abcdef")
    async with app.run_test(size=(100, 34)) as pilot:
        app.push_screen(ResubmitDialog(app.runs.history.get(run.id), 1))
        await sees(pilot, "1 +8 +1m40 +100 +0.11 +measured")
        await sees(pilot, "Send on 1 node")
        await pilot.press("ctrl+s")
        await sees(pilot, "about 0.11 in 1 min 40 s if")
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, ResubmitDialog), "the dialog again")
        app.screen.query_one("#args", Input).value += " --hidden 9"
        await sees(pilot, "Time and price are unknown, because this resubmission changes `args`")
        await sees(pilot, "1 +8 +- +100 +at most 4")
