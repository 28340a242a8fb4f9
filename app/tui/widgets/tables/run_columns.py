"""The columns of the list of runs: those that fit a width, and their cells. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from rich.cells import cell_len

from lumitui.app.explain import row_words, words
from lumitui.app.runs import (
    WENT_WRONG,
    Glance,
    Order,
    OrderBy,
    Run,
    State,
    TreeLine,
    log_line,
    split_tags,
)
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.styled import GAP

Part = tuple[str, str]
"""A text, and its style as Rich writes it."""


@dataclass(frozen=True)
class RowValues:
    """The values of a run's row."""

    run: Run
    line: TreeLine
    glance: Glance
    marked: bool
    now: float
    members: tuple[Run, ...] = ()
    """The runs of a folded series."""

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs that the row stands for."""
        return self.members or (self.run,)


@dataclass(frozen=True)
class Column:
    """One column."""

    key: str
    heading: str
    cell: Callable[[RowValues, int], Part]
    by: OrderBy | None = None
    """The sort key that a click on the heading sets."""
    falls: bool = False
    """Whether this order has the largest value first."""
    right: bool = False
    least: int = 0
    """Minimum cells, for texts that grow with time."""
    most: int = 16
    width: int = 0


def _state(shown: RowValues, width: int) -> Part:
    state = shown.run.state
    mark = "*" if shown.marked else " "
    if shown.line.members:  # one run's state would seem to apply to all
        return f"{mark}  {shown.line.children + 1} runs", ""
    return f"{mark}{styled.GLYPHS.get(state, '✖')} {state}", styled.COLOURS[state]


def _run(shown: RowValues, width: int) -> Part:
    line = shown.line
    fold = f" +{line.children}" if line.folded else ""
    guide = f"{line.guide} " if line.guide else ""
    room = max(8, width - len(guide + fold))
    name, chips = shown.run.id, _chips(shown.run, room)
    return f"{guide}{styled.shorten(name, room - cell_len(chips))}{fold}{chips}", ""


def _chips(run: Run, room: int) -> str:
    """Return a run's tags for the space after its id, which keeps at least `_LEAST_ID` cells."""
    tags = log_line(split_tags(run.note)[1])
    left = room - min(cell_len(run.id), max(_LEAST_ID, room - _LEAST_CHIP)) - 1
    return f" {styled.fit(tags, min(left, cell_len(tags)))}" if tags and left > 1 else ""


def _plain(read: Callable[[Run, float], str]) -> Callable[[RowValues, int], Part]:
    return lambda shown, width: (log_line(read(shown.run, shown.now)), "")


def _figure(text: Callable[[float], str], value: float | None) -> Part:
    return "" if value is None else text(value), ""


def _note(shown: RowValues, width: int) -> Part:
    """Return why a run waits or failed, a folded series' summary, or the user's note."""
    run, line = shown.run, shown.line
    if line.members:
        failed = any(f" {state}" in line.summary for state in WENT_WRONG)
        return line.summary, "red" if failed else "cyan"
    if not (news := log_line(row_words.news(run, shown.now).replace("\n", " "))):
        return log_line(split_tags(run.note)[0]), "italic"
    if run.state in WENT_WRONG:
        return news, "red"
    return news, "" if run.state is State.CANCELLED else "yellow"


