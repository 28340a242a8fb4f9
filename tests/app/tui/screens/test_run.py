"""The screen of a run: real runs on the embedded site, watched and explained pane by pane."""

import re
import time
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from textual.widget import AwaitMount, Widget
from textual.widgets import Input, Tabs
from textual.widgets._toast import Toast

from lumitui.app.history.history import History
from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.resubmit_dialog import ResubmitDialog
from lumitui.app.tui.panes.overview_pane import page
from lumitui.app.tui.screens.new_screen import NewScreen
from lumitui.app.tui.screens.run_screen import RunScreen
from lumitui.app.tui.screens.runs_screen import RunsScreen
from lumitui.app.tui.widgets.log.log_view import LogView
from lumitui.app.tui.widgets.script_view import HangingText
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.walltime import seconds_of, text_of
from tests.support.gallery.histories import typical
from tests.support.gallery.tour import still
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import (
    app_of,
    ended,
    kept,
    keys_below,
    screen_lines,
    sees,
    sent,
    shown,
    submit,
    until,
)


def typical_app(settings: Settings, folder: Path) -> tuple[LumiApp, str]:
    """Return an app with a typical history that polls no site, and the id of a run in it."""
    history = History(settings.history)
    run_id = typical(history, folder)
    history.close()
    return still(settings), run_id


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
        await sees(pilot, r"next +Fetch its results \(E\), or resubmit .* nodes \(\+\)\.")
        await until(pilot, lambda: "E Fetch" in keys_below(pilot), "the key of the next step")
        await pilot.press("E")
        await sees(pilot, f"Fetch the results of {run.id}")
        await pilot.press("escape")
        await pilot.press("b")
        await sees(pilot, "#!/bin/bash -l")
        text = app_of(pilot).screen.query_one("#script #text", HangingText)
        assert text._text.plain.rstrip() == done.script.rstrip(), "as it was sent"
        await pilot.press("a")
        await sees(pilot, "======== job.sh ========")
        assert done.machinery and done.machinery in text._text.plain
        assert done.probe and done.probe.rstrip() in text._text.plain
        await pilot.press("1")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunsScreen), "the first screen")
        await until(pilot, lambda: "done" in shown(pilot), "its state in the table")
        footprint = app_of(pilot).schedule.requests
        assert footprint > 0
        await sees(pilot, f"{footprint} request")
        # A pane that a key opens from the table is filled.
        for key, words in (("l", "the last line"), ("m", "No metrics yet"), ("p", "not measured")):
            await pilot.press("1", key)
            await sees(pilot, words)


async def test_why_a_run_failed_is_shown(settings: Settings, project: Path) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        run = await sent(pilot, "fail.yaml")
        await sees(pilot, run.id)
        assert (await ended(pilot, run.id)).state is State.FAILED
        # Without a key: its log was read once when it ended.
        await sees(pilot, r"failed +hello-\w+ +\S+ +\S+ .*rank \d hello\.py:\d+: ")
        await pilot.press("d")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the run")
        await sees(pilot, r"No module named 'nowhere\[/\]'")
        await sees(pilot, r"hello\.py *│\n│ +\d+ .*\n.*\n│ *> +\d+ +raise ModuleNotFoundError")
        await pilot.press("G")
        await sees(pilot, "exit +code 1")


async def test_one_key_opens_the_resubmission_that_helps(settings: Settings) -> None:
    app = LumiApp(settings)
    run = a_run("late-000001", state=State.TIMEOUT, word="TIMEOUT")
    app.runs.history.begin(run)
    doubled = text_of(2 * seconds_of(run.spec.time))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("enter", "h")
        await sees(pilot, "The job reached its time limit")
        await sees(pilot, f"h: Resubmit with {doubled}")
        await until(pilot, lambda: "h Do what helps" in keys_below(pilot), "the key of the remedy")
        assert not {"Why", "Cancel"} & set(keys_below(pilot).split())
        await pilot.press("?", "G")
        await sees(pilot, r"│ time-limit +│")
        await pilot.press("escape")
        await pilot.press("h")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResubmitDialog), "the dialog")
        assert pilot.app.screen.query_one("#time", Input).value == doubled


