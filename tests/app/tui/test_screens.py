"""What a person reads around the panes: title bar, lines, table and footer, also when narrow."""

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Input
from textual.widgets._footer import FooterKey

from lumitui.app.history.run import Run
from lumitui.app.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.screens.confirm import Confirm
from lumitui.app.tui.screens.new import NewScreen
from lumitui.app.tui.screens.notices import ErrorDialog
from lumitui.app.tui.screens.run import RunScreen
from lumitui.app.tui.screens.sending import SendingDialog
from lumitui.app.tui.widgets.run_table import RunTable
from lumitui.remote.errors import LinkError
from lumitui.remote.scheduler.protocol import State
from tests.support.driven_tui import runs_of, sees, shown, submit, until
from tests.support.jobs.made_runs import SPEC, a_run

LONG = "n" * 32 + "-0a1b2c"
"""The longest id a run has."""


def screen_lines(app: App[int]) -> list[str]:
    """Return what the terminal shows, a text a row, cells that nothing was drawn on included."""
    strips = app.screen._compositor.render_strips(app.screen.size)
    return ["".join(segment.text for segment in line) for line in strips]


def keys_below(pilot: Pilot[int]) -> str:
    """Return the footer's words, as far as they can be read in full."""
    width = pilot.app.size.width
    keys = pilot.app.screen.query(FooterKey)
    return " ".join(
        f"{key.key_display} {key.description}" for key in keys if key.region.right <= width
    )


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Callable[[LumiApp], threading.Event]:
    """A way to hold every send of an app until the event is set."""

    def hold(app: LumiApp) -> threading.Event:
        released, real = threading.Event(), app.runs.send

        def slow(*args: Any, **kwargs: Any) -> Run:
            assert released.wait(60)
            return real(*args, **kwargs)

        monkeypatch.setattr(app.runs, "send", slow)
        return released

    return hold


async def test_a_hidden_send_is_seen_and_not_repeated_by_a_slip(
    settings: Settings, project: Path, held: Callable[[LumiApp], threading.Event]
) -> None:
    app = LumiApp(settings, project / "job.yaml")
    released = held(app)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "asks for")
        await pilot.press("s", "y")
        await until(pilot, lambda: isinstance(app.screen, SendingDialog), "the send")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, NewScreen), "the screen New")
        assert "sending hello" in screen_lines(app)[0]
        await pilot.press("s", "y")
        await sees(pilot, "hello is being sent already")
        assert app.mutations == 1
        assert isinstance(app.screen, Confirm) and app.screen.focused is not None
        assert app.screen.focused.id == "no"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, NewScreen), "the screen New again")
        await pilot.press("1")
        assert "sending hello" in screen_lines(app)[0]
        released.set()
        await until(pilot, lambda: not app.mutations, "the end of the send")
        await until(pilot, lambda: "sending hello" not in shown(pilot), "a bar without it")
        assert len(runs_of(pilot)) == 1
        # Once it is over, the next send is asked about as ever.
        await submit(pilot)
        assert len(runs_of(pilot)) == 2


async def test_two_sends_that_fail_are_two_errors_to_close(
    settings: Settings, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = LumiApp(settings, project / "job.yaml")
    first, second = threading.Event(), threading.Event()
    waiting = [first, second]

    def fail(*args: Any, **kwargs: Any) -> Run:
        assert waiting.pop(0).wait(60)
        raise LinkError("The connection was cut.", "Submit it again.")

    monkeypatch.setattr(app.runs, "send", fail)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "asks for")
        await pilot.press("s", "y")
        await until(pilot, lambda: isinstance(app.screen, SendingDialog), "the first send")
        await pilot.press("escape", "s")
        for words in ("1 node, 2 ranks", "twice"):
            await sees(pilot, words)
            await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, SendingDialog), "the second send")
        first.set()
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog), "an error above it")
        second.set()
        await until(pilot, lambda: not app.mutations, "the end of both")
        for _ in range(2):
            await until(pilot, lambda: isinstance(app.screen, ErrorDialog), "an error")
            await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, NewScreen), "the screen New")
        assert app.defect is None


@pytest.mark.parametrize("width", [80, 120])
async def test_a_long_name_leaves_the_bars_readable(settings: Settings, width: int) -> None:
    app = LumiApp(settings)
    app.runs.history.begin(a_run(LONG, name="n" * 100, state=State.DONE, job_id="41"))
    async with app.run_test(size=(width, 24)) as pilot:
        await sees(pilot, "1 Runs")
        app.schedule.began("somewhere")
        words = "somewhere: 127.0.0.1 did not answer on port 22 within fifteen seconds"
        app.schedule.ended("somewhere", 0.0, pause=1, requests=1, warnings=(words,))
        app.schedule.drop_warnings = lambda names: None  # type: ignore[method-assign]
        await pilot.pause(1.2)
        lines = screen_lines(app)
        stale = next(line for line in lines if "STALE" in line)
        assert "127.0.0.1 did not answer" in stale
        assert ("…" in stale) == (width == 80)
        chosen = next(line for line in lines if LONG in line and "2 nodes" in line)
        assert "2 nodes, 16 ranks, 16 GPUs" in chosen
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")
        await pilot.pause()
        bar = screen_lines(app)[0]
        assert "done" in bar and "0a1b2c" in bar and "somewhere gpu" in bar
        assert bar.rstrip().endswith("…") == (width == 80)


