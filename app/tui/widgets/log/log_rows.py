"""A log's lines as screen rows: of one rank or all, folded and wrapped. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style

from lumitui.app.tui.widgets.log.line_kinds import DIM, ShownLine, figures_of, tone_of

_MARKED = Style(reverse=True)
_FOUND = Style(bold=True, reverse=True)
_FOLDED = Style(bold=True, italic=True)


class LogRow(NamedTuple):
    """A part of a line."""

    line: ShownLine
    first: int
    last: int
    """End (exclusive); below the start if a fold's text replaces the line."""


@dataclass(frozen=True)
class LineLayout:
    """The layout of lines."""

    width: int
    """Width to wrap at, in cells; 0: no wrapping."""
    rank: int | None = None
    """The only displayed rank; None: all lines, with or without a rank."""

    def rows(self, lines: Iterable[ShownLine]) -> list[LogRow]:
        """Return the rows of `lines`."""
        return [row for line in lines if self.shows(line) for row in self._parts(line)]

    def shows(self, line: ShownLine) -> bool:
        """Return whether `line` has any rows."""
        if self.rank is not None and line.rank != self.rank:
            return False
        if line.noise is not None and line.noise.closed:
            return line.noise.heads[self.rank] is line
        return line.fold is None or self.rank is not None or not line.fold.hides(line)

    def is_read(self, line: ShownLine) -> bool:
        """Return whether `line` itself is shown, instead of its fold's text."""
        return self.shows(line) and not (line.noise and line.noise.closed)

    def fold_words(self, line: ShownLine) -> str:
        """Return its fold's text at `line`; usually ""."""
        if line.noise is not None:
            return line.noise.words(self.rank) if line.noise.heads.get(self.rank) is line else ""
        return line.fold.words if line.fold is not None and line.fold.head is line else ""

    def _parts(self, line: ShownLine) -> Iterator[LogRow]:
        text = line.text
        if line.noise is not None and line.noise.closed:
            yield LogRow(line, 0, -1)
            return
        # ASCII characters are one cell wide.
        if not self.width or len(text) * 2 <= self.width or cell_len(text) <= self.width:
            yield LogRow(line, 0, len(text))
            return
        at = 0
        for part in chop_cells(text, self.width):
            yield LogRow(line, at, at + len(part))
            at += len(part)


def segments(row: LogRow, base: Style, words: str, *, marked: bool, found: str) -> list[Segment]:
    """Return a row in its colours, with `found` highlighted and its fold's text at the end."""
    line, base = row.line, base + _MARKED if marked else base
    if row.last < row.first:
        return [Segment(words, base + DIM)]
    text, toned = line.text[row.first : row.last], base + tone_of(line)
    spans = [(0, line.label, DIM), *line.spans] if line.label else list(line.spans)
    spans = [
        (max(0, first - row.first), min(len(text), last - row.first), style)
        for first, last, style in spans
    ]
    if not line.spans and not tone_of(line):
        spans += figures_of(text)
    spans += [(at, at + len(found), _FOUND) for at in _places(text, found)]
    edges = {0, len(text)}
    for first, last, _ in spans:
        edges |= {min(max(first, 0), len(text)), min(max(last, 0), len(text))}
    parts = []
    for first, last in pairwise(sorted(edges)):
        style = toned
        for begin, end, own in spans:
            if begin <= first and last <= end:
                style = style + own
        parts.append(Segment(text[first:last], style))
    if words and row.last == len(line.text):
        folded = DIM if line.noise is not None else _FOLDED
        parts.append(Segment(f"  {words.strip()}", base + folded))
    return parts


def _places(text: str, found: str) -> Iterator[int]:
    """Yield the positions of `found` in `text`; lower-case letters match upper-case ones."""
    if not found:
        return
    where = text.lower() if found == found.lower() and len(text.lower()) == len(text) else text
    at = where.find(found)
    while at >= 0:
        yield at
        at = where.find(found, at + len(found))
