"""The chart of all screens: lines over an axis, with a legend and a crosshair."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widget import Widget

from lumitui.app.explain.words import number
from lumitui.app.runs import Curve
from lumitui.app.tui.widgets.plot import Plot, PlotLine, smoothed
from lumitui.app.tui.widgets.styled import SERIES, plain, shorten

MARKS = "abcd"
"""The letters that distinguish several lines without colours."""
SMOOTHING = (0.0, 0.6, 0.9, 0.97)
"""Weights of the moving average, as in TensorBoard's slider."""
SMOOTHED = 50
"""Minimum points of a line to smooth it unasked: the end of a shorter one would be far off."""
_LEAST_NAME = 14  # minimum cells of a name in the legend; with less room, only its letter is shown
_CROSSHAIR = Binding.Group("Read values", compact=True)
_METRIC = Binding.Group("Metric", compact=True)
METRIC_KEYS: list[BindingType] = [
    Binding("comma,less_than_sign", "choose(-1)", "Previous metric", key_display=",",
            id="metrics.before", group=_METRIC, tooltip="Draw the previous metric"),
    Binding("full_stop,greater_than_sign", "choose(1)", "Next metric", key_display=".",
            id="metrics.next", group=_METRIC, tooltip="Draw the next metric"),
]  # fmt: skip
"""The keys of a place whose chart draws one of several metrics."""
SMOOTH = Binding("A", "smooth", "Smooth", id="chart.smooth",
                 tooltip="Smooth the lines more; after the maximum, not at all")  # fmt: skip