async def test_the_table_shows_its_last_column_beside_the_scroll_bar(settings: Settings) -> None:
    app = LumiApp(settings)
    for number in range(30):
        app.runs.history.begin(
            a_run(f"run-{number:06d}", created=float(number), state=State.DONE, started=1.0,
                  ended=36_000.0, rc=0, job_id="12345678")
        )  # fmt: skip
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.screen.query_one(RunTable).show_vertical_scrollbar, "a bar")
        await pilot.pause()
        lines = screen_lines(app)
        # Without the bar and the space beside it.
        assert lines[1][:78].rstrip().endswith("Time")
        assert lines[2][:78].rstrip().endswith("9h59/1h00")


async def test_the_header_counts_every_unfinished_run(settings: Settings) -> None:
    app = LumiApp(settings)
    history = app.runs.history
    # Sites that are asked at once would settle them.
    for number in range(55):
        state = State.QUEUED if number < 2 else State.DONE
        history.begin(a_run(f"run-{number:06d}", created=float(number), state=state, job_id="1"))
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "newest 50 runs, o for older, 2 unfinished in all")
        await pilot.press("slash", *"zzz")
        await sees(pilot, "0 runs with 'zzz', 2 unfinished in all")


async def test_why_a_run_failed_is_in_the_table(settings: Settings) -> None:
    app = LumiApp(settings)
    app.runs.history.begin(
        a_run(state=State.FAILED, rc=9, failed_rank=3, reason="NonZeroExitCode", job_id="41")
    )
    async with app.run_test(size=(160, 24)) as pilot:
        await sees(pilot, "failed .*rank 3, exit 9")
        assert "NonZeroExitCode" not in shown(pilot)


async def test_the_footer_shows_the_keys_that_work(settings: Settings, project: Path) -> None:
    app = LumiApp(settings)
    app.runs.history.begin(a_run(state=State.DONE, spec=SPEC, job_id="41"))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "+ Resubmit x2" in keys_below(pilot), "the keys of the runs")
        await pilot.press("slash")
        await until(pilot, lambda: "esc All runs" in keys_below(pilot), "the filter's keys")
        assert "To the runs" in keys_below(pilot)
        assert not {"+", "/", "n", "q", "?"} & set(keys_below(pilot).split())
        await pilot.press("plus")
        assert app.screen.query_one("#filter", Input).value == "+"
        await pilot.press("escape")
        app.push_screen(NewScreen(app.runs, project / "job.yaml"))
        await until(pilot, lambda: "s Submit" in keys_below(pilot), "the keys of New")
        await sees(pilot, "asks for")
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        await until(pilot, lambda: "y Yes" in keys_below(pilot), "the question's keys")
        bottom = screen_lines(app)[-1]
        assert "y Yes" in bottom and "n No" in bottom
        assert not {"s", "r", "q", "?"} & set(bottom.split())


async def test_a_queued_run_tells_why_it_waits_and_when_it_would_start(settings: Settings) -> None:
    app = LumiApp(settings)
    now = time.time()
    app.runs.history.begin(
        a_run(state=State.QUEUED, word="PENDING", reason="Resources", job_id="41",
              submitted=now - 130, expected_start=now + 630, expected_end=now + 4230)
    )  # fmt: skip
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await sees(pilot, r"waits for +it waits for free nodes, and is next in line \(Resources\)")
        await sees(pilot, r"waiting for +2 min")
        await sees(pilot, r"would start +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d, in 10 min")
        await sees(pilot, r"would end +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d, in 1 h 10 min")
        assert not re.search(r"\n *(started|ended) ", shown(pilot))
        await pilot.press("d")
        await sees(pilot, "It has not failed. Queued for 2 min: it waits for free nodes")
        assert "cause was found" not in shown(pilot)


async def test_a_run_that_is_done_did_not_fail_and_says_what_it_cost(settings: Settings) -> None:
    app = LumiApp(settings)
    app.runs.history.begin(a_run(state=State.DONE, job_id="41", started=1000.0, ended=1225.0, rc=0))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("d")
        await sees(pilot, "It did not fail: it is done.")
        assert "cause was found" not in shown(pilot)
        await sees(pilot, r"billed +about 1 GPU-hours \(of at most 32\)")


async def test_help_and_quit_are_in_a_narrow_footer(settings: Settings) -> None:
    app = LumiApp(settings)
    app.runs.history.begin(a_run(state=State.DONE, job_id="41"))
    async with app.run_test(size=(60, 24)) as pilot:
        await until(pilot, lambda: "? Help" in screen_lines(app)[-1], "help")
        assert "q Quit" in screen_lines(app)[-1]
        await pilot.press("q")
        await until(pilot, lambda: not app.is_running, "the end")
