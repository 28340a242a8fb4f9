"""A metric over the steps as columns, with its bounds at the left and its steps below."""

from collections.abc import Sequence

from rich.text import Text
from textual.widget import Widget

from lumitui.app.results.summary import Curve, thinned

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
    values = [value / largest for value in thinned(curve.values, room)]
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
