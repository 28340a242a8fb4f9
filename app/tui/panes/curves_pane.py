"""Curves of several runs over each other in one chart, told apart by marks, not only by colour."""

from collections.abc import Iterator, Sequence

from rich.text import Text
from textual.widget import Widget

from lumitui.app.explain import words
from lumitui.app.runs import Curve

MARKS = ("o", "x", "+", "=")
"""Of each run."""
SEVERAL = "*"
"""Where more than one run has a point."""
STYLES = ("bold cyan", "bold yellow", "bold green", "bold magenta")
_LABEL = 11


class Curves(Widget):
    """Curves over the same steps, drawn to fill the widget."""

    def __init__(self, title: str) -> None:
        """Show nothing yet; `title` is above the curves."""
        super().__init__()
        self._title = title
        self._curves: Sequence[Curve] = ()

    def show(self, curves: Sequence[Curve]) -> None:
        """Draw `curves`, one for each run in the order of MARKS."""
        self._curves = curves
        self.display = any(len(one.values) > 1 for one in curves)
        self.refresh()

    def render(self) -> Text:
        """Draw the curves at the present size."""
        text = Text(f"{self._title}\n", "dim", no_wrap=True)
        lines = overlaid(self._curves, self.size.width, self.size.height - 1)
        for at, line in enumerate(lines):
            text.append(line[:_LABEL], "dim")
            for char in line[_LABEL:]:
                marked = char in MARKS and at < len(lines) - 1
                text.append(char, STYLES[MARKS.index(char)] if marked else "")
            text.append("\n")
        return text


def overlaid(curves: Sequence[Curve], width: int, height: int) -> list[str]:
    """Return `height` lines of at most `width` characters with all curves in them.

    Values that are no numbers have no mark. None for curves without values, or without room.
    """
    room, rows = width - _LABEL, height - 1
    drawn = [one for one in curves if one.values]
    values = [value for one in drawn for value in one.values if abs(value) < 1e300]
    if not values or room < 2 or rows < 2:
        return []
    first, last = min(one.first_step for one in drawn), max(one.last_step for one in drawn)
    low, high = min(values), max(values)
    grid = [[" "] * room for _ in range(rows)]
    for curve, mark in zip(curves, MARKS, strict=False):
        for column, value in _placed(curve, first, last, room):
            if abs(value) < 1e300:
                row = rows - 1 - round((value - low) / ((high - low) or 1.0) * (rows - 1))
                there = grid[row][column]
                grid[row][column] = mark if there in (" ", mark) else SEVERAL
    bounds = {0: _bound(high), rows - 1: _bound(low)}
    lines = [
        f"{bounds.get(at, ''):>{_LABEL - 1}} {''.join(cells)}" for at, cells in enumerate(grid)
    ]
    below, end = f"step {first:,}", f"{last:,}"
    if len(below) + 2 + len(end) <= room:
        below += end.rjust(room - len(below))
    return [*lines, (" " * _LABEL + below)[:width]]


def _placed(curve: Curve, first: int, last: int, room: int) -> Iterator[tuple[int, float]]:
    """Yield the column and value of each of the curve's points; the columns between are filled."""
    count = len(curve.values)
    if not count:
        return
    begin, end = (
        (step - first) / ((last - first) or 1) * (room - 1)
        for step in (curve.first_step, curve.last_step)
    )
    for column in range(round(begin), round(end) + 1):
        share = (column - begin) / ((end - begin) or 1.0)
        at = min(count - 1, max(0, round(share * (count - 1))))
        yield column, curve.values[at]


def _bound(value: float) -> str:
    """Return a value with three digits in at most ten characters."""
    short = f"{value:.3g}"
    text = words.number(float(short))
    return text if len(text) < _LABEL else short
