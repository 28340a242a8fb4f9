"""A row of the first screen: its words, bars, colours and age, at any width."""

import re
import time
from dataclasses import replace

import pytest
from rich.cells import cell_len

from lumitui.app.follow.sites.poll_schedule import RefreshEnding
from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.screens.page import FullScreen
from lumitui.app.tui.screens.run_screen import RunScreen
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.tables import run_table
from lumitui.app.tui.widgets.tables.run_table import RunTable
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import screen_lines, sees, shown, until

LONG = "n" * 32 + "-0a1b2c"
"""The longest id a run has."""


async def test_the_title_counts_states_and_rows_say_it_in_words(settings: Settings) -> None:
    app = LumiApp(settings)
    now = time.time()
    history = app.runs.history
    history.adopt(
        [
            a_run("wait-000001", created=now, state=State.QUEUED, reason="Resources",
                  expected_start=now + 3600),
            a_run("train-000001", created=now - 60, state=State.RUNNING, started=now - 1860),
            a_run("lost-000001", created=now - 90, state=State.UNKNOWN),
            a_run("fail-000001", created=now - 99, state=State.FAILED, rc=1, failed_rank=5,
                  reason="NonZeroExitCode"),
        ]
    )  # fmt: skip
    lines = [f'{{"step": {step}, "loss": {9 - step / 20}, "samples_per_s": 61000}}'.encode()
             for step in range(100)]  # fmt: skip
    history.metrics.add("train-000001", lines, (0, 5000))
    app.tick = lambda *, asked=False: None  # type: ignore[method-assign]
    async with app.run_test(size=(200, 24)) as pilot:
        await sees(pilot, "1 running  1 waiting  1 failed  1 unknown")
        await sees(pilot, r"○ queued +wait-000001 .*~\d\d:\d\d, next in line")
        await sees(pilot, r"▶ running +train-000001 .*31m/1h00 +▇▆▅▃▂▁ +4\.050 +61,000 +8\.[23]")
        await sees(pilot, r"✖ failed +fail-000001 .* rank 5, exit 1")
        assert not re.search("failed .*NonZeroExitCode", shown(pilot))
        await sees(pilot, r"\? unknown +lost-000001 .* not settled yet")
        await pilot.resize_terminal(40, 10)
        await sees(pilot, r"running +train-000001 +\dm")


async def test_a_long_name_and_the_scroll_bar_leave_the_rest_readable(settings: Settings) -> None:
    app = LumiApp(settings)
    app.runs.history.begin(a_run(LONG, name="n" * 100, state=State.DONE, job_id="41"))
    app.runs.history.adopt(
        [
            a_run(f"run-{number:06d}", created=float(number), state=State.DONE, started=1.0,
                  ended=36_000.0, rc=0, job_id="12345678")
            for number in range(30)
        ]
    )  # fmt: skip
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.screen.query_one(RunTable).show_vertical_scrollbar, "a bar")
        await sees(pilot, "1 Runs")
        lines = screen_lines(app)
        assert lines[2][:78].rstrip().endswith("Cost"), "an id of 40 cells leaves room for figures"
        assert "9h59/1h00" in lines[4][:78]
        app.schedule.began("somewhere")
        words = "somewhere: 127.0.0.1 did not answer on port 22 within fifteen seconds"
        app.schedule.ended("somewhere", 0.0, RefreshEnding(1, (words,), answered=False), pause=1)
        app.schedule.drop_warnings = lambda names: None  # type: ignore[method-assign]
        for width in (80, 120):
            await pilot.resize_terminal(width, 24)
            await sees(pilot, "127.0.0.1 did not answer")
            lines = screen_lines(app)
            why = next(line for line in lines if "127.0.0.1 did not answer" in line)
            assert ("…" in why) == (width == 80)
            chosen = next(line for line in lines if LONG in line and "2 nodes" in line)
            assert "2 nodes, 16 ranks, 16 GPUs" in chosen
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")
        for width in (120, 80):
            await pilot.resize_terminal(width, 24)
            await pilot.pause()
            bar = screen_lines(app)[0]
            assert "done" in bar and "0a1b2c" in bar and "somewhere gpu" in bar
            assert bar.rstrip().endswith("…") == (width == 80)


def test_a_shortened_id_keeps_the_end_that_tells_it_apart() -> None:
    assert styled.shorten("a-very-long-name-0a1b2c", 14) == "a-very…-0a1b2c"
    assert styled.shorten("short-0a1b2c", 14) == "short-0a1b2c"
    # Cells, not letters: those of CJK take two.
    assert styled.shorten("实验训练实验训练-0a1b2c", 14) == "实验训…-0a1b2c"
    for width in range(30):
        for text in ("实验训练-0a1b2c", "emoji🚀🚀🚀-0a1b2c", "plain-name-0a1b2c"):
            assert cell_len(styled.shorten(text, width)) <= width
            assert cell_len(styled.fit(text, width)) == width


def test_every_state_has_a_colour_and_its_word() -> None:
    for state in State:
        assert styled.state_text(state).plain == str(state)


async def test_the_line_of_keys_ends_with_a_whole_key_and_a_long_title_with_an_ellipsis(
    settings: Settings,
) -> None:
    app = LumiApp(settings)
    app.runs.history.begin(a_run("実" * 30 + "-0a1b2c", state=State.DONE, job_id="12345678"))
    async with app.run_test(size=(79, 24)) as pilot:
        await sees(pilot, "0a1b2c")
        app.push_screen(RunScreen(app.runs, "実" * 30 + "-0a1b2c"))

        def is_whole() -> bool:
            keys = app.screen.query("FooterKey")
            return bool(keys) and keys.last().region.right <= app.size.width

        for width in (40, 79, 120):
            await pilot.resize_terminal(width, 24)
            await until(pilot, is_whole, "whole keys")
            title = screen_lines(app)[0].rstrip()
            assert title.endswith(("…", "GPUs")), title


async def test_only_rows_whose_words_changed_are_drawn(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, began = LumiApp(settings), time.time()

    class Clock:
        """The time of day as the list sees it."""

        now = began

        def time(self) -> float:
            return self.now

    clock, drawn = Clock(), list[int]()
    monkeypatch.setattr(run_table, "time", clock)
    old = a_run("old-000001", state=State.DONE, job_id="1", created=began - 90_000_000)
    app.runs.history.begin(old)
    app.runs.history.begin(replace(old, id="new-000002", created=began - 30))
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: " 30s " in "".join(screen_lines(app)), "the age")
        assert isinstance(app.screen, FullScreen)
        app.screen.every_second()
        await pilot.pause(0.2)
        render = RunTable.render_line

        def counting(self: RunTable, y: int) -> object:
            drawn.append(y)
            return render(self, y)

        monkeypatch.setattr(RunTable, "render_line", counting)
        for _ in range(3):
            app.screen.every_second()
        await pilot.pause(0.2)
        assert drawn == [], "nothing says anything else"
        clock.now += 12
        app.screen.every_second()
        await until(pilot, lambda: " 42s " in "".join(screen_lines(app)), "the age goes on")
        assert set(drawn) == {1}, "the old run says the same"