async def test_a_queued_run_shows_why_it_waits_and_one_that_is_done_what_it_cost(
    settings: Settings,
) -> None:
    app = LumiApp(settings)
    now = time.time()
    app.runs.history.begin(
        a_run(state=State.QUEUED, word="PENDING", reason="Resources", job_id="41",
              submitted=now - 130, expected_start=now + 630, expected_end=now + 4230)
    )  # fmt: skip
    app.runs.history.begin(
        a_run("done-000001", created=1.0, state=State.DONE, job_id="40", started=1000.0,
              ended=1225.0, rc=0)
    )  # fmt: skip
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await sees(pilot, r"waits for +it waits for free nodes and is next in line \(Resources\)")
        await sees(pilot, r"waiting for +2 min")
        await sees(pilot, r"expected start +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d, in 10 min")
        await sees(pilot, r"expected end +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d, in 1 h 10 min")
        assert not re.search(r"\n│ *(started|ended) ", shown(pilot))
        await pilot.press("d")
        await sees(pilot, r"It has not failed. Queued for 2 min \d+ s: it waits for free nodes")
        assert "cause was found" not in shown(pilot)
        await pilot.press("1", "j", "d")
        await sees(pilot, "It did not fail: it is done.")
        assert "cause was found" not in shown(pilot)
        await sees(pilot, r"billed +about 1 GPU-hour \(of at most 32\)")


async def test_a_wide_run_is_a_dashboard_and_a_narrow_one_has_tabs_with_their_keys(
    settings: Settings, tmp_path: Path
) -> None:
    app, run_id = typical_app(settings, tmp_path)
    async with app.run_test(size=(160, 40)) as pilot:
        app.open_run(run_id)
        await sees(pilot, r"Overview i  Log l  Metrics m  Proof p  Script b  .*  GPUs u")
        await sees(pilot, r"running +━+─+")
        panels = r"╮╭─ Metrics ─[\s\S]*loss last +━ 0.66[\s\S]*─ Log +● live [\s\S]*─ Proof ─"
        await sees(pilot, panels)
        await sees(pilot, r"proved 32/32 [\s\S]*proved +All 32 ranks.*\n.* 4 nodes, all as planned")
        await sees(pilot, "torch.OutOfMemoryError")
        await pilot.press("m")
        await until(pilot, lambda: "─ Proof ─" not in shown(pilot), "the metrics alone")
        await pilot.press("i")
        await sees(pilot, panels)
        await pilot.resize_terminal(159, 40)
        await until(pilot, lambda: "─ Proof ─" not in shown(pilot), "the overview alone")
        await pilot.resize_terminal(160, 40)
        await sees(pilot, panels)


def test_a_run_s_figures_are_bold_and_its_paperwork_is_dim() -> None:
    run = a_run("vit-000001", state=State.DONE, job_id="41", note="the baseline")
    told = [
        ("throughput", "6,266 samples/s (median step) on 64 ranks"),
        ("billed", "about 4.27 BU"),
    ]
    console = Console(width=100, file=StringIO(), color_system="truecolor")
    rows = [("job", "41, attempt 1"), ("note", "the baseline")]
    text = [
        (segment.text.strip(), str(segment.style))
        for segment in console.render(page(run, None, 0.0, 100, told, rows))
    ]
    for part in (("6,266 samples/s", "bold"), ("4.27", "bold"), ("41, attempt 1", "dim"),
                  ("the baseline", "None")):  # fmt: skip
        assert part in text


