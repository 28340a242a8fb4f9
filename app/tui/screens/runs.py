"""The first screen: every run, newest first."""

import time
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Center, Vertical
from textual.widgets import Button, Input, Static

from lumitui.app.explain import words
from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.app.tui.screens.page import RunPage
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.bars import buttons
from lumitui.app.tui.widgets.input import FilterInput
from lumitui.app.tui.widgets.tables.run_table import RunTable
from lumitui.app.watch.sites.schedule import Schedule

PAGE = 50
"""Runs shown at first, and added on demand."""

EMPTY = """No runs yet.

Press n to make one from a job file. You see its price and its script
before anything is sent. The site `laptop` needs no cluster."""


class RunsScreen(RunPage):
    """The runs, a line on the one under the cursor, and a line on the last refresh."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "All runs", show=False, id="runs.all",
                tooltip="Show all runs again"),
        Binding("r", "refresh_sites", "Refresh", id="page.refresh", tooltip="Poll the sites now"),
        Binding("n", "app.go('new')", "New", id="page.new", tooltip="Make a run from a job file"),
        Binding("slash", "filter", "Filter", key_display="/", id="runs.filter",
                tooltip="Show only runs with a text in id, name, job id or note"),
        Binding("o", "older", "Older", show=False, id="runs.older",
                tooltip=f"Show {PAGE} more, older runs"),
    ]  # fmt: skip

    def __init__(self, runs: Runs, schedule: Schedule) -> None:
        """Show `runs`; `schedule` knows when the sites were polled."""
        super().__init__(runs)
        self._schedule = schedule
        self._limit = PAGE

    def body(self) -> ComposeResult:
        """Yield the table or, without runs, what to do."""
        yield RunTable(id="runs")
        with Vertical(id="empty"):
            with Center():
                yield Static(EMPTY, id="empty-words", markup=False)
            with Center():
                yield Button(Text("New run (n)"), action="app.go('new')", compact=True)
        yield FilterInput(placeholder="text in id, name, job id or note", id="filter", compact=True)
        yield Static(id="selected", markup=False)
        yield Static(id="polls", markup=False)
        yield buttons(
            ("New", "app.go('new')"),
            ("Open", "pane('state')"),
            ("Log", "pane('log')"),
            ("Resubmit x2", "resubmit(2)"),
            ("Cancel", "cancel"),
        )

    def begin(self) -> None:
        """Draw from history, again every second for the times."""
        self.query_one("#filter").display = False
        self.reread()
        self.query_one(RunTable).focus()
        self.set_interval(1.0, self.every_second)

    @property
    def chosen(self) -> str | None:
        """The run under the cursor."""
        return self.query_one(RunTable).selected

    def choose(self, run_id: str) -> None:
        """Put the cursor on a run: the next key is meant for it."""
        self.query_one(RunTable).choose(run_id)

    def draw(self) -> None:
        """Show what history says now."""
        if not self.is_current:
            return
        text = self.query_one("#filter", Input).value
        found = self.runs.history.page(self._limit + 1, text=text)
        more, found = len(found) > self._limit, found[: self._limit]
        now = time.time()
        table = self.query_one(RunTable)
        table.show(found, now, self.size.width)
        self._draw_empty(bool(found), text)
        self._draw_title(found, more, text)
        self._draw_selected({run.id: run for run in found})
        self._draw_polls(time.monotonic())

    def _draw_empty(self, some: bool, text: str) -> None:
        self.query_one(RunTable).display = some
        self.query_one("#empty").display = not some
        nothing = f"No run contains {text!r}. Press esc to show all runs." if text else EMPTY
        self.query_one("#empty-words", Static).update(nothing)

    def _draw_title(self, found: list[Run], more: bool, text: str) -> None:
        shown = f"newest {len(found)} runs, o for older" if more else words.count(len(found), "run")
        shown += f" with {styled.shorten(text, 20)!r}" if text else ""
        every = " in all" if text or more else ""
        unfinished = self.runs.history.count_unfinished()
        self.title_text("1 Runs", f"{shown}, {unfinished} unfinished{every}")

    @on(RunTable.RowHighlighted)
    def _moved(self) -> None:
        self.reread()

    def _draw_selected(self, found: dict[str, Run]) -> None:
        line = Text()
        run = found.get(self.chosen or "")
        if run is not None:
            line.append(run.id, "bold").append(
                f"  {words.layout_size(run.layout)}, {run.spec.partition}"
            )
            if reason := words.reason(run):
                line.append(styled.plain(f"  {reason}", "yellow"))
            if run.parent:
                line.append(f"  from {run.parent}")
        self.query_one("#selected", Static).update(line)

    def _draw_polls(self, now: float) -> None:
        schedule, line = self._schedule, Text()
        if schedule.warnings:
            why = "".join(f"{' '.join(warning.split())}  " for warning in schedule.warnings)
            line.append(styled.plain(why, "yellow"))
        line.append(words.count(schedule.requests, "request"))
        if schedule.is_idle(now):
            line.append(", paused: press a key to go on")
        self.query_one("#polls", Static).update(line)

    @on(RunTable.RowSelected)
    def _open(self) -> None:
        self.action_pane("overview")

    def action_filter(self) -> None:
        """Show the filter, ready to type in."""
        line = self.query_one("#filter", Input)
        line.display = True
        line.focus()

    @on(Input.Changed, "#filter")
    def _filter(self) -> None:
        self.reread()

    @on(Input.Submitted, "#filter")
    def _filtered(self) -> None:
        self.query_one(RunTable).focus()

    def action_back(self) -> None:
        """Show all runs again."""
        line = self.query_one("#filter", Input)
        line.value, line.display = "", False
        self.query_one(RunTable).focus()

    def action_older(self) -> None:
        """Show one page more."""
        self._limit += PAGE
        self.reread()
