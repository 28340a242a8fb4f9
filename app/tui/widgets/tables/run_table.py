"""The list of runs: only visible rows are read and drawn, thousands as fast as ten."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from lumitui.app.runs import (
    ROWS_AROUND,
    Glance,
    GlanceKey,
    Glances,
    LumiError,
    OrderBy,
    Run,
    RunWindow,
    TreeLine,
)
from lumitui.app.tui.asking import ask, show_error
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.styled import GAP
from lumitui.app.tui.widgets.tables import run_columns
from lumitui.app.tui.widgets.tables.run_columns import Column, Part, RowValues

OLD = 10.0
"""Seconds between updates of ended runs' rows: their ages change once a minute."""
_NOTHING = Glance()


class RunTable(ScrollView, can_focus=True):
    """Runs, one row each. If the list changes, cursor, marks and scrolling follow the runs."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "run-table--row", "run-table--heading", "run-table--cursor",
    }  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "Down", show=False, id="table.down", tooltip="Next run"),
        Binding("up,k", "move(-1)", "Up", show=False, id="table.up", tooltip="Previous run"),
        Binding("pagedown,ctrl+d", "page(1)", show=False, id="table.page", tooltip="Next page"),
        Binding("pageup,ctrl+u", "page(-1)", show=False, id="table.page-back",
                tooltip="Previous page"),
        Binding("g,home", "move(-1000000)", "Top", show=False, id="table.top", tooltip="First run"),
        Binding("G,end", "bottom", "End", show=False, id="table.end", tooltip="Last run"),
        Binding("enter", "screen.open", "Open", id="table.open",
                tooltip="Open the run or folded grid"),
        Binding("space", "mark", "Mark", id="table.mark",
                tooltip="Mark the run or folded grid for cancel, compare, tag or fetch"),
        Binding("z", "fold", "Fold", show=False, id="table.fold",
                tooltip="Hide or show the runs below this one"),
        Binding("left", "fold_in", show=False, id="table.fold-in",
                tooltip="Hide the runs below this one, or go to its parent"),
        Binding("right", "fold_out", show=False, id="table.fold-out",
                tooltip="Show the runs below this one"),
    ]  # fmt: skip

    class Moved(Message):
        """The cursor is on another run."""

    class Marked(Message):
        """The marked runs have changed."""

    @dataclass
    class Sorted(Message):
        """The sort key should change."""

        by: OrderBy

    def __init__(self, window: RunWindow, glances: Glances, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        """Show the list of `window`, with the known `glances`."""
        super().__init__(id=id)
        self._window, self._glances = window, glances
        self._at = 0
        self.selected: str | None = None
        """The id of the run under the cursor."""
        self._wanted: str | None = None
        self._asked: frozenset[GlanceKey] = frozenset()
        self._sites: set[str] = set()
        self._cells: tuple[int, ...] = ()
        """The cells that each column needs for the runs displayed so far."""
        self._measured: dict[str, Run] = {}  # the runs counted in these needs
        self._all_due = 0.0  # when to update the rows of ended runs next, in epoch seconds
        self._drawn: dict[int, tuple[int, list[Part]]] = {}
        """The contents of the displayed rows: position in the list, and cells."""
        self.marks: dict[str, None] = {}
        """The ids of the marked runs, in the order of marking."""

    @property
    def row_count(self) -> int:
        """Number of rows, without the heading."""
        return len(self._window.lines)

    @property
    def meant(self) -> tuple[str, ...]:
        """The ids of the runs under the cursor: several on the row of a folded series."""
        return self._window.stood_for(self.selected) if self.selected else ()

    def offers(self, action: str) -> bool:
        """Return whether the footer shows a key: none without runs."""
        return self.row_count > 0

    def choose(self, run_id: str) -> None:
        """Move the cursor to a run as soon as the list has it."""
        self._wanted = run_id

    def changed(self) -> None:
        """Show the changed lines of the window."""
        if self._wanted is not None and self._window.is_tree:
            self._window.reveal(self._wanted)
        lines, self._cells, self._measured = self._window.lines, (), {}
        if self.selected is None and self._wanted is None:
            self._wanted = self._window.foremost
        wanted = self._window.place(self._wanted)
        at = wanted if wanted is not None else self._window.place(self.selected)
        top = self.scroll_offset.y
        moved = 0 if at is None or top == 0 else at - self._at
        self._at = max(0, min(self._at if at is None else at, len(lines) - 1))
        self._wanted = None if wanted is not None else self._wanted
        self._resize_list()
        self.scroll_to(y=max(0, top + moved), animate=False, force=True)
        self._arrive()

    def tick(self) -> None:
        """Redraw the rows with texts that depend on the time."""
        window, now = self._window, time.time()
        all_due = now >= self._all_due
        self._all_due = now + OLD if all_due else self._all_due
        for at in range(self._top, min(self._top + self._height, self.row_count)):
            drawn, run = self._drawn.get(at - self._top), window.run(window.lines[at].id)
            due = all_due or run is None or run_columns.moves(run, now)
            if due and drawn is not None and drawn != (at, self._row(at, self._shown_columns())):
                self.refresh_line(at + 1)

    def action_move(self, rows: int) -> None:
        self._go(self._at + rows)

    def action_page(self, pages: int) -> None:
        self._go(self._at + pages * max(1, self._height - 1))

    def action_bottom(self) -> None:
        """Go to the last run, which reads all ids of the list."""
        self._read_list(self._window.whole)
        self._go(self.row_count - 1)

    def action_mark(self) -> None:
        """Mark the run or folded series under the cursor, or unmark it, and go to the next."""
        if meant := self.meant:
            rest = {run: None for run in self.marks if run not in meant}
            whole = len(self.marks) == len(rest) + len(meant)
            self.marks = rest if whole else self.marks | dict.fromkeys(meant)
            self.refresh()
            self.post_message(self.Marked())
            self._go(self._at + 1)

    def unmark(self) -> None:
        """Remove all marks."""
        self.marks.clear()
        self.refresh()
        self.post_message(self.Marked())

    def action_fold(self) -> None:
        """Hide or show the runs below this one, or below its parent."""
        if self.selected is not None:
            line = self._window.lines[self._at]
            run = line.id if line.children else line.parent
            if run is not None:
                self._fold(run, folded=not line.folded)

    def action_fold_in(self) -> None:
        """Hide the runs below this one; without any, go to its parent."""
        if self.selected is not None:
            line = self._window.lines[self._at]
            if line.children and not line.folded:
                self._fold(line.id, folded=True)
            elif (above := self._window.place(line.parent)) is not None:
                self._go(above)

    def action_fold_out(self) -> None:
        """Show the runs below this one."""
        if self.selected is not None and self._window.lines[self._at].folded:
            self._fold(self.selected, folded=False)

    def _fold(self, run_id: str, *, folded: bool) -> None:
        self._window.fold(run_id, folded=folded)
        self.selected = run_id if folded else self.selected
        self.changed()

    def _go(self, at: int) -> None:
        before, top = self._at, self._top
        self._at = max(0, min(at, self.row_count - 1))
        self._arrive()
        if top == self._top and before != self._at:
            # A cursor that moves within the screen changes only two lines.
            for line in (before, self._at):
                self.refresh_line(line + 1)

    def _arrive(self) -> None:
        """Scroll to the cursor's row, and report its run."""
        last, height = self.row_count - 1, self._height
        chosen = self._window.lines[self._at].id if last >= 0 else None
        if height and not self._top <= self._at < self._top + height:
            top = self._at if self._at < self._top else self._at - height + 1
            self.scroll_to(y=max(0, top), animate=False, force=True)
        self._read_rows()
        if chosen != self.selected:
            self.selected = chosen
            self.post_message(self.Moved())

    @property
    def _top(self) -> int:
        return self.scroll_offset.y

    @property
    def _height(self) -> int:
        return max(0, self.scrollable_content_region.height - 1)

    def _resize_list(self) -> None:
        self.virtual_size = Size(0, self.row_count + 1)
        self.refresh()

    def _read_list(self, read: Callable[[], object]) -> None:
        try:
            read()
        except LumiError as error:
            show_error(self, error, repeats=True)
        self._resize_list()

    def _read_rows(self) -> None:
        """Read the contents of the displayed rows, and extend the list near its end."""
        height = self._height or ROWS_AROUND
        top = self._top if self._height else max(0, self._at - ROWS_AROUND)
        try:
            if top + height + ROWS_AROUND > self.row_count and self._window.more():
                self._resize_list()
            if self._window.read(top, top + height):
                self.refresh()
        except LumiError as error:
            show_error(self, error, repeats=True)
        self._look(top, height)

    def _look(self, top: int, height: int) -> None:
        """Request previews of the displayed runs' metrics if they are missing."""
        keys, before = set(), (self._cells, len(self._sites))
        for line in self._window.lines[top : top + height]:
            run = self._window.run(line.id)
            if run is None or self._measured.get(run.id) is run:
                continue
            key = (run.id, run.metrics_offset)
            if run.metrics_offset and self._glances.known(key) is None:
                keys.add(key)
            self._measured[run.id] = run
            self._sites.add(run.site)
            cells = run_columns.cells_of(self._values(line, run))
            self._cells = tuple(map(max, self._cells, cells)) if self._cells else tuple(cells)
        if before != (self._cells, len(self._sites)):
            self.refresh()
        if keys - self._asked:
            self._asked = frozenset(keys)
            wanted = tuple(keys)
            ask(self, lambda runs: runs.history.glances.take(wanted), self._looked,
                failed=self._looked)  # fmt: skip

    def _looked(self, _: object) -> None:
        """Show the loaded previews."""
        self._measured = {}
        self._look(self._top, self._height)
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Read newly displayed rows."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self._read_rows()

    def on_resize(self, event: events.Resize) -> None:
        self._arrive()

    async def on_click(self, event: events.Click) -> None:
        """Go to the clicked run, or open it if it has the cursor; sort by a clicked heading."""
        where = event.get_content_offset(self)
        if where is None:
            return
        if where.y == 0:
            self._sort_at(where.x)
        elif (at := self._top + where.y - 1) < self.row_count:
            if at == self._at:
                await self.run_action("screen.open")
            else:
                self._go(at)

    def _sort_at(self, x: int) -> None:
        for column in self._shown_columns():
            if x < column.width + GAP:
                if column.by is not None:
                    self.post_message(self.Sorted(column.by))
                return
            x -= column.width + GAP

    def _shown_columns(self) -> tuple[Column, ...]:
        width = self.scrollable_content_region.width
        several, by = len(self._sites) > 1, self._window.listing.order.by
        return run_columns.columns_for(width, self._cells, several_sites=several, by=by)

    def render_line(self, y: int) -> Strip:
        columns, width = self._shown_columns(), self.scrollable_content_region.width
        if y == 0:
            style = self.get_component_rich_style("run-table--heading")
            titles = run_columns.heading(columns, self._window.listing.order)
            return styled.strip(titles, width, style)
        at = self._top + y - 1
        if at >= self.row_count:
            return Strip.blank(width, self.get_component_rich_style("run-table--row"))
        parts = self._row(at, columns)
        self._drawn[y - 1] = (at, parts)
        name = "run-table--cursor" if at == self._at else "run-table--row"
        return styled.strip(parts, width, self.get_component_rich_style(name))

    def _row(self, at: int, columns: tuple[Column, ...]) -> list[Part]:
        line = self._window.lines[at]
        run = self._window.run(line.id)
        return (
            run_columns.row(columns, self._values(line, run)) if run else [(f"   {line.id}", "dim")]
        )

    def _values(self, line: TreeLine, run: Run) -> RowValues:
        glance = self._glances.latest((run.id, run.metrics_offset)) or _NOTHING
        members = tuple(filter(None, map(self._window.run, line.members)))
        return RowValues(run, line, glance, line.id in self.marks, time.time(), members)
