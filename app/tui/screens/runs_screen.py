"""The first screen: a list of all runs, with the facts of the selected run if there is room."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Center, Container, Horizontal, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Button, Static

from lumitui.app.explain import row_words, words
from lumitui.app.runs import (
    COUNTED_STATES,
    NEWEST_FIRST,
    STATE_GROUPS,
    Filter,
    InputError,
    LumiError,
    Order,
    Run,
    Runs,
    RunWindow,
    Schedule,
    split_tags,
)
from lumitui.app.tui.asking import show_error, tui
from lumitui.app.tui.dialogs.confirm_dialog import Confirm
from lumitui.app.tui.panes.overview_pane import OverviewPane
from lumitui.app.tui.screens.marked_screen import MarkedPage
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.tables.run_filter import RunFilter
from lumitui.app.tui.widgets.tables.run_table import RunTable

WIDE = 130
"""Minimum cells to show a run's facts beside the list in a terminal below `TALL` lines."""
TALL = 36
"""Minimum lines to always show the facts below the list."""
ROOM = 9
"""Minimum lines left by a short list to show the facts below it in any other terminal."""
REST = 0.15
"""Seconds that the cursor rests on a run before its facts, as slow as three keys, are drawn."""
_COUNT_STYLES = {
    "running": "green", "waiting": "yellow", "failed": "red", "refused": "red",
    "not sent": "red", "unknown": "magenta",
}  # fmt: skip

MOST_COMPARED = 4
_OF_MARKED = frozenset({"compare", "tag", "fetch"})
"""The actions whose keys the footer shows instead of those below while runs are marked."""
_OF_ONE = frozenset((
    "pane('log')", "resubmit(1)", "resubmit(2)", "pane('why')", "refresh_sites",
    "app.go('new', True)", "filter",
))  # fmt: skip
EMPTY = """No runs yet.

Press n to create one from a job file. You see its price and its script
before lumitui sends anything. Press 0 for a guide through the first steps."""


