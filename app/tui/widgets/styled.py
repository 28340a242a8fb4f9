"""Text for screens: safe, coloured, cut to a width, in a table. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console, RenderableType
from rich.containers import Lines
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text
from textual.strip import Strip

from lumitui.app.runs import State, log_line

GAP = 2
"""Cells between two columns."""
COLOURS: dict[State, str] = {
    State.SENDING: "cyan", State.UNKNOWN: "bold magenta", State.REFUSED: "red",
    State.NOT_SENT: "red", State.QUEUED: "yellow", State.RUNNING: "bold green",
    State.FINISHING: "green", State.DONE: "blue", State.FAILED: "bold red",
    State.CANCELLED: "bright_black", State.TIMEOUT: "bold red", State.OUT_OF_MEMORY: "bold red",
    State.NODE_FAILED: "bold red", State.PREEMPTED: "bold red",
}  # fmt: skip
"""Colours of states; the state itself is always shown as a word."""
VERDICTS = {
    "proved": "bold green", "differs": "bold red", "unbound": "yellow", "not measured": "yellow",
    "pending": "cyan",
}  # fmt: skip
"""The colours of a proof's verdict."""
SERIES = (
    "#4e9fdd", "#e8ab3a", "#5fbf77", "#c58af9", "#58c7c7", "#e58f65", "#d977a8", "#a3b84b",
)  # fmt: skip
"""The colours of runs, lines and ranks, without red, which means an error."""


def rank_colour(rank: int) -> str:
    """Return the colour of a local rank, the same wherever it is shown."""
    return SERIES[rank % len(SERIES)]


GLYPHS: dict[State, str] = {
    State.SENDING: "→", State.UNKNOWN: "?", State.QUEUED: "○", State.RUNNING: "▶",
    State.FINISHING: "▷", State.DONE: "✔", State.CANCELLED: "-", State.NOT_SENT: "-",
}  # fmt: skip
"""The sign before a state, one cell wide; all others failed, and have ✖."""


def state_text(state: State) -> Text:
    """Return the state in its colour."""
    return Text(str(state), style=COLOURS[state], no_wrap=True)


class _Plain(Text):
    """A text whose long paths break after a slash."""

    def wrap(self, console: Console, width: int, **options: Any) -> Lines:
        if options.get("no_wrap") or options.get("overflow") not in (None, "fold"):
            return super().wrap(console, width, **options)
        parts = Text("\n").join(self.divide(_breaks(self.plain, max(1, width))))
        return parts.wrap(console, width, **options)


def _breaks(text: str, width: int) -> Iterator[int]:
    """Yield where to break the words that are longer than a line."""
    for word in re.finditer(rf"\S{{{width + 1},}}", text):
        at = word.start()
        while word.end() - at > width:
            slash = text.rfind("/", at + 1, at + width)
            yield (at := slash + 1 if slash > 0 else at + width)


def plain(text: str, style: str = "") -> Text:
    """Return untrusted text without markup and control characters."""
    return _Plain("\n".join(log_line(line) for line in text.split("\n")), style)


def labelled(lines: Iterable[tuple[str, str | Text]], labels: int = 0) -> Table:
    """Return lines of (label, value) as a table without borders; no `str` in it is markup.

    The labels take at least `labels` cells.
    """
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, min_width=labels or None)
    table.add_column(overflow="fold")
    for label, value in lines:
        table.add_row(plain(label, "dim"), value if isinstance(value, Text) else plain(value))
    return table


TWO_COLUMNS = 110
"""Minimum width, in cells, for two columns of (label, value)."""


def side_by_side(left: RenderableType, right: RenderableType) -> Table:
    """Return two parts side by side; the left one is a little wider."""
    table = Table.grid(expand=True, padding=(0, 2, 0, 0))
    table.add_column(ratio=6)
    table.add_column(ratio=5)
    table.add_row(left, right)
    return table


def bar(parts: Sequence[tuple[float, str, str]], width: int) -> Text:
    """Return amounts as shares of a bar, with their signs and styles; each has at least a cell."""
    seen = [part for part in parts if part[0] > 0]
    whole, done = sum(amount for amount, _, _ in seen), 0.0
    text = Text(no_wrap=True)
    for left, (amount, sign, style) in enumerate(seen):
        done += amount
        room = len(seen) - 1 - left  # a cell for each remaining part
        end = min(width - room, max(round(done / whole * width), len(text) + 1))
        text.append(sign * (end - len(text)), style)
    return text


def shorten(text: str, width: int) -> str:
    """Return `text` in at most `width` cells; keep its end, which distinguishes ids.

    CJK characters and emoji take two cells.
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
    """Return `text` in exactly `width` cells, aligned left or right; keep its beginning."""
    if cell_len(text) > width:
        text = f"{set_cell_size(text, width - 1)}…" if width > 1 else "…"[:width]
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def phrase(text: str, width: int) -> str:
    """Return `text` in at most `width` cells, without its last phrases if it is too long."""
    kept = text
    while cell_len(kept) > width:
        shorter = re.split(r"(?:[,:;]| \() ?[^,:;(]*$", kept)[0]
        if shorter == kept or not shorter:
            return fit(kept, width).rstrip()
        kept = shorter
    return kept


@lru_cache(maxsize=256)
def _style(base: Style, words: str) -> Style:
    return base + Style.parse(words)


def strip(parts: Sequence[tuple[str, str]], width: int, base: Style) -> Strip:
    """Return a row of `width` cells from texts and their styles."""
    segments = [Segment(text, _style(base, style)) for text, style in parts]
    return Strip(segments).adjust_cell_length(width, base)