_LEAST_ID = 12
_LEAST_CHIP = 8  # minimum cells left for tags after a long id
_LEAST = {"run": 18, "note": 10}
"""Minimum cells of these columns before less important columns get any."""
_COLUMNS = (
    Column("state", "   State", _state, OrderBy.STATE, most=18),
    Column("run", "Run", _run, OrderBy.NAME, least=_LEAST_ID, most=40),
    Column("age", "Age", _plain(row_words.age), OrderBy.NEWEST, right=True, least=5),
    Column("site", "Site", _plain(lambda run, now: run.site)),
    Column("size", "Size", lambda row, _: (row_words.sizes(row.runs), ""), OrderBy.NODES,
           falls=True, right=True),
    Column("time", "Time", _plain(words.elapsed_of_limit), right=True, least=9),
    Column("ended", "Ended", _plain(row_words.since_end), OrderBy.END, right=True, least=5),
    Column("shape", "Curve", lambda row, n: (row_words.shape(row.glance.loss, n), "cyan"), most=6),
    Column("loss", "Loss", lambda row, _: _figure(row_words.loss, row.glance.last_loss),
           right=True),
    Column("speed", "Smp/s", lambda row, _: _figure(words.rate, row.glance.samples_per_s),
           right=True, least=6),
    Column("cost", "Cost", lambda row, _: (row_words.cost(row.runs, row.now), ""), OrderBy.COST,
           falls=True, right=True, least=6),
    Column("note", "Note", _note, most=200),
)  # fmt: skip
_OF_ONE = frozenset({"time", "ended", "shape", "loss", "speed"})
"""Columns left empty for a folded series: its first run's values would seem to apply to all."""
_ENOUGH = {"run": 28, "note": 16}
"""Cells of these columns before those after their second place in `_PRIORITY` get any."""
_PRIORITY = (
    "state", "run", "age", "size", "site", "loss", "note", "note", "cost", "speed", "run", "time",
    "shape", "ended",
)  # fmt: skip
"""The columns in the order in which they get cells."""


def cells_of(shown: RowValues) -> list[int]:
    """Return the cells that each column needs for a run; 0 for an empty column."""
    return [cell_len(_cell(column, shown, column.most)[0]) for column in _COLUMNS]


@lru_cache(maxsize=64)
def columns_for(
    width: int, cells: tuple[int, ...], *, several_sites: bool, by: OrderBy = OrderBy.NEWEST
) -> tuple[Column, ...]:
    """Return the columns that fit into `width` cells, preferring the most useful.

    `cells` contains the cells that each column needs for the runs shown; an empty column is
    omitted. The column of the sort key `by` is always included, the time since the end only then.
    """
    needed = {
        column.key: replace(
            column, width=max(column.least, cell_len(column.heading) + (column.by is by), size)
        )
        for column, size in zip(_COLUMNS, cells, strict=False)
        if (size or column.by is by) and (several_sites or column.key != "site")
        if column.key != "ended" or column.by is by
    }
    first = [key for key in needed if needed[key].by is by and key != "run"]
    chosen, room = dict[str, Column](), width + GAP
    for column in (needed[key] for key in (*first, *_PRIORITY) if key in needed):
        key, again = column.key, column.key in chosen
        had = chosen[key].width if again else -GAP
        wide = min(column.width, (_ENOUGH if again else _LEAST).get(key, column.width))
        if key == "run" or again:
            wide = max(8, min(wide, room + had))
        if key == "run" or wide - had <= room:
            chosen[key] = replace(column, width=wide)
            room -= wide - had
    for key in ("run", "note"):  # the last column takes the rest
        if key in chosen and room > 0:
            more = min(room, (needed["run"].width if key == "run" else width) - chosen[key].width)
            chosen[key] = replace(chosen[key], width=chosen[key].width + more)
            room -= more
    return tuple(chosen[column.key] for column in _COLUMNS if column.key in chosen)


def heading(columns: tuple[Column, ...], order: Order) -> list[Part]:
    """Return the line of headings; an arrow marks the sort key, up if the values rise."""
    parts = []
    for column in columns:
        sorts = column.by is order.by
        arrow = ("▴" if order.reverse is column.falls else "▾") if sorts else ""
        text = styled.fit(f"{column.heading}{arrow}", column.width, right=column.right)
        begin = len(text) - len(text.lstrip())
        end = max(begin, len(text.rstrip()))
        style = "bold underline" if sorts else "bold"
        parts += [(text[:begin], ""), (text[begin:end], style), (text[end:] + " " * GAP, "")]
    return parts


def row(columns: tuple[Column, ...], shown: RowValues) -> list[Part]:
    """Return the cells of a run, each as wide as its column plus a gap."""
    parts = []
    for column in columns:
        text, style = _cell(column, shown, column.width)
        parts.append((styled.fit(text, column.width, right=column.right) + " " * GAP, style))
    return parts


def _cell(column: Column, shown: RowValues, width: int) -> Part:
    if column.key in _OF_ONE and shown.line.members:
        return "", ""
    return column.cell(shown, width)


def moves(run: Run, now: float) -> bool:
    """Return whether a row changes every second, like an age in its first minute."""
    return not run.state.is_final or now - run.created < 60