class RunsScreen(MarkedPage):
    """The runs, a line about the run under the cursor, and a line about the last refresh."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "All runs", show=False, id="runs.all",
                tooltip="Clear the marks, then the filter and the order"),
        Binding("r", "refresh_sites", "Refresh", id="page.refresh", tooltip="Poll the sites now"),
        Binding("n", "app.go('new', True)", "New", id="page.new",
                tooltip="Create a run from a job file"),
        Binding("slash", "filter", "Filter", key_display="/", id="runs.filter",
                tooltip="Show only some runs: failed, site:lumi, nodes>=4, 2x8, --lr, #best"),
        Binding("C", "compare", "Compare", id="runs.compare",
                tooltip="Compare two to four marked runs"),
        Binding("o", "sort", "Sort", show=False, id="runs.sort",
                tooltip="Sort by age, state, name, nodes, cost, end; press again for the next"),
        Binding("O", "reverse", "Reverse", show=False, id="runs.reverse",
                tooltip="Reverse the order of the list"),
    ]  # fmt: skip

    def __init__(self, runs: Runs, schedule: Schedule) -> None:
        """Show `runs`; `schedule` records when the sites were polled."""
        super().__init__(runs)
        self._schedule = schedule
        self._window = RunWindow(runs.history.finder)
        self._glances = runs.history.glances
        self._resting: Timer | None = None
        self._said: dict[str, Text] = {}
        self._nothing = Static(id="empty-words", markup=False)

    def body(self) -> ComposeResult:
        """Yield the list with a run's facts or, without runs, a hint."""
        with Container(id="master"):
            table = RunTable(self._window, self._glances, id="runs")
            table.add_class("frame", update=False)
            table.border_title = "Runs"
            yield table
            yield OverviewPane(id="detail", chart=True).add_class("frame", update=False)
        yield Vertical(id="empty")
        yield RunFilter()
        yield Static(id="selected", markup=False)

    def begin(self) -> None:
        """Draw from the history, again every second for the times."""
        self.reread()
        self._table.focus()
        self.set_interval(1.0, self.every_second)

    @property
    def _table(self) -> RunTable:
        return self.query_one(RunTable)

    @property
    def chosen(self) -> str | None:
        """The run under the cursor."""
        return self._table.selected

    def offers(self, action: str) -> bool:
        """Return whether the footer shows a key, which depends on marks and cursor."""
        if self.marked:
            fits = action != "compare" or len(self.marked) <= MOST_COMPARED
            return fits and action not in _OF_ONE
        if action == "cancel" and len(self.under_cursor) > 1:
            return self._window.unfinished(self.under_cursor)
        return action not in _OF_MARKED and super().offers(action)

    @property
    def marked(self) -> tuple[str, ...]:
        """The marked runs."""
        return tuple(self._table.marks)

    @property
    def under_cursor(self) -> tuple[str, ...]:
        """The runs under the cursor."""
        return self._table.meant

    def unmark(self) -> None:
        """Remove all marks."""
        self._table.unmark()

    def choose(self, run_id: str) -> None:
        """Move the cursor to a run, for the next key; clear a filter that hides it."""
        self._table.choose(run_id)
        try:
            self._read()
            if self.chosen != run_id:
                self._show_all()
            if self.chosen != run_id:
                self._window.whole()  # the run is below the loaded part of the list
                self._table.changed()
        except LumiError as error:
            show_error(self, error, repeats=True)

    def draw(self) -> None:
        """Show the history's current state."""
        if not self.is_seen:
            return
        self._read()
        self.pass_time()

    def pass_time(self) -> None:
        """Update ages without redrawing unchanged text."""
        self._table.tick()
        self._draw_polls(time.monotonic())
        self._draw_chosen()

    def _read(self) -> None:
        if self._window.refresh():
            self._draw_list()

    def _draw_list(self) -> None:
        self._table.changed()
        self.query_one(RunFilter).found(self._window.total)
        self._draw_empty()
        self._draw_title()
        self._lay_out()

    def _draw_empty(self) -> None:
        some, filtered = bool(self._window.lines), bool(self.query_one(RunFilter).terms)
        self.query_one("#master").display = some
        empty = self.query_one("#empty")
        empty.display = not some
        if some:
            return
        nothing = "No run matches the filter. Press esc to show all runs." if filtered else EMPTY
        if not empty.children:
            new = Button(Text("New run (n)"), action="app.go('new', True)", compact=True)
            guide = Button(Text("Guide (0)"), action="app.go('guide')", compact=True)
            empty.mount(Center(self._nothing), Center(Horizontal(new, guide)))
        self._nothing.update(nothing)

    @on(RunTable.Marked)
    def _draw_title(self) -> None:
        counts = self._window.counts
        parts: list[str | Text] = [
            Text(f"{number:,} {name}", _COUNT_STYLES[name])
            for name in COUNTED_STATES
            if (number := sum(counts.get(state, 0) for state in STATE_GROUPS[name]))
        ] or [words.count(sum(counts.values()), "run")]
        shown = ["of those shown:"] if self._window.listing.criteria.terms else []
        parts = ["1 Runs", *shown, *parts]
        if marked := len(self.marked):
            parts.append(Text(f"{marked} marked", "bold"))
        if (order := self._window.listing.order) != NEWEST_FIRST:
            parts.append(f"by {order.by}{', reversed' if order.reverse else ''}")
        self.title_text(*parts)
        self.refresh_bindings()

    @on(RunTable.Moved)
    def _moved(self) -> None:
        if self._resting is not None:
            self._resting.stop()
        self._resting = self.set_timer(REST, self._rested)
        self._draw_chosen()

    def _rested(self) -> None:
        self._resting = None
        self._draw_chosen()
        self.refresh_bindings()

    def _draw_chosen(self) -> None:
        """Show the facts of the selected run once the cursor rests."""
        detail = self.query_one(OverviewPane)
        self.seen_run = run = self._window.run(self.chosen or "")
        if not detail.display:
            if self._said.get("run") != (line := _line(run)):
                self._said["run"] = line
                self.query_one("#selected", Static).update(line, layout=False)
        elif self._resting is None and run is not None:
            if self._said.get("detail") != (title := styled.plain(run.id)):
                self._said["detail"] = title
                detail.border_title = title
            detail.draw(run)

    def _draw_polls(self, now: float) -> None:
        schedule, line = self._schedule, Text()
        for warning in schedule.warnings:
            line.append(styled.plain(f"{' '.join(warning.split())}  ", "yellow"))
        if schedule.requests:
            line.append(words.count(schedule.requests, "request"))
        if schedule.is_idle(now):
            paused = "paused: press a key to continue"
            line.append(f", {paused}" if schedule.requests else paused)
        if self._said.get("polls") != line:
            self._said["polls"] = line
            self._table.border_subtitle = Content.from_rich_text(line)

    def on_resize(self) -> None:
        """Show the facts of a run if there is room."""
        if self.query("#detail"):  # otherwise the app is exiting
            self._lay_out()

    def _lay_out(self) -> None:
        """Give the list the lines it needs, and the rest to the facts of a run."""
        width, height = self.app.size
        below = height >= TALL or height - 5 - self._table.row_count >= ROOM
        detail, master = self.query_one(OverviewPane), self.query_one("#master")
        detail.display = room = below or width >= WIDE
        master.set_class(below, "tall").set_class(height >= TALL, "high")
        self.query_one("#selected").display = not room
        self._draw_chosen()

    def _list(self, order: Order) -> None:
        """List matching runs from the start; the cursor stays on its run."""
        try:
            self._window.show(Filter(terms=self.query_one(RunFilter).terms), order)
            self._draw_list()
        except LumiError as error:
            show_error(self, error, repeats=True)

    def action_open(self) -> None:
        """Open the run under the cursor or, on the row of a folded grid, the Grid screen."""
        self._act(self._open)

    def _open(self, run_id: str) -> None:
        if self._is_grid(run_id):
            tui(self).open_grid(run_id)
        else:
            tui(self).open_run(run_id)

    def _is_grid(self, run_id: str) -> bool:
        """Return whether the cursor is on the row of a folded grid."""
        several = len(self.under_cursor) > 1
        series = self.runs.history.series.of_run(run_id) if several else None
        return series is not None and series.kind == "grid"

    def action_resubmit(self, factor: int) -> None:
        """Open the dialog that sends the run again, or offer to send the whole folded grid."""
        self._act(partial(self._resubmit, factor=factor))

    def _resubmit(self, run_id: str, factor: int) -> None:
        run = self.runs.history.get(run_id)
        if not self._is_grid(run_id):
            super().action_resubmit(factor)
            return
        job, count = Path(run.job_file or ""), len(self.under_cursor)
        if not job.is_file():
            raise InputError(
                f"The job file of these {count} runs is missing, so lumitui cannot send the "
                "grid again.",
                "To resubmit one of its runs, unfold the grid (→) and select it.",
            )
        lines = [
            ("job file", f"opens on New, where ^s sends the grid: {job}"),
            ("one run", "unfold the grid (→) and select it"),
        ]
        title = f"Send all {count} runs of the grid again?"
        asked = Confirm(title, lines, "Open job file", no="Nothing was sent.")
        self.app.push_screen(asked, lambda yes: tui(self).open_job(job) if yes else None)

    def action_filter(self) -> None:
        """Show the filter, ready to type in."""
        self.query_one(RunFilter).open()

    @on(RunFilter.Changed)
    def _filtered(self) -> None:
        self._list(self._window.listing.order)

    @on(RunFilter.Left)
    def _left(self) -> None:
        self._table.focus()

    @on(RunTable.Sorted)
    def _sorted(self, event: RunTable.Sorted) -> None:
        self._list(self._window.listing.order.chosen(event.by))

    def action_sort(self) -> None:
        """Sort the list by the next key."""
        self._list(self._window.listing.order.next())

    def action_reverse(self) -> None:
        order = self._window.listing.order
        self._list(Order(order.by, not order.reverse))

    def action_back(self) -> None:
        """Remove the marks; if there are no marks, show all runs, the newest first."""
        if self.marked and self._table.has_focus:
            self.unmark()
            return
        self._show_all()
        self._table.focus()

    def _show_all(self) -> None:
        runs = self.query_one(RunFilter)
        runs.clear()
        runs.terms = ()
        self._list(NEWEST_FIRST)

    def action_compare(self) -> None:
        """Compare the marked runs; if only one is marked, compare it with that under the cursor."""
        runs = self.marked
        if len(runs) == 1 and self.chosen not in (None, *runs):
            runs = (*runs, self._chosen())
        if 2 <= len(runs) <= MOST_COMPARED:
            tui(self).open_compare(runs)
            self.unmark()  # the next key is for the row
            return
        message = f"You can compare 2 to {MOST_COMPARED} marked runs, not {len(runs)}."
        show_error(self, InputError(message, "Mark runs with space, then press C."))


def _line(run: Run | None) -> Text:
    """Return a run's facts in one line, for a small terminal."""
    if run is None:
        return Text()
    note, tags = split_tags(run.note)
    parts = (
        (run.id, "bold"),
        (f"job {run.job_id}" if run.job_id else "", ""),
        (f"{words.layout_size(run.layout)}, {run.brief.partition}", ""),
        (row_words.news(run, time.time()), "yellow"),
        (tags, "cyan"),
        (note, "italic"),
        (f"from {run.parent}" if run.parent else "", ""),
    )
    return Text("  ").join(styled.plain(" ".join(text.split()), style) for text, style in parts
                           if text)  # fmt: skip
