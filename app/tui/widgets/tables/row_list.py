"""Lines above a table of many rows; only visible rows are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.geometry import Size
from textual.strip import Strip

from lumitui.app.tui.widgets.row_view import RowView
from lumitui.app.tui.widgets.scroll import AtOnce, Scroll
from lumitui.app.tui.widgets.styled import GAP


@dataclass(frozen=True)
class ListRow:
    """A row's cells, and the styles of those that are not plain."""

    cells: tuple[str, ...]
    styles: tuple[tuple[int, str], ...] = ()
    """Each column with its style, as Rich writes it."""


@dataclass(frozen=True)
class TitledRows:
    """Titles and rows; each row has as many cells as there are titles."""

    titles: tuple[str, ...]
    rows: Sequence[ListRow]
    right: frozenset[int] = frozenset()
    """Right-aligned columns."""
    is_folded: bool = False
    """Whether to show the rows in side-by-side blocks, as many as fit."""

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The width of each column."""
        rows = (self.titles, *(row.cells for row in self.rows))
        return tuple(max(map(cell_len, column)) for column in zip(*rows, strict=True))


class RowList(AtOnce, RowView, can_focus=True):
    """Wrapped lines, a heading and rows that scroll together, thousands as fast as ten."""

    BINDINGS: ClassVar[list[BindingType]] = list(Scroll.BINDINGS)

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._lines: Sequence[Text] = ()
        self._table: TitledRows | None = None
        self._widths: tuple[int, ...] = ()
        self._wrapped: list[Text] = []
        self._height = self._above = 0  # number of rows in one block of the table

    def show(self, lines: Sequence[Text], table: TitledRows | None = None) -> None:
        """Show `lines`, wrapped, and `table` below them; no text in them is markup."""
        self._lines, self._table = lines, table
        self._widths = table.widths if table else ()
        self._lay_out()

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        if not width:
            return  # not on the screen yet: the first resize lays it out
        console = self.app.console
        self._strips.clear()
        self._wrapped = [part for line in self._lines for part in line.wrap(console, width)]
        across = sum(self._widths) + GAP * len(self._widths)
        number = len(self._table.rows) if self._table else 0
        folded = self._table is not None and self._table.is_folded
        blocks = max(1, (width + 2 * GAP) // (across + GAP)) if folded else 1
        self._height = -(-number // blocks)
        self._above = len(self._wrapped) + bool(self._wrapped)  # with an empty line
        rows = self._height + 1 + bool(self._wrapped) if self._table else 0
        # without the last gap, or Textual would show a scroll bar
        self.virtual_size = Size(max(0, across - GAP), len(self._wrapped) + rows)
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out()

    def render_line(self, y: int) -> Strip:
        at = y + self.scroll_offset.y
        return self.strip(at, lambda: self._segments(at))

    def _segments(self, at: int) -> list[Segment]:
        if at < len(self._wrapped):
            line, console = self._wrapped[at], self.app.console
            base = self._base + console.get_style(line.style)  # Rich forgets it without spans
            return [Segment(s.text, base + (s.style or Style())) for s in line.render(console)
                    if s.text]  # fmt: skip
        at -= self._above
        table = self._table
        if table is None or at < 0 or at > self._height:
            return []
        title = ListRow(table.titles, tuple((at, "dim") for at in range(len(table.titles))))
        made: list[Segment] = []
        for first in range(0, max(1, len(table.rows)), max(1, self._height)):
            row = title if not at else None
            if at and first + at - 1 < len(table.rows):
                row = table.rows[first + at - 1]
            if row is not None:
                made += [Segment(" " * GAP, self._base)] if made else []
                styles = dict(row.styles)
                made += [
                    Segment(
                        self._cell(cell, column), self._base + Style.parse(styles.get(column, ""))
                    )
                    for column, cell in enumerate(row.cells)
                ]
        return made

    def _cell(self, text: str, column: int) -> str:
        assert self._table is not None
        width = self._widths[column]
        if column in self._table.right:
            return " " * (width - cell_len(text)) + text + " " * GAP
        return set_cell_size(text, width) + " " * GAP
