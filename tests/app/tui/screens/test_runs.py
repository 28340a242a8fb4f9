"""The first screen: what it says without runs, its columns, bars, pages, filter and cursor."""

from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.history.run import Run
from lumitui.app.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.screens.new import NewScreen
from lumitui.app.tui.screens.run import RunScreen
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.tables.run_table import RunTable
from lumitui.app.watch.sites.schedule import Ending
from lumitui.remote.scheduler.protocol import State
from tests.support.driven_tui import (
    app_of,
    ended,
    screen_lines,
    sees,
    shown,
    submit,
    until,
)
from tests.support.jobs.made_runs import a_run

LONG = "n" * 32 + "-0a1b2c"
"""The longest id a run has."""


async def test_without_runs_the_screen_says_what_to_do(settings: Settings) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        await sees(pilot, "Press n to make one from a job file")
        await pilot.pause(0.3)
        assert not app_of(pilot).schedule.requests, "no unfinished run, no request"
        await pilot.press("n")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewScreen), "the screen New")


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


def copied(run: Run, number: int, created: float) -> Run:

    return replace(run, id=f"copy-{number:06d}", created=created, job_id=str(1000 + number))


async def test_the_header_counts_every_unfinished_run(settings: Settings) -> None:
    app = LumiApp(settings)
    history = app.runs.history
    # Sites that are asked at once would settle them.
    for number in range(55):
        state = State.QUEUED if number < 2 else State.DONE
        history.begin(a_run(f"run-{number:06d}", created=float(number), state=state, job_id="1"))
    async with app.run_test(size=(110, 24)) as pilot:
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


@pytest.mark.parametrize("width", [80, 120])
async def test_a_long_name_leaves_the_bars_readable(settings: Settings, width: int) -> None:
    app = LumiApp(settings)
    app.runs.history.begin(a_run(LONG, name="n" * 100, state=State.DONE, job_id="41"))
    async with app.run_test(size=(width, 24)) as pilot:
        await sees(pilot, "1 Runs")
        app.schedule.began("somewhere")
        words = "somewhere: 127.0.0.1 did not answer on port 22 within fifteen seconds"
        app.schedule.ended("somewhere", 0.0, Ending(1, (words,), answered=False), pause=1)
        app.schedule.drop_warnings = lambda names: None  # type: ignore[method-assign]
        await pilot.pause(1.2)
        lines = screen_lines(app)
        why = next(line for line in lines if "127.0.0.1 did not answer" in line)
        assert ("…" in why) == (width == 80)
        chosen = next(line for line in lines if LONG in line and "2 nodes" in line)
        assert "2 nodes, 16 ranks, 16 GPUs" in chosen
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")
        await pilot.pause()
        bar = screen_lines(app)[0]
        assert "done" in bar and "0a1b2c" in bar and "somewhere gpu" in bar
        assert bar.rstrip().endswith("…") == (width == 80)


def test_a_shortened_id_keeps_the_end_that_tells_it_apart() -> None:
    assert styled.shorten("a-very-long-name-0a1b2c", 14) == "a-very…-0a1b2c"
    assert styled.shorten("short-0a1b2c", 14) == "short-0a1b2c"


def test_every_state_has_a_colour_and_its_word() -> None:
    for state in State:
        assert styled.state_text(state).plain == str(state)
