"""The pane with a run's metrics: a summary, a chart of the chosen metric, and a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from lumitui.app.explain import run_facts, words
from lumitui.app.explain.row_words import figure
from lumitui.app.runs import Run
from lumitui.app.tui.asking import ask
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.chart import METRIC_KEYS, Chart, lines_of
from lumitui.app.tui.widgets.choice_button import neighbour
from lumitui.app.tui.widgets.plot import sparkline
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import TWO_COLUMNS, labelled, plain

if TYPE_CHECKING:
    from lumitui.app.runs import Figures, FigureSeries, LogFigures

SPARKLINE = 24
"""Minimum columns of a curve beside its values, on a screen of 80."""
_NAME = 20  # maximum cells of a metric's name
ROOMY = 64
"""Minimum cells to show names and curves in full length, and bounds."""


class MetricsPane(Scroll):
    """Metrics, computed in a worker: reading 100,000 steps takes about a second."""

    BINDINGS: ClassVar[list[BindingType]] = METRIC_KEYS

    def __init__(self) -> None:
        super().__init__(id="metrics")
        self._points_at: int | None = None  # the run's `metrics_offset` that the pane shows
        self._figures: Figures | None = None
        self._logged: LogFigures | None = None  # what `metrics:` of the job file found in the log
        self._none = run_facts.NO_METRICS
        self._resumed = self._run_ended = False
        self._tail = b""  # the searched end of a followed log
        self._several = False  # whether there are metrics to choose from
        self._chosen = ""  # the name of the drawn metric; the first by default

    def compose(self) -> ComposeResult:
        """Yield the summary, the chart, all metrics, and a remark on the log."""
        yield Static(id="metric-summary", markup=False)
        yield Chart(id="loss")
        yield Static(id="series", markup=False)
        yield Static(id="log-remark", markup=False)

    def draw(self, run: Run) -> None:
        """Summarise the metrics again if the history has more than the pane shows."""
        self._resumed, self._run_ended = run.resumed_from is not None, run.state.is_final
        self._none = run_facts.NO_MATCH if run.has_metrics else run_facts.NO_METRICS
        if run.metrics_offset != self._points_at:
            self._want(run, with_log=False)

    def search_log(self, run: Run) -> None:
        """Summarise the metrics, and search the log for the series of the job file."""
        self._tail = b""
        self._want(run, with_log=_is_searched(run))

    def take_tail(self, run: Run, tail: bytes) -> None:
        """Search the end of the followed log, if it has grown, for the series of the job file."""
        if tail is not self._tail and _is_searched(run) and not run.state.is_final:
            self._tail = tail
            self._search(run, tail[: tail.rfind(b"\n") + 1])

    def on_resize(self) -> None:
        self._draw_figures()

    def action_choose(self, step: int) -> None:
        names = [one.name for one in self._series]
        if names:
            self._chosen = neighbour(names, self._chosen, step)
            self._draw_figures()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the choice of a metric if there are two."""
        return action != "choose" or self._several

    @property
    def _series(self) -> Sequence[FigureSeries]:
        own = self._figures.series if self._figures and not self._is_newer else ()
        logged = self._logged.figures.series if self._logged else ()
        return (*own, *(one for one in logged if one.name not in {each.name for each in own}))

    @property
    def _is_newer(self) -> bool:
        """Whether the followed log has newer values than the last poll of it."""
        return (self._points_at or 0) < 0 and bool(self._logged and self._logged.figures.points)

    def _want(self, run: Run, *, with_log: bool) -> None:
        self._points_at = run.metrics_offset
        if with_log:
            self.query_one("#log-remark", Static).update("Searching the end of the log …")
            self._search(run)
        ask(self, lambda runs: runs.figures(run.id), self._figures_found, key="figures")

    def _search(self, run: Run, tail: bytes | None = None) -> None:
        ask(self, lambda runs: runs.log_figures(run.id, tail), self._log_found, key="log")

    def _log_found(self, found: LogFigures) -> None:
        self._logged = found
        rows = [row for row in run_facts.log_metrics(found.series) if not found.series[row[0]]]
        again = "" if self._tail or self._run_ended else "press m to search the log again"
        remarks = plain("\n".join(filter(None, (found.speed, found.warning or again))))
        self.query_one("#log-remark", Static).update(Group(labelled(rows), remarks))
        self._draw_figures()

    def _figures_found(self, found: Figures) -> None:
        self._figures = found
        self._draw_figures()

    def _draw_figures(self) -> None:
        figures, series = self._figures, self._series
        if figures is None:
            return
        if self._several != (len(series) > 1):
            self._several = len(series) > 1
            self.refresh_bindings()
        if self._logged and (self._is_newer or not figures.points):
            figures = self._logged.figures
        chosen = (one for one in series if one.name == self._chosen)
        drawn = next(chosen, series[0] if series else None)
        summary = self.query_one("#metric-summary", Static)
        summary.display = not (series and self.has_class("beside"))
        summary.update(summary_table(figures, self.size.width, self._none, self._resumed))
        chart = self.query_one("#loss", Chart)
        lines = lines_of([drawn.curve], [drawn.name]) if drawn else []
        chart.show(lines, drawn.name if drawn else "")
        if self.has_focus and chart.display:
            chart.focus()
        others = [one for one in series if one is not drawn]
        self.query_one("#series", Static).update(series_table(others, self.size.width))


def _is_searched(run: Run) -> bool:
    """Return whether the log may have numbers: for `metrics:`, or because nothing else has."""
    return run.has_metrics or not (run.metrics_offset or run.spec.trainer)


def summary_table(
    found: Figures, width: int, none: str = run_facts.NO_METRICS, resumed: bool = False
) -> RenderableType:
    """Return the summary of a run's metrics, in two columns if `width` has room; else `none`.

    `resumed`: the run counts on from its parent's steps.

    The last loss is omitted, because the curve shows it.
    """
    every = run_facts.metrics(found.summary, found.broken, resumed=resumed)
    rows = [row for row in every if row[0] != "last loss"]
    if not rows and not found.series:
        return Text(none)
    half = (len(rows) + 1) // 2
    if width < TWO_COLUMNS:
        return labelled(rows)
    return styled.side_by_side(labelled(rows[:half]), labelled(rows[half:]))


def series_table(series: Sequence[FigureSeries], width: int) -> RenderableType:
    """Return a row for each metric: its last value, curve and bounds."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for justify in ("left", "right", "left", "left"):
        table.add_column(no_wrap=True, justify=justify)
    roomy = width >= ROOMY
    if series:
        table.add_row("", Text("last", "dim"), Text("curve", "dim"), Text("range" * roomy, "dim"))
    name_width, curve_width = (_NAME, SPARKLINE) if roomy else (14, 16)
    for one in series:
        name = plain(styled.fit(one.name, name_width).rstrip(), "dim")
        curve = Text(sparkline(one.curve.values, curve_width), f"dim {styled.SERIES[0]}")
        text = words.rate if one.name.endswith("_per_s") else words.number
        cells = [name, Text(text(one.last)), curve]
        if roomy and one.low != one.high:
            cells.append(Text(f"{figure(one.low)} to {figure(one.high)}", "dim"))
        table.add_row(*cells)
    return table
