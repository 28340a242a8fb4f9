"""The ages in the list go on by themselves; a row whose words are the same is not drawn."""

import time
from dataclasses import replace

import pytest

from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.screens.page import FullScreen
from lumitui.app.tui.widgets.tables import run_table
from lumitui.app.tui.widgets.tables.run_table import RunTable
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import screen_lines, until


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