class Chart(Widget, can_focus=True):
    """Lines drawn to fill the widget; its keys act on every chart of the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "read(-1)", "Crosshair left", id="chart.left", group=_CROSSHAIR,
                tooltip="Move the crosshair to the left and read the values there"),
        Binding("right", "read(1)", "Crosshair right", id="chart.right", group=_CROSSHAIR,
                tooltip="Move the crosshair to the right and read the values there"),
        Binding("Y", "log", "Log axis", id="chart.log",
                tooltip="Switch between a logarithmic and a linear axis"),
        SMOOTH,
    ]  # fmt: skip

    def __init__(
        self,
        title: str = "",
        *,
        id: str | None = None,  # noqa: A002 - Textual's name
        over: str = "step",
        classes: str = "",
        smoothing: int = 0,
    ) -> None:
        """Show nothing yet; `over` names the x axis, and `smoothing` is an index of `SMOOTHING`.

        Until the user chooses another, it applies to lines of at least `SMOOTHED` points.
        """
        super().__init__(id=id, classes=classes)
        self._title, self._over = title, over
        self._plot = Plot((), 0, 0, over=over)
        self._smoothing, self._is_chosen = smoothing, False

    @property
    def _level(self) -> int:
        long = any(len(line.points) >= SMOOTHED for line in self._plot.lines)
        return self._smoothing if long or self._is_chosen else 0

    def show(
        self,
        lines: Sequence[PlotLine],
        title: str = "",
        *,
        nodes: Mapping[float, str] | None = None,
    ) -> None:
        """Draw `lines`; with `nodes`, both axes start logarithmic, and these label the x axis."""
        unit = lines[0].unit if len({line.unit for line in lines}) == 1 else ""
        log_x, over = nodes is not None, unit or self._over if nodes is None else "nodes"
        log_y = self._plot.log_y if self._plot.lines else log_x
        self._title = title or self._title
        self._plot = replace(
            self._plot, lines=lines, log_y=log_y, log_x=log_x, places=nodes or {}, over=over
        )
        self.display = any(len(line.points) > 1 or line.bars for line in lines)
        self.refresh()

    def render(self) -> Text:
        """Draw the lines at the current size, below the crosshair's values."""
        weight = SMOOTHING[self._level]
        lines = list(self._plot.lines)
        if weight:
            alone = lines if len(lines) == 1 else []  # several noisy lines would blur
            raw = [replace(line, name="", style="bright_black", mark="") for line in alone]
            lines = raw + [replace(line, points=smoothed(line.points, weight)) for line in lines]
        width, height = self.size
        rows = replace(self._plot, lines=lines, width=width, height=height - 1).rows()
        return Text("\n").join([self._legend(width), *rows]) if rows else Text()

    def _legend(self, width: int) -> Text:
        """Return the title and each line's value, at the crosshair or at the end."""
        text = plain(self._title, "bold")
        text.no_wrap = True
        cursor = self._plot.cursor
        if cursor is not None:
            text.append("  ").append(f" {self._plot.over} {cursor:,g} ", "bold reverse")
        named = [line for line in self._plot.lines if line.name and line.points]
        names = [line.name if len(named) > 1 else "" for line in named]
        values = [_value(line, math.inf if cursor is None else cursor) for line in named]
        rest = [" log" * self._plot.log_y, " smoothed 0.97" * bool(self._level), *values]
        room = width - text.cell_len - len("".join(rest)) - 4 * len(named)
        last = " last" if text else "last"
        fits = not 0 <= room - sum(map(cell_len, names)) < len(last)  # names come first
        if cursor is None and self._over == "step" and fits:  # the sizes of a study have no last
            text.append(last, "dim")
            room -= len(last)
        if sum(map(cell_len, names)) > room:
            least = room // len(named)
            names = [shorten(name, max(_LEAST_NAME, least)) for name in names]
            if least < _LEAST_NAME and all(line.mark for line in named):
                names = [""] * len(named)
        for line, name, value in zip(named, names, values, strict=True):
            text.append("  " if text else "")
            text.append(line.mark or line.sign or "━", f"bold {line.style}")
            text.append_text(plain(f" {name}" if name else "", line.style)).append(value)
        if self._plot.log_y:
            text.append("  log", "dim")
        if self._level:
            text.append(f"  smoothed {SMOOTHING[self._level]:g}", "dim")
        text.truncate(width, overflow="ellipsis")
        return text

    def action_read(self, step: int) -> None:
        """Move the crosshair of all charts; the first key places it at the end."""
        drawn = replace(self._plot, width=self.size.width, height=self.size.height - 1)
        stops, cursor = drawn.stops(), self._plot.cursor
        if not stops:
            return
        near = [abs(stop - (math.inf if cursor is None else cursor)) for stop in stops]
        at = len(stops) if cursor is None else near.index(min(near))
        self._change(cursor=stops[min(len(stops) - 1, max(0, at + step))])

    def action_log(self) -> None:
        self._change(log_y=not self._plot.log_y)

    def action_smooth(self) -> None:
        """Smooth more; after the maximum, not at all."""
        smoothing = (self._level + 1) % len(SMOOTHING)
        for chart in self.screen.query(Chart):
            chart._smoothing, chart._is_chosen = smoothing, True
        self._change()

    def _change(self, **changes: Any) -> None:
        """Redraw all charts of the screen with these changes to the plot."""
        for chart in self.screen.query(Chart):
            chart._plot = replace(chart._plot, **changes)
            chart.refresh()


def _value(line: PlotLine, x: float) -> str:
    """Return the line's value in the legend: of the point near `x`, or an interval without one."""
    point = line.near(x)
    if line.bars:
        at, low, high = [line.bars[0], *(bar for bar in line.bars if bar[0] <= x)][-1]
        if point is None or at != point[0]:
            return f" {number(float(f'{low:.3g}'))}-{number(float(f'{high:.3g}'))}"
    return f" {number(point[1])}" if point else ""


def lines_of(curves: Sequence[Curve], names: Sequence[str]) -> list[PlotLine]:
    """Return the lines of curves over the same steps, with letters if there are several."""
    made = []
    for at, (curve, name) in enumerate(zip(curves, names, strict=True)):
        span = (curve.last_step - curve.first_step) / max(1, len(curve.values) - 1)
        points = [(curve.first_step + span * i, value) for i, value in enumerate(curve.values)]
        mark = MARKS[at % len(MARKS)] if len(curves) > 1 else ""
        style = SERIES[at % len(SERIES)]
        made.append(PlotLine(name, points, style, mark, unit=curve.unit))
    return made
