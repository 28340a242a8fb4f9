"""Words as the screens draw them: safe, coloured, cut to a width, in a table. Pure."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from rich.cells import cell_len, set_cell_size
from rich.console import RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text
from textual.strip import Strip

from lumitui.app.runs import State, log_line

COLOURS: dict[State, str] = {
    State.SENDING: "cyan",
    State.UNKNOWN: "bold magenta",
    State.REFUSED: "red",
    State.NOT_SENT: "red",
    State.QUEUED: "yellow",
    State.RUNNING: "bold green",
    State.FINISHING: "green",
    State.DONE: "blue",
    State.FAILED: "bold red",
    State.CANCELLED: "bright_black",
    State.TIMEOUT: "bold red",
    State.OUT_OF_MEMORY: "bold red",
    State.NODE_FAILED: "bold red",
    State.PREEMPTED: "bold red",
}
"""The word itself is always shown; the colour only helps."""

VERDICTS = {
    "proved": "bold green",
    "differs": "bold red",
    "unbound": "yellow",
    "not measured": "yellow",
    "pending": "cyan",
}
"""The colours of a proof's verdict."""

SERIES = (
    "#4e9fdd", "#e8ab3a", "#5fbf77", "#c58af9", "#58c7c7", "#e58f65", "#d977a8", "#a3b84b",
)  # fmt: skip
"""The colours of runs, lines and ranks. Without red, which means an error."""

GLYPHS: dict[State, str] = {
    State.SENDING: "→",
    State.UNKNOWN: "?",
    State.QUEUED: "○",
    State.RUNNING: "▶",
    State.FINISHING: "▷",
    State.DONE: "✔",
    State.CANCELLED: "-",
    State.NOT_SENT: "-",
}
"""A sign before the word, for states that are not failures."""
FAILED = "✖"


def glyph(state: State) -> str:
    """Return the sign of a state, one cell; its word is always beside it."""
    return GLYPHS.get(state, FAILED)


def state_text(state: State) -> Text:
    """Return the state's word in its colour."""
    return Text(str(state), style=COLOURS[state], no_wrap=True)


def plain(text: str, style: str = "") -> Text:
    """Return text from anywhere without markup and without control characters."""
    return Text("\n".join(log_line(line) for line in text.split("\n")), style)


def labelled(lines: Iterable[tuple[str, str | Text]], labels: int = 0, style: str = "") -> Table:
    """Return lines of (label, value) as a table without rules; no `str` in it is markup.

    The labels have at least `labels` cells; `style` is that of values without one.
    """
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=labels or None)
    table.add_column(overflow="fold")
    for label, value in lines:
        words = value if isinstance(value, Text) else plain(value, style)
        table.add_row(plain(label, "dim"), words)
    return table


TWO_COLUMNS = 110
"""Minimum cells for two columns of (label, value)."""


def side_by_side(left: RenderableType, right: RenderableType) -> Table:
    """Return two parts beside each other; the left one has a little more room."""
    table = Table.grid(expand=True, padding=(0, 2, 0, 0))
    table.add_column(ratio=6)
    table.add_column(ratio=5)
    table.add_row(left, right)
    return table


def bar(parts: Sequence[tuple[float, str, str]], width: int) -> Text:
    """Return amounts, each with its sign and style, as shares of a bar; the least has a cell."""
    seen = [part for part in parts if part[0] > 0]
    whole, done = sum(amount for amount, _, _ in seen), 0.0
    text = Text(no_wrap=True)
    for left, (amount, sign, style) in enumerate(seen):
        done += amount
        room = len(seen) - 1 - left  # a cell for each that follows
        end = min(width - room, max(round(done / whole * width), len(text) + 1))
        text.append(sign * (end - len(text)), style)
    return text


def shorten(text: str, width: int) -> str:
    """Return `text` in at most `width` cells; keeps its end, where ids of a name differ.

    Letters of CJK and emoji take two cells.
    """
    if cell_len(text) <= width:
        return text
    if width < 2:
        return "…"[:width]
    room, at = min(7, width // 2), len(text)
    while at and cell_len(text[at - 1 :]) <= room:
        at -= 1
    end = text[at:]
    return f"{set_cell_size(text, width - cell_len(end) - 1).rstrip()}…{end}"


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Return `text` in exactly `width` cells, at the left or the right; its beginning stays."""
    if cell_len(text) > width:
        text = f"{set_cell_size(text, width - 1)}…" if width > 1 else "…"[:width]
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


@lru_cache(maxsize=256)
def _style(base: Style, words: str) -> Style:
    return base + Style.parse(words)


def strip(parts: Sequence[tuple[str, str]], width: int, base: Style) -> Strip:
    """Return a row of `width` cells from texts and their styles."""
    segments = [Segment(text, _style(base, style)) for text, style in parts]
    return Strip(segments).adjust_cell_length(width, base)
