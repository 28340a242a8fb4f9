"""Plots in cells: braille lines over axes with round numbers. Pure."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, pairwise

from rich.text import Text

_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""The bits of a braille cell: its left column from the top, then its right one."""
_COLUMNS = {
    (side, top, bottom): sum(_DOTS[side][top : bottom + 1])
    for side in range(2) for top in range(4) for bottom in range(4)
}  # fmt: skip
"""The bits between two dots of a column, cached: summing them took half of a drawing."""
_GRID = 4  # cells between two dots of a grid line, and of a dash where lines coincide
_PIECE = 8  # number of cells of a row drawn as one text
_BLANK = (" ", "")
_TALL = 12  # minimum rows of a plot to draw a single line thicker
_END = 2  # cells to the right of all lines, for each line's letter
_BARS = "▁▂▃▄▅▆▇"
_LARGEST = 1e300
"""Sums and differences of larger numbers would be infinite, so these leave gaps in a line."""

Point = tuple[float, float]


@dataclass(frozen=True)
class PlotLine:
    """One line, its colour, and its letter for terminals without colours."""

    name: str
    points: Sequence[Point]
    """Points by ascending x; a non-finite point leaves a gap."""
    style: str = "cyan"
    mark: str = ""
    """The letter at the line's end, as in the legend."""
    bars: Sequence[tuple[float, float, float]] = ()
    """Intervals: x, the lowest y, the highest y."""
    sign: str = ""
    """A sign at each point."""
    joined: bool = True
    is_behind: bool = False
    """Whether to draw the line dim, behind the others."""
    unit: str = ""
    """The name of the x axis, if it is not the chart's."""

    def near(self, x: float) -> Point | None:
        """Return the point nearest to `x`; None if the line has no points."""
        at = bisect_left(self.points, x, key=lambda point: point[0])
        return min(self.points[max(0, at - 1) : at + 1], key=lambda p: abs(p[0] - x), default=None)


