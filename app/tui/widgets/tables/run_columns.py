"""The columns of the list of runs: which ones a width has room for, and their cells. Pure."""

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

Part = tuple[str, str]
"""Text and its style as Rich writes it."""


@dataclass(frozen=True)
class RowValues:
    """A run as its row shows it."""

    run: Run
    line: TreeLine
    glance: Glance
    marked: bool
    now: float


@dataclass(frozen=True)
class Column:
    """One column."""

    key: str
    heading: str
    width: int
    cell: Callable[[RowValues, int], Part]
    by: OrderBy | None = None
    """What a click on its heading sorts by."""
    right: bool = False


def _state(shown: RowValues, width: int) -> Part:
    state = shown.run.state
    mark = "*" if shown.marked else " "
    if shown.line.folded and shown.line.summary:  # its own state would be taken for that of all
        return f"{mark}  {shown.line.children + 1} runs", ""
    return f"{mark}{styled.glyph(state)} {state}", styled.COLOURS[state]


def _run(shown: RowValues, width: int) -> Part:
    line = shown.line
    fold = f" +{line.children}" if line.folded else ""
    guide = line.guide
    room = max(8, width - len(guide + fold))
    name, chips = shown.run.id, _chips(shown.run, room)
    return f"{guide}{styled.shorten(name, room - cell_len(chips))}{fold}{chips}", ""


def name_width(run: Run | None, line: TreeLine) -> int:
    """Return how many cells the id of a run takes with what stands around it, tags among them."""
    around = len(line.guide) + (len(f" +{line.children}") if line.folded else 0)
    tags = cell_len(log_line(split_tags(run.note)[1])) if run else 0
    return around + cell_len(line.id) + (1 + tags if tags else 0)


def _chips(run: Run, room: int) -> str:
    """Return a run's tags as they stand behind its id, which keeps at least `_LEAST_ID` cells."""
    tags = log_line(split_tags(run.note)[1])
    left = room - min(cell_len(run.id), max(_LEAST_ID, room - _LEAST_CHIP)) - 1
    return f" {styled.fit(tags, min(left, cell_len(tags)))}" if tags and left > 1 else ""


def _plain(read: Callable[[Run, float], str], style: str = "") -> Callable[[RowValues, int], Part]:
    return lambda shown, width: (log_line(read(shown.run, shown.now)), style)


BAR = 6
"""Cells of the bar of a running job."""


def _bar(shown: RowValues, width: int) -> Part:
    share = row_words.share(shown.run, shown.now)
    if share is None:
        return "", ""
    done = round(share * width)
    return "━" * done + "╌" * (width - done), "bold red" if share > 0.9 else "green"


def _loss(shown: RowValues, width: int) -> Part:
    return row_words.figure(shown.glance.last_loss), ""


_STATE = Column("state", "  State", 16, _state, OrderBy.STATE)
_RUN = Column("run", "Run", 14, _run, OrderBy.NAME)
_SIZE = Column(
    "size", "NxGPU", 6, _plain(lambda run, now: row_words.size(run)), OrderBy.NODES, right=True
)
_RANKS = replace(_SIZE, heading="NxRank")
_TIME = Column("time", "Time", 9, _plain(words.elapsed_of_limit), OrderBy.END, right=True)
_SITE = Column("site", "Site", 8, _plain(lambda run, now: run.site))
_AGE = Column(
    "age", "Age", 5, _plain(row_words.age), OrderBy.NEWEST,
    right=True,
)  # fmt: skip
_BAR = Column("bar", "", BAR, _bar)
_LOSS = Column("loss", "Loss", 5, _loss, right=True)
_SHAPE = Column(
    "shape", "", 6, lambda shown, width: (row_words.shape(shown.glance.loss, width), "cyan")
)
_SPEED = Column(
    "speed", "Smp/s", 5, lambda shown, width: (row_words.figure(shown.glance.samples_per_s), ""),
    right=True,
)  # fmt: skip
_COST = Column("cost", "Cost", 6, _plain(row_words.cost), OrderBy.COST, right=True)
_ORDER = ("state", "run", "age", "site", "size", "bar", "time", "shape", "loss", "speed", "cost")
_SPAN = frozenset({"bar", "time", "shape", "loss", "speed", "cost"})
"""Columns that say nothing of a run that waits or has failed: there its words stand."""
_WIDEST_RUN = 40
_BASIC_RUN = 20
_LEAST_ID = 12
_LEAST_CHIP = 8
"""Cells for tags that even a long id leaves."""


