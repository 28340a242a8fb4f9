"""What a key draws: the rows that it changes, and none that is hidden or was drawn before."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from textual._compositor import Compositor
from textual.pilot import Pilot
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.widget import Widget

from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.panes.overview_pane import OverviewPane
from lumitui.app.tui.screens import runs_screen
from lumitui.app.tui.screens.page import FullScreen
from lumitui.app.tui.screens.run_screen import RunScreen
from lumitui.app.tui.widgets.tables.row_list import RowList
from lumitui.app.tui.widgets.tables.run_table import RunTable
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.binding.binding_reports import EXACT, reports
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import app_of, sees, until

RANKS = 2048


@contextmanager
def counted(owner: type[Any], method: str) -> Iterator[list[object]]:
    """Collect on whom a method is called."""
    called: list[object] = []
    original = getattr(owner, method)

    def call(self: object, *values: Any, **more: Any) -> Any:
        called.append(self)
        return original(self, *values, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, method, call)
        yield called


def some_runs(app: LumiApp) -> None:
    runs = [
        a_run(f"run-{number:06d}", created=1e9 + number, state=State.DONE, job_id=str(number))
        for number in range(20)
    ]
    app.runs.history.adopt(runs)


async def at_rest(pilot: Pilot[Any], detail: OverviewPane) -> None:
    """Wait until the facts of the run under the cursor are drawn."""
    table = app_of(pilot).query_one(RunTable)
    await until(
        pilot, lambda: detail._run is not None and detail._run.id == table.selected, "its facts"
    )
    await pilot.pause(runs_screen.REST)


@pytest.mark.parametrize("size", [(120, 40), (200, 50)])
async def test_a_key_in_the_list_of_runs_draws_two_rows_and_no_facts(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setattr(runs_screen, "REST", 1.0)  # no busy machine takes as long for a key
    async with LumiApp(settings).run_test(size=size) as pilot:
        some_runs(app_of(pilot))
        app_of(pilot).history_changed()
        await sees(pilot, "run-000019")
        await until(pilot, lambda: bool(pilot.app.query(OverviewPane)), "the facts")
        detail = pilot.app.query_one(OverviewPane)
        await at_rest(pilot, detail)
        with (
            counted(RunTable, "render_line") as rows,
            counted(OverviewPane, "draw") as facts,
            counted(FullScreen, "_refresh_layout") as layouts,
        ):
            await pilot.press("j")
            await pilot.pause()
            assert len(rows) <= 2 and not facts and not layouts
            await until(pilot, lambda: bool(facts), "the facts of a run on which the cursor rests")


async def test_a_change_of_history_draws_no_facts_while_the_cursor_moves(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_screen, "REST", 2.0)  # no busy machine takes as long for a key
    async with LumiApp(settings).run_test(size=(120, 40)) as pilot:
        some_runs(app_of(pilot))
        app_of(pilot).history_changed()
        await until(pilot, lambda: bool(pilot.app.query(OverviewPane)), "the facts")
        await at_rest(pilot, pilot.app.query_one(OverviewPane))
        with counted(OverviewPane, "draw") as facts:
            await pilot.press("j")
            app_of(pilot).runs.history.update("run-000000", note="changed")
            app_of(pilot).history_changed()
            await pilot.press("j")
            assert not facts


async def test_a_key_in_a_long_table_of_ranks_draws_one_new_row(settings: Settings) -> None:
    layout = replace(EXACT, nodes=RANKS // 8)
    async with LumiApp(settings).run_test(size=(120, 40)) as pilot:
        app = app_of(pilot)
        run = replace(a_run("proved-000001"), layout=layout, state=State.DONE, job_id="7")
        app.runs.history.begin(run)
        items = reports(layout)
        items[8]["cores"] = "9"  # differs, so the ranks of all nodes are listed
        app.runs.history.update(run.id, binding=json.dumps(items))
        app.push_screen(RunScreen(app.runs, run.id, "proof"))
        await sees(pilot, "nid005003")
        await pilot.pause(0.2)
        with (
            counted(RowList, "_segments") as rows,
            counted(Widget, "render_lines") as framed,
            counted(ScrollBar, "render") as bars,
            counted(FullScreen, "_refresh_layout") as layouts,
        ):
            for key in "jjkk":
                await pilot.press(key)
                await pilot.pause()
            assert rows and len(rows) <= 2 and len(bars) <= 1 and not layouts
            assert not any(isinstance(one, RowList) for one in framed), "framed anew by Textual"


async def test_containers_behind_a_table_are_not_drawn(settings: Settings) -> None:
    async with LumiApp(settings).run_test(size=(120, 40)) as pilot:
        some_runs(app_of(pilot))
        app_of(pilot).history_changed()
        await sees(pilot, "run-000019")
        table = pilot.app.query_one(RunTable)
        for _ in range(20):  # a facts pane beside it may still be filled, which draws all of them
            table.refresh()
            with counted(Widget, "render_lines") as drawn:
                await pilot.pause()
            if table in drawn and table.parent not in drawn:
                return
        raise AssertionError(drawn)


async def test_the_screen_is_as_textual_composes_it(settings: Settings) -> None:
    async with LumiApp(settings).run_test(size=(120, 40)) as pilot:
        some_runs(app_of(pilot))
        app_of(pilot).history_changed()
        await sees(pilot, "run-000019")
        compositor = pilot.app.screen._compositor
        own = [strip.text for strip in compositor.render_strips()]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(compositor), "_get_renders", Compositor._get_renders)
            assert [strip.text for strip in compositor.render_strips()] == own


async def test_rows_in_a_frame_are_as_textual_draws_them(settings: Settings) -> None:
    async with LumiApp(settings).run_test(size=(200, 50)) as pilot:
        app = app_of(pilot)
        run = replace(a_run("proved-000001"), layout=EXACT, state=State.DONE, job_id="7")
        app.runs.history.begin(run)
        app.runs.history.update(run.id, binding=json.dumps(reports(EXACT)))
        app.push_screen(RunScreen(app.runs, run.id, "proof"))
        await sees(pilot, "nid005001")
        view = pilot.app.screen.query_one(RowList)
        assert view.styles.border_left[0] == "round"
        whole = view.region.reset_offset
        for padding in (0, 2):
            view.styles.padding = padding
            await pilot.pause()
            own = [strip.simplify() for strip in view.render_lines(whole)]
            view._look, view._sides = None, ((), ())
            assert [strip.simplify() for strip in ScrollView.render_lines(view, whole)] == own
