"""The table of runs: one row for each run, kept by its id."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from lumitui.app.explain import words
from lumitui.app.explain.safe_text import log_line
from lumitui.app.history.run import Run
from lumitui.app.tui.widgets import styled

Cell = Callable[[Run, float, int], Text]


def _plain(read: Callable[[Run, float], str], *, right: bool = False) -> Cell:
    def cell(run: Run, now: float, width: int) -> Text:
        text = styled.shorten(log_line(read(run, now).replace("\n", " ")), width)
        return Text(text.rjust(width) if right else text, no_wrap=True)

    return cell


@dataclass(frozen=True)
class Column:
    """One column: its heading, its cells, and how wide it is on narrow and wide screens."""

    key: str
    heading: str
    cell: Cell
    narrow: int
    wide: int
    right: bool = False

    def width(self, wide: bool) -> int:
        """Return its width in cells; one more is left free beside it."""
        return self.wide if wide else self.narrow

    def title(self, wide: bool) -> Text:
        """Return the heading, aligned as the cells are."""
        width = self.width(wide)
        title = self.heading.rjust(width) if self.right else self.heading
        return Text(title, no_wrap=True)


def _column(
    key: str, heading: str, read: Callable[[Run, float], str], narrow: int, wide: int
) -> Column:
    return Column(key, heading, _plain(read), narrow, wide)


def _figure(
    key: str, heading: str, read: Callable[[Run, float], str], narrow: int, wide: int
) -> Column:
    return Column(key, heading, _plain(read, right=True), narrow, wide, right=True)


# On a narrow screen all but the reason take 77 cells: 80 less the padding and a scroll bar.
COLUMNS = (
    Column("state", "State", lambda run, now, width: styled.state_text(run.state), 13, 13),
    _column("run", "Run", lambda run, now: run.id, 17, 32),
    _column("site", "Site", lambda run, now: run.site, 8, 14),
    _figure("nodes", "Nodes", lambda run, now: str(run.layout.nodes), 5, 5),
    _figure("ranks", "Ranks", lambda run, now: str(run.layout.world_size), 5, 5),
    _figure("job", "Job", lambda run, now: run.job_id or "-", 8, 10),
    _figure("age", "Age", lambda run, now: words.short_length(now - run.created), 5, 5),
    _figure("time", "Time", words.elapsed_of_limit, 9, 11),
    Column("reason", "Reason", lambda run, now, width: Text(_reason(run), no_wrap=True), 40, 80),
)
WIDE = 110
"""Cells of a screen on which the wide columns fit."""


def _reason(run: Run) -> str:
    return log_line(words.reason(run))


class RunTable(DataTable[Text]):
    """Runs, newest first. Cursor and scroll stay with the run when the table is filled again."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", "Down", show=False, id="table.down", tooltip="Next run"),
        Binding("k", "cursor_up", "Up", show=False, id="table.up", tooltip="Previous run"),
        Binding("g", "scroll_top", "Top", show=False, id="table.top", tooltip="First run"),
        Binding("G", "scroll_bottom", "End", show=False, id="table.end", tooltip="Last run"),
        Binding("enter", "select_cursor", "Open", id="table.open", tooltip="Open the run"),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        """Show an empty table."""
        super().__init__(id=id, cursor_type="row", cell_padding=0, zebra_stripes=True)
        self._width = 0
        self._wanted: str | None = None

    def choose(self, run_id: str) -> None:
        """Put the cursor on a run as soon as the table shows it."""
        self._wanted = run_id

    @property
    def selected(self) -> str | None:
        """The id of the run under the cursor."""
        if not self.row_count:
            return None
        return self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value

    def show(self, runs: Sequence[Run], now: float, width: int) -> None:
        """Show `runs` on a screen of `width` cells; rows are built again only when they must be."""
        wide = width >= WIDE
        keys = [run.id for run in runs]
        same = keys == [row.key.value for row in self.ordered_rows]
        if same and self.columns and wide == (self._width >= WIDE):
            for run in runs:
                self._update(run, now, wide)
        else:
            self._width = width
            self._fill(runs, now, wide)
        if self._wanted in keys:
            self.move_cursor(row=keys.index(self._wanted), animate=False)
            self._wanted = None

    def _update(self, run: Run, now: float, wide: bool) -> None:
        for column in COLUMNS:
            text = column.cell(run, now, column.width(wide))
            if self.get_cell(run.id, column.key) != text:
                self.update_cell(run.id, column.key, text)

    def _fill(self, runs: Sequence[Run], now: float, wide: bool) -> None:
        chosen, top = self.selected, self.scroll_offset.y
        self.clear(columns=True)
        for column in COLUMNS:
            self.add_column(column.title(wide), key=column.key, width=column.width(wide) + 1)
        for run in runs:
            cells = (column.cell(run, now, column.width(wide)) for column in COLUMNS)
            self.add_row(*cells, key=run.id)
        if chosen in (key.value for key in self.rows):
            self.move_cursor(row=self.get_row_index(chosen or ""), animate=False, scroll=False)
            self.call_after_refresh(self.scroll_to, y=top, animate=False)