@lru_cache(maxsize=64)
def columns_for(
    width: int,
    *,
    several_sites: bool,
    names: int = _WIDEST_RUN,
    by: OrderBy = OrderBy.NEWEST,
    on_cpu: bool = False,
) -> tuple[Column, ...]:
    """Return the columns that `width` cells have room for, the most useful first.

    The one that the list is sorted `by` is always there. `names`: cells of the longest id, and
    the most that the column of the ids gets. `on_cpu`: no run of the list has GPUs.
    """
    names = max(_LEAST_ID, min(names, _WIDEST_RUN))
    basic = min(names, _BASIC_RUN)
    size = _RANKS if on_cpu else _SIZE
    site = [_SITE] if several_sites else []
    wanted = [_AGE, size, _TIME, *site, _LOSS, _BAR, _SPEED, _COST, _SHAPE]
    wanted += [] if several_sites else [_SITE]
    chosen = [_STATE, *(column for column in wanted if column.by is by)]
    room = width - basic - sum(column.width + 1 for column in chosen)
    for column in wanted:
        if column in chosen:
            continue
        if room <= column.width:
            break
        chosen.append(column)
        room -= column.width + 1
    run = replace(_RUN, width=max(8, min(names, basic + room)))
    named = {column.key: column for column in [*chosen, run]}
    return tuple(named[key] for key in _ORDER if key in named)


def heading(columns: tuple[Column, ...], order: Order) -> list[Part]:
    """Return the line of headings; an arrow is beside what the list is sorted by."""
    parts = []
    for column in columns:
        sorts = column.by is order.by
        arrow = ("▴" if order.reverse else "▾") if sorts else ""
        text = styled.fit(f"{column.heading}{arrow}", column.width, right=column.right)
        parts.append((text + " ", "bold underline" if sorts else "bold"))
    return parts


def row(columns: tuple[Column, ...], shown: RowValues, width: int = 0) -> list[Part]:
    """Return the cells of a run, each as wide as its column and a blank more.

    Words in place of the last columns have all that is left of `width`.
    """
    room = max(width, sum(column.width + 1 for column in columns))
    room -= sum(column.width + 1 for column in columns if column.key not in _SPAN) + 1
    spans = any(column.key in _SPAN for column in columns)
    words = (_series(room, shown) or _words(room, shown)) if spans else None
    parts, spanned = [], False
    for column in columns:
        if words is None or column.key not in _SPAN:
            text, style = column.cell(shown, column.width)
            parts.append((styled.fit(text, column.width, right=column.right) + " ", style))
        elif not spanned:
            parts.append(words)
            spanned = True
    return parts


def moves(run: Run, now: float) -> bool:
    """Return whether the words of a run's row move by seconds; an age does in its first minute."""
    return not run.state.is_final or now - run.created < 60


def _series(room: int, shown: RowValues) -> Part | None:
    """Return how the runs of a folded series stand, in `room` cells."""
    if not shown.line.folded or not shown.line.summary:
        return None
    failed = any(f" {state}" in shown.line.summary for state in WENT_WRONG)
    return styled.fit(shown.line.summary, room) + " ", "red" if failed else "cyan"


def _words(room: int, shown: RowValues) -> Part | None:
    """Return the words of a run that waits or failed, in `room` cells."""
    run = shown.run
    said = log_line(row_words.news(run, shown.now).replace("\n", " "))
    if not said:
        return None
    if run.started is not None and room > cell_len(said) + _TIME.width:
        said = f"{said}  {words.elapsed_of_limit(run, shown.now)}"
    failed = run.state in WENT_WRONG
    style = "red" if failed else "yellow" if run.state is not State.CANCELLED else ""
    return styled.fit(said, room) + " ", style
