"""Charts: a metric over its steps as columns, and a throughput over the number of nodes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual.widget import Widget

from lumitui.app.runs import Curve, thinned_curve

BARS = " ▁▂▃▄▅▆▇█"
LABEL = 10
"""Columns for the bounds: `-1.23e-308`."""


class Chart(Widget):
    """A curve, drawn to fill the widget."""

    def __init__(self, id: str) -> None:  # noqa: A002 -- Textual's own name for it
        """Show nothing yet."""
        super().__init__(id=id)
        self._curve = Curve()

    def show(self, curve: Curve) -> None:
        """Draw `curve`."""
        self._curve = curve
        self.refresh()

    def render(self) -> Text:
        """Draw the curve at the present size."""
        return Text("\n".join(columns(self._curve, self.size.width, self.size.height)))


def columns(curve: Curve, width: int, height: int) -> list[str]:
    """Return `height` lines of at most `width` characters; none for a curve without values.

    The lowest value is one eighth of a line high, the highest fills them all.
    """
    room, rows = width - LABEL - 1, height - 1
    if not curve.values or room < 1 or rows < 1:
        return []
    # Sums and differences of the largest numbers would be infinite.
    largest = max(map(abs, curve.values)) or 1.0
    values = [value / largest for value in thinned_curve(curve.values, room)]
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    levels = [1 + round((value - low) / span * (8 * rows - 1)) for value in values]
    lines = []
    for row in reversed(range(rows)):
        bars = "".join(BARS[min(8, max(0, level - 8 * row))] for level in levels)
        bound = high if row == rows - 1 else low if row == 0 else None
        label = "" if bound is None else f"{bound * largest:.3g}"
        lines.append(f"{label:>{LABEL}} {bars}")
    below, last = f"step {curve.first_step:,}", f"{curve.last_step:,}"
    if len(below) + 2 + len(last) <= len(values):
        below = below.ljust(len(values) - len(last)) + last
    return [*lines, f"{'':>{LABEL}} {below}"]


def sparkline(values: Sequence[float], width: int) -> str:
    """Return `values` as one line of at most `width` columns."""
    lines = columns(Curve(values=tuple(values)), width + LABEL + 1, 2)
    return lines[0][LABEL + 1 :] if lines else ""


@dataclass(frozen=True)
class ChartMark:
    """A size of a training: its throughput, and how far off that may be."""

    label: str
    """Below the chart."""
    size: float
    """Where it lies on the logarithmic axis, above 0."""
    ideal: float
    low: float
    high: float
    likely: float | None
    measured: bool


class ScalingChart(Widget):
    """Throughput over size with the ideal line, both axes logarithmic."""

    def __init__(self, id: str) -> None:  # noqa: A002 -- Textual's own name for it
        """Show nothing yet."""
        super().__init__(id=id)
        self._marks: Sequence[ChartMark] = ()

    def show(self, marks: Sequence[ChartMark]) -> None:
        """Draw `marks`, which are in the order of their sizes."""
        self._marks = marks
        self.set_class(len(marks) > 1, "drawn")
        self.refresh()

    def render(self) -> Text:
        """Draw them at the present size."""
        return Text("\n".join(scatter(self._marks, self.size.width, self.size.height)))


LEGEND = "● measured  ○ predicted  │ interval  · ideal"


def scatter(marks: Sequence[ChartMark], width: int, height: int) -> list[str]:
    """Return `height` lines of at most `width` characters; none where nothing fits."""
    room, rows = width - LABEL - 1, height - 2
    if len(marks) < 2 or rows < 2 or room < 2 * len(marks):
        return []
    low = min(min(mark.low, mark.ideal) for mark in marks)
    high = max(max(mark.high, mark.ideal) for mark in marks)
    left, right = math.log(marks[0].size), math.log(marks[-1].size)

    def row(speed: float) -> int:
        span = math.log(high) - math.log(low)
        return round((math.log(high) - math.log(speed)) / span * (rows - 1)) if span else 0

    def column(size: float) -> int:
        share = (math.log(size) - left) / (right - left) if right > left else 0.0
        return round(share * (room - 1))

    cells = [[" "] * room for _ in range(rows)]
    ratio = marks[0].ideal / marks[0].size
    for at in range(room):
        size = math.exp(left + at / (room - 1) * (right - left))
        cells[min(rows - 1, max(0, row(ratio * size)))][at] = "·"
    for mark in marks:
        at = column(mark.size)
        for line in range(row(mark.high), row(mark.low) + 1):
            cells[line][at] = "│"
        if mark.likely is not None:
            cells[row(mark.likely)][at] = "●" if mark.measured else "○"
    bounds = {0: _bound(high), rows - 1: _bound(low)}
    lines = [f"{bounds.get(at, ''):>{LABEL}} {''.join(line)}" for at, line in enumerate(cells)]
    below = [" "] * room
    for mark in marks:
        begin = min(column(mark.size), room - len(mark.label))
        if begin >= 0 and not "".join(below[max(0, begin - 1) :]).strip():
            below[begin : begin + len(mark.label)] = mark.label
    lines.append(f"{'nodes':>{LABEL}} {''.join(below)}")
    lines.append(f"{'samples/s':>{LABEL}} {LEGEND[:room]}")
    return lines


def _bound(value: float) -> str:
    return f"{value:,.0f}" if 100 <= value < 1e7 else f"{value:.3g}"