@dataclass(frozen=True)
class AxisScale:
    """The range of an axis."""

    low: float
    high: float
    is_log: bool = False
    step: float = 0.0
    """Distance between two labels; 0: as many as fit."""

    @classmethod
    def over(cls, values: Sequence[float], *, log: bool, margin: float = 0.0) -> "AxisScale":
        """Return the scale of `values`, with a fraction of it as margin at both ends.

        It is linear if a value has no logarithm.
        """
        low, high = min(values), max(values)
        log = log and low > 1 / _LARGEST
        if low == high:
            around = abs(low) / 10 or 1.0
            low, high = (low / 2, high * 2) if log else (low - around, high + around)
        if log:
            more = (high / low) ** margin
            return cls(max(low / more, 1 / _LARGEST), min(high * more, _LARGEST), log)
        more = (high - low) * margin
        return cls(low - more, high + more)

    def share(self, value: float) -> float:
        """Return the position of `value`, from 0 to 1."""
        low, high = self.low, self.high
        if self.is_log:
            value, low, high = math.log(value), math.log(low), math.log(high)
        return min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.5

    def ticks(self, most: int) -> list[float]:
        """Return some round numbers, at most `most` + 1; `most` is at least 3."""
        if self.is_log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for digits in ((1, 2, 5), (1,)):
                made = [digit * 10.0**power for power in powers for digit in digits]
                inside = [value for value in made if self.low <= value <= self.high]
                if 2 <= len(inside) <= most:
                    return inside
            if len(inside) > most:
                return inside[:: -(-len(inside) // most)]
        step = self.step or _steps((self.high - self.low) / most)[0]
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [step * at for at in range(first, min(last, first + 99) + 1)]

    def even(self, rows: int) -> "AxisScale":
        """Return the scale, extended by up to 30 % if its labels are then whole rows apart.

        A row of a logarithmic scale may cover much, so powers of ten lie in the middle of theirs.
        """
        if self.is_log:
            for per in range(4 * rows, 0, -1):  # rows per power of ten
                # The ends may lie half a dot, an eighth of a row, outside: the same dot shows them.
                low = (math.floor(math.log10(self.low) * per + 0.5) - 0.375) / per
                high = low + (rows - 0.25) / per
                if math.log10(self.high) - 0.125 / per <= high < math.log10(_LARGEST):
                    return AxisScale(10.0**low, 10.0**high, is_log=True)
            return self
        span = self.high - self.low
        for step in _steps(span / max(4, rows / 3)):
            apart = step * (rows - 0.25) / span
            growth = apart / max(1, int(apart)) - 1
            if 0 <= growth <= 0.3 and 2 * step <= span:
                more = span * growth / 2
                even = AxisScale(self.low - more, self.high + more, step=step)
                if len(even.ticks(4)) > 1:
                    return even
        return self


def _steps(least: float) -> list[float]:
    """Return the two smallest round numbers of at least `least`."""
    power = 10.0 ** math.floor(math.log10(max(least, 1e-300)))
    return [digit * power for digit in (1, 2, 5, 10, 20) if digit * power >= least][:2]


def labels(values: Sequence[float]) -> list[str]:
    """Return an axis's labels, with the decimals that the two closest numbers need."""
    gaps = [b - a for a, b in pairwise(values) if b > a] or [abs(value) or 1.0 for value in values]
    decimals = max(0, -math.floor(math.log10(min(gaps, default=1.0)) + 1e-9))
    if decimals > 4 or max(map(abs, values), default=0.0) >= 1e7:
        return [f"{value:.3g}" for value in values]
    return [f"{value:,.{decimals}f}" for value in values]


@dataclass(frozen=True)
class Plot:
    """Lines in a layout of `width` cells and `height` rows."""

    lines: Sequence[PlotLine]
    width: int
    height: int
    log_y: bool = False
    log_x: bool = False
    cursor: float | None = None
    """The x of the crosshair."""
    places: Mapping[float, str] = field(default_factory=dict)
    """Numbers below the x axis and their labels; round numbers by default."""
    over: str = ""
    """The name of the x axis."""

    @cached_property
    def _points(self) -> list[Point]:
        """All drawn points, including the ends of intervals."""
        points = [point for line in self.lines for point in line.points if _finite(point)]
        return points + [(x, y) for line in self.lines for x, *ends in line.bars for y in ends]

    @cached_property
    def _x(self) -> AxisScale:
        return AxisScale.over([x for x, _ in self._points], log=self.log_x)

    @cached_property
    def _y(self) -> AxisScale:
        rows = max(1, self.height - 2)
        values = [y for _, y in self._points]
        # A margin of half a row at both ends, so that no line lies on the frame.
        margin = 0.0 if self.log_y else 0.5 / rows
        return AxisScale.over(values, log=self.log_y, margin=margin).even(rows)

    @cached_property
    def _left(self) -> tuple[dict[int, str], int]:
        """The labels of the y axis by row, and the width of the widest."""
        ticks = self._y.ticks(max(4, (self.height - 2) // 3))
        words = dict(zip(map(self._row, ticks), labels(ticks), strict=True))
        return words, max(map(len, words.values()), default=0)

    @property
    def room(self) -> int:
        """Width of the lines, to the right of the axis."""
        return self.width - self._left[1] - 1 - _END

    def _row(self, y: float) -> int:
        return round((1 - self._y.share(y)) * (4 * (self.height - 2) - 1)) // 4

    def column(self, x: float) -> int:
        """Return the column of `x`, counted from the axis."""
        return round(self._x.share(x) * (2 * self.room - 1)) // 2

    def stops(self) -> list[float]:
        """Return the crosshair's positions: one x for each column with points."""
        every = sorted({x for x, _ in self._points})
        return sorted({self.column(x): x for x in every}.values())

    def rows(self) -> list[Text]:
        """Return the rows; empty if there are no points or there is no room."""
        if not self._points or self.height < 4 or self.width < 24 or self.room < 2:
            return []
        rows, (words, left) = self.height - 2, self._left
        # Grid lines are dotted: a nearly level curve would interrupt a solid line for a long
        # stretch.
        room = self.room + _END
        grid = [("·", "dim bright_black") if at % _GRID == 0 else _BLANK for at in range(room)]
        cells = [[*grid] if at in words else [_BLANK] * room for at in range(rows)]
        if self.cursor is not None:
            for row in cells:
                row[self.column(self.cursor)] = ("│", "dim")
        self._draw(cells)
        made = []
        for at, row in enumerate(cells):
            text = Text(no_wrap=True, end="")
            text.append(f"{words.get(at, ''):>{left}}{'┤' if at in words else '│'}", "dim")
            # Split into pieces that an image can place individually: braille is wider in many
            # fonts.
            for at in range(0, len(row), _PIECE):
                for style, group in groupby(row[at : at + _PIECE], key=lambda cell: cell[1]):
                    text.append("".join(char for char, _ in group), style)
            made.append(text)
        return [*made, *(Text(line, "dim", no_wrap=True, end="") for line in self._below(left))]

    def _draw(self, cells: list[list[tuple[str, str]]]) -> None:
        """Draw the lines, the last on top, in dashes where they coincide; a letter at each end."""
        lines = sorted(self.lines, key=lambda line: not line.is_behind)
        # A single line looks thin; several thick lines, or one in few rows, would run together.
        dots = 3 if len(self.lines) == 1 and self.height > _TALL else 2
        shared: Counter[tuple[int, int]] = Counter()
        for line in lines:
            style = f"dim {line.style}" if line.is_behind else line.style
            shares = [
                (self._x.share(x), self._y.share(y)) if _finite((x, y)) else None
                for x, y in (line.points if line.joined else ())
            ]
            masks: dict[tuple[int, int], int] = {}
            for row, column, mask in braille(shares, self.room, self.height - 2, dots):
                masks[row, column] = masks.get((row, column), 0) | mask
            if line.mark:
                shared.update(masks.keys())
            above = lines[0].is_behind and not line.is_behind
            for (row, column), mask in masks.items():
                dash, count = column // _GRID + 1, max(1, shared[row, column])
                # The chosen line keeps two dashes of three, the others share what is left.
                if (count == 1 or dash % 3) if above else -dash % count == 0:
                    cells[row][column] = (chr(0x2800 + mask), style)
        for line in lines:
            for x, low, high in line.bars:
                top, bottom, column = self._row(high), self._row(low), self.column(x)
                for row in range(top, bottom + 1) if bottom - top > 1 else ():
                    cells[row][column] = ("│", line.style)
            known = [point for point in line.points if _finite(point)]
            for x, y in known if line.sign else ():
                cells[self._row(y)][self.column(x)] = (line.sign, f"bold {line.style}")
        marked = [line for line in lines if line.mark]
        ends = [(line, at) for line in marked for at in [*filter(_finite, line.points)][-1:]]
        ends.sort(key=lambda end: -end[1][1])  # no letter is above that of a higher end
        last, row, beside = len(cells) - len(ends), -1, 0
        for at, (line, (x, y)) in enumerate(ends):
            # Two lines that end together have their letters side by side.
            beside = 1 if at and not beside and self._row(y) == row else 0
            row = row if beside else max(0, min(max(row + 1, self._row(y)), last + at))
            cells[row][self.column(x) + 1 + beside] = (line.mark, f"bold {line.style}")

    def _below(self, left: int) -> tuple[str, str]:
        """Return the x axis and its labels, omitting labels without room."""
        axis, below = ["─"] * (self.room + _END), [" "] * self.width
        widest = len(f"{self._x.high:,.0f}")
        every = list(self.places) or self._x.ticks(max(3, self.room // (widest + 4)))
        ticks = [tick for tick in every if tick == round(tick)]  # steps are whole numbers
        words = list(self.places.values()) or labels(ticks)
        for tick, word in zip(ticks, words, strict=False):
            column = self.column(tick)
            begin = min(len(below) - len(word), max(0, left + 1 + column - len(word) // 2))
            if begin >= 0 and not "".join(below[max(0, begin - 2) : begin + len(word) + 2]).strip():
                below[begin : begin + len(word)] = word
                axis[column] = "┬"
        # The name stands below the y axis or at the end, where it leaves a blank to the labels.
        for begin in (0, len(below) - len(self.over)):
            if not "".join(below[max(0, begin - 1) : begin + len(self.over) + 1]).strip():
                below[begin : begin + len(self.over)] = self.over
                break
        return " " * left + "└" + "".join(axis), "".join(below)


def _finite(point: Point) -> bool:
    return all(abs(number) < _LARGEST for number in point)  # comparisons with NaN are false


def smoothed(points: Sequence[Point], weight: float) -> list[Point]:
    """Return the unbiased exponential mean, like TensorBoard's, which starts at the first value."""
    mean, whole, made = 0.0, 0.0, []
    for x, y in points:
        if _finite((x, y)):
            mean, whole = mean * weight + y * (1 - weight), whole * weight + 1 - weight
            y = mean / whole
        made.append((x, y))
    return made


def braille(
    shares: Sequence[Point | None], width: int, rows: int, dots: int
) -> Iterator[tuple[int, int, int]]:
    """Yield the row, column and bits of the cells that a line of `dots` thickness crosses.

    Points are fractions, from 0 to 1, of the width and (upwards) of the height; None is a gap.
    """
    right, below = 2 * width - 1, 4 * rows - 1
    spans: dict[int, Point] = {}
    before: Point | None = None
    for share in shares:
        if share is None:
            before = None
            continue
        x, y = share[0] * right, (1 - share[1]) * below
        x0, y0 = before or (x, y)
        for at in range(round(x0), round(x) + 1):
            # A column of dots covers all that the line crosses between the column's edges.
            edges = [min(x, max(x0, edge)) for edge in (at - 0.5, at + 0.5)]
            steep = (y - y0) / (x - x0) if x > x0 else 0.0
            ends = [y0 + steep * (edge - x0) for edge in edges] if steep else [y0, y]
            low, high = spans.get(at, (ends[0], ends[0]))
            spans[at] = (min(low, *ends), max(high, *ends))
        before = (x, y)
    for at, (low, high) in spans.items():
        top, bottom = round(low), min(below, max(round(low) + dots - 1, round(high)))
        for row in range(top // 4, bottom // 4 + 1):
            first, last = max(0, top - 4 * row), min(3, bottom - 4 * row)
            yield row, at // 2, _COLUMNS[at % 2, first, last]


def sparkline(values: Sequence[float], width: int) -> str:
    """Return `values` as one line of bars, `width` cells long; empty without values.

    If there are many, the first twentieth is omitted, because a warm-up would flatten the rest. The
    highest bar leaves a gap below the line above.
    """
    shown = values[len(values) // 20 :]
    if not (known := [value for value in shown if abs(value) < _LARGEST]):
        return ""
    scale = AxisScale.over(known, log=False)
    cells = (shown[at * len(shown) // width] for at in range(width))
    last = len(_BARS) - 1
    bars = (_BARS[round(scale.share(one) * last)] if abs(one) < _LARGEST else " " for one in cells)
    return "".join(bars)
