"""The lines of a log as rows of the screen: of one rank or of all, folded, wrapped. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style

from lumitui.app.tui.widgets.log.log_text import ShownLine

_MARKED = Style(reverse=True)
_FOUND = Style(bold=True, reverse=True)
_FOLDED = Style(bold=True, italic=True)


class LogRow(NamedTuple):
    """A part of a line."""

    line: ShownLine
    first: int
    last: int
    """Behind its last character."""


@dataclass(frozen=True)
class LineLayout:
    """How lines are laid out."""

    width: int
    """Cells to wrap at; 0: lines are not wrapped."""
    rank: int | None = None
    """The only rank shown; None: all, and what has no rank."""

    def rows(self, lines: Iterable[ShownLine]) -> list[LogRow]:
        """Return the rows of `lines`."""
        return [row for line in lines if self.shows(line) for row in self._parts(line)]

    def shows(self, line: ShownLine) -> bool:
        """Return whether `line` has any row."""
        if self.rank is not None:
            return line.rank == self.rank
        return line.fold is None or not line.fold.hides(line)

    def _parts(self, line: ShownLine) -> Iterator[LogRow]:
        text = line.text
        # Of ASCII no character is wider than a cell.
        if not self.width or len(text) * 2 <= self.width or cell_len(text) <= self.width:
            yield LogRow(line, 0, len(text))
            return
        at = 0
        for part in chop_cells(text, self.width):
            yield LogRow(line, at, at + len(part))
            at += len(part)


def fold_words(row: LogRow) -> str:
    """Return what is written behind a row of a folded traceback's last line; usually ""."""
    line = row.line
    is_end = row.last == len(line.text) and line.fold is not None and line.fold.head is line
    return line.fold.words if is_end and line.fold else ""


def segments(row: LogRow, base: Style, *, marked: bool, found: str) -> list[Segment]:
    """Return a row in its colours; what is `found` in it stands out."""
    text = row.line.text[row.first : row.last]
    base = base + _MARKED if marked else base
    if not row.line.spans and not found:
        parts = [Segment(text, base)]
    else:
        edges = {0, len(text)}
        spans = [
            (max(0, first - row.first), min(len(text), last - row.first), style)
            for first, last, style in row.line.spans
        ]
        spans += [(at, at + len(found), _FOUND) for at in _places(text, found)]
        for first, last, _ in spans:
            edges |= {min(max(first, 0), len(text)), min(max(last, 0), len(text))}
        cuts = sorted(edges)
        parts = []
        for first, last in pairwise(cuts):
            style = base
            for begin, end, own in spans:
                if begin <= first and last <= end:
                    style = style + own
            parts.append(Segment(text[first:last], style))
    if words := fold_words(row):
        parts.append(Segment(words, base + _FOLDED))
    return parts


def _places(text: str, found: str) -> Iterator[int]:
    """Yield where `found` is in `text`; small letters find large ones."""
    if not found:
        return
    where = text.lower() if found == found.lower() and len(text.lower()) == len(text) else text
    at = where.find(found)
    while at >= 0:
        yield at
        at = where.find(found, at + len(found))