@pytest.mark.parametrize(("pane", "height", "at_end"), [
    ("overview", 24, True), ("overview", 40, True), ("log", 24, False), ("log", 40, False),
])  # fmt: skip
async def test_a_toast_covers_no_tab_no_title_no_key_and_not_the_end_of_a_log(
    settings: Settings, tmp_path: Path, pane: str, height: int, at_end: bool
) -> None:
    app, run_id = typical_app(settings, tmp_path)
    async with app.run_test(size=(80, height), notifications=True) as pilot:
        app.open_run(run_id, pane)
        app.notify("Copied 1 line.", timeout=60)
        await sees(pilot, "Copied 1 line.")
        await until(pilot, lambda: app.screen.query(f"#{pane}"), "the pane")
        frame, toast = app.screen.query_one(f"#{pane}"), app.screen.query_one(Toast)
        inside = frame.content_region.contains_region
        await until(pilot, lambda: inside(toast.region), "clear of the frame", 10)
        assert toast.region.width <= 55 and (toast.region.y > height // 2) is at_end


async def test_a_pane_that_is_asked_for_while_another_is_made_is_shown(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, run_id = typical_app(settings, tmp_path)
    async with app.run_test(size=(100, 30)) as pilot:
        app.push_screen(screen := RunScreen(app.runs, run_id))
        await sees(pilot, "running")
        panes = screen.query_one("#panes")
        mount = panes.mount

        def mounted(pane: Widget) -> AwaitMount:
            monkeypatch.undo()
            screen.action_pane("gpus")
            return mount(pane)

        monkeypatch.setattr(panes, "mount", mounted)
        screen.action_pane("proof")
        await until(pilot, lambda: screen._on_screen() == ["gpus"], "the later one")


async def test_the_bar_of_an_attempt_has_the_room_of_the_terminal(
    settings: Settings, project: Path
) -> None:
    app = LumiApp(settings)
    now = time.time()
    times = {"created": now - 900, "submitted": now - 890, "started": now - 480}
    run_id = kept(app, state=State.RUNNING, ended=None, rc=None, **times).id
    async with app.run_test(size=(120, 40)) as pilot:
        app.open_run(run_id, "timeline")
        await sees(pilot, "attempt 1")
        await pilot.pause()
        assert len(bar_of(app)) > 60
        await pilot.resize_terminal(50, 24)
        await until(pilot, lambda: 40 < len(bar_of(app)) <= 50, "a shorter bar")


async def test_new_opens_from_a_run_but_not_from_its_log(settings: Settings, project: Path) -> None:
    app = LumiApp(settings)
    run_id = kept(app).id
    async with app.run_test(size=(80, 24)) as pilot:
        app.open_run(run_id, "log")
        await until(pilot, lambda: bool(app.screen.query("LogPane:focus-within")), "the log")
        await pilot.press("n")
        assert isinstance(app.screen, RunScreen)
        await pilot.press("i", "n")
        await until(pilot, lambda: isinstance(app.screen, NewScreen), "New")


def bar_of(app: LumiApp) -> str:
    return next((line.rstrip() for line in screen_lines(app) if "attempt 1" in line), "")


async def test_the_age_of_an_end_goes_on_without_news(settings: Settings) -> None:
    app, now = LumiApp(settings), time.time()
    app.runs.history.begin(
        a_run(state=State.DONE, job_id="40", started=now - 60, ended=now - 20, rc=0)
    )
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("enter")
        await sees(pilot, r"ended \d+ s ago")
        first = re.search(r"ended \d+ s ago", shown(pilot))
        assert first is not None
        await until(pilot, lambda: first[0] not in shown(pilot), "a later age")
        await sees(pilot, "ended .* ago")


async def test_the_arrows_switch_the_tabs_and_their_keys_are_beside_them(
    settings: Settings, tmp_path: Path
) -> None:
    app, run_id = typical_app(settings, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        app.open_run(run_id)
        await sees(pilot, r"Overview  Log .* GPUs  \[ \] tabs")
        tabs = app.screen.query_one(Tabs)
        await pilot.press("shift+tab")
        assert tabs.has_focus
        await sees(pilot, "← → Tabs")
        await pilot.press("right", "right", "right")
        await until(pilot, lambda: tabs.active == "tab-proof", "three tabs on")
        await pilot.press("left")
        metrics = app.screen.query_one("#metrics")
        await until(pilot, lambda: tabs.active == "tab-metrics" and metrics.display, "one back")
        assert tabs.has_focus
        await pilot.press("down")
        await until(pilot, lambda: app.focused is metrics, "the pane")
        await pilot.press("]")
        assert tabs.active == "tab-proof" and not tabs.has_focus
