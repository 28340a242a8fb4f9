"""Every key and button: named in the footer, explained in the help, never cut off."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from textual.binding import Binding
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widgets import Input

from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.confirm_dialog import Confirm
from lumitui.app.tui.dialogs.notice_dialogs import HelpDialog, keys_table
from lumitui.app.tui.dialogs.palette import actions_of
from lumitui.app.tui.screens.new_screen import NewScreen
from lumitui.app.tui.screens.run_screen import RunScreen
from lumitui.app.tui.screens.scaling_screen import ScalingScreen
from lumitui.app.tui.widgets.input import FilterInput
from lumitui.app.tui.widgets.tables.run_filter import RunFilter
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.gallery.tour import still
from tests.support.jobs.made_runs import SPEC, a_run
from tests.support.program.driven_tui import (
    cut_off,
    kept,
    keys_below,
    screen_lines,
    sees,
    shown,
    until,
)


def with_a_run(settings: Settings) -> LumiApp:
    """Return an app whose history has one run, which ended well."""
    app = LumiApp(settings)
    app.runs.history.begin(a_run(state=State.DONE, spec=SPEC, job_id="41"))
    return app


def nameless(pilot: Pilot[int]) -> list[str]:
    """Return the keys of ours that work now and have no id, or no tooltip."""
    ours = (
        (active.binding, active.tooltip)
        for active in pilot.app.screen.active_bindings.values()
        if type(active.node).__module__.startswith("lumitui.")
    )
    return [
        binding.key
        for binding, tooltip in ours
        if not (tooltip if binding.id else binding.key in TEXTUALS)
    ]


@pytest.mark.parametrize("size", [(80, 24), pytest.param((120, 40), marks=pytest.mark.slow)])
async def test_no_button_is_cut_off_and_every_binding_has_an_id_and_a_tooltip(
    settings: Settings, project: Path, size: tuple[int, int]
) -> None:
    app = still(settings)
    async with app.run_test(size=size) as pilot:
        assert not cut_off(pilot)
        kept(app, state=State.RUNNING, ended=None, rc=None)
        app.history_changed()
        await sees(pilot, "running +hello")
        assert nameless(pilot) == []
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")
        assert (cut_off(pilot), nameless(pilot)) == ([], [])
        for key in ("c", "+", "?"):
            await pilot.press(key)
            await until(pilot, lambda: pilot.app.screen.is_modal, "a dialog")
            assert (cut_off(pilot), nameless(pilot)) == ([], [])
            await pilot.press("escape")
        for key, place in (("2", "2 New"), ("3", "3 Sites")):
            await pilot.press(key)
            await sees(pilot, place)
            assert (cut_off(pilot), nameless(pilot)) == ([], [])
        await pilot.press("1", "S")
        await until(pilot, lambda: isinstance(app.screen, ScalingScreen), "how it scales")
        assert nameless(pilot) == []


TEXTUALS = {
    "ctrl+q", "ctrl+c", "super+c", "tab", "shift+tab", "up", "down", "left", "right", "home",
    "end", "pageup", "pagedown", "ctrl+pageup", "ctrl+pagedown", "ctrl+home", "ctrl+end",
    *(key for item in Input.BINDINGS if isinstance(item, Binding) for key in item.key.split(",")),
}  # fmt: skip


async def test_the_footer_shows_the_keys_that_work(settings: Settings, project: Path) -> None:
    app = with_a_run(settings)
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
        await until(pilot, lambda: "f6 Editor" in keys_below(pilot), "the keys of New")
        await sees(pilot, "requests")
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        await until(pilot, lambda: "y Yes" in keys_below(pilot), "the question's keys")
        bottom = screen_lines(app)[-1]
        assert "y Yes" in bottom and "n No" in bottom
        assert not {"s", "r", "q", "?"} & set(bottom.split())


class ClosedFirst(ModalScreen[None]):
    """A screen that closes before it has called what waits for its next drawing."""

    async def _invoke_and_clear_callbacks(self) -> None:
        pass


async def test_the_footer_is_drawn_though_a_screen_above_closes_first(settings: Settings) -> None:
    app = with_a_run(settings)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "l Log" in keys_below(pilot), "the keys of the runs")
        first = app.screen
        app.push_screen(ClosedFirst())
        await until(pilot, lambda: isinstance(app.screen, ClosedFirst), "the screen above")
        first.query_one(RunFilter).open()
        await until(pilot, lambda: isinstance(first.focused, FilterInput), "the filter")
        await pilot.pause()
        app.pop_screen()
        await until(pilot, lambda: "esc All runs" in keys_below(pilot), "the filter's keys")


async def test_help_is_built_from_the_bindings_and_named_in_a_narrow_footer(
    settings: Settings,
) -> None:
    app = with_a_run(settings)
    async with app.run_test(size=(60, 48)) as pilot:
        await until(pilot, lambda: "? Help" in screen_lines(app)[-1], "help")
        assert "q Quit" in screen_lines(app)[-1]
        actions = actions_of(app.screen)
        await pilot.press("?")
        await until(pilot, lambda: isinstance(app.screen, HelpDialog), "the help")
        # What the table does comes first, and the words of settings.yaml are not wrapped.
        await sees(pilot, r"(?s)The table.* space +Mark the run .*The run\b")
        names = [action.binding.id or "" for action in actions]
        console = Console(width=70, file=StringIO())
        console.print(keys_table(actions, max(map(len, names))))
        assert isinstance(console.file, StringIO)
        assert set(names) <= set(console.file.getvalue().split())
        await sees(pilot, r"\+ =? *Resubmit it on twice the nodes")
        await pilot.press("pagedown")
        await sees(pilot, r"/ +Show only some runs")
        assert app.screen.query_one(".dialog").region.width == 60, "no sliver is left beside it"
        await pilot.press("G")
        await sees(pilot, r"\^p +Find a command by its name")
        await pilot.press("g", "j", "k")
        await sees(pilot, "The table")
        await pilot.press("escape")
        await pilot.press("q")
        await until(pilot, lambda: not app.is_running, "the end")


async def test_help_shows_words_and_beside_its_filter_the_names_for_the_settings(
    settings: Settings,
) -> None:
    app = with_a_run(settings)
    async with app.run_test(size=(120, 60)) as pilot:
        await until(pilot, lambda: "l Log" in keys_below(pilot), "the keys of the runs")
        await pilot.press("?")
        await sees(pilot, r"l +Follow the log")
        assert "run.log" not in shown(pilot)
        await pilot.press("/")
        await sees(pilot, r"l +Follow the log .*run\.log")
        await pilot.press(*"run.log")
        await until(pilot, lambda: "run.why" not in shown(pilot), "one row")
        await sees(pilot, r"run\.log")
