"""The pane with a run's metrics: the summary, the loss as a chart, and series from the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.widgets import Static

from lumitui.app.explain import run_facts
from lumitui.app.history.run import Run
from lumitui.app.tui import messages
from lumitui.app.tui.widgets.chart import Chart, sparkline
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import labelled, plain

if TYPE_CHECKING:
    from lumitui.app.results.log_patterns import LogFigures
    from lumitui.app.results.summary import Figures

SPARKLINE = 24
"""Columns of a series from the log: beside its words on a screen of 80."""


class MetricsPane(Scroll):
    """Figures that a worker computes: to read 100,000 steps takes about a second."""

    def __init__(self) -> None:
        """Show no metrics yet."""
        super().__init__(id="metrics")
        self._points_at = -1
        """Bytes of metrics.jsonl that the pane shows."""

    def compose(self) -> ComposeResult:
        """Yield the summary, the chart and the series from the log."""
        yield Static(id="series", markup=False)
        yield Chart(id="loss")
        yield Static(id="log-series", markup=False)

    def draw(self, run: Run) -> None:
        """Summarise the metrics again if history has more of them than the pane shows."""
        if run.metrics_offset != self._points_at:
            self._want(run, with_log=False)

    def search_log(self, run: Run) -> None:
        """Summarise the metrics, and search the log for the series of the job file."""
        self._want(run, with_log=bool(run.spec.metrics))

    def _want(self, run: Run, *, with_log: bool) -> None:
        self._points_at = run.metrics_offset
        if with_log:
            self.query_one("#log-series", Static).update("Searching the end of the log …")
        wanted = messages.FiguresWanted(self, run.id, run.metrics_offset, with_log)
        self.app.post_message(wanted)

    @on(messages.FiguresFound)
    def _figures_found(self, event: messages.FiguresFound) -> None:
        if event.offset == self._points_at:
            self.query_one("#series", Static).update(summary_table(event.figures))
            chart = self.query_one("#loss", Chart)
            chart.display = len(event.figures.loss.values) > 1
            chart.show(event.figures.loss)

    @on(messages.LogFiguresFound)
    def _log_figures_found(self, event: messages.LogFiguresFound) -> None:
        self.query_one("#log-series", Static).update(log_table(event.found))


def summary_table(found: Figures) -> RenderableType:
    """Return the summary of a run's metrics, with the heading of the chart below it."""
    rows = run_facts.metrics(found.summary, found.broken)
    if not rows:
        return Text(run_facts.NO_METRICS)
    return Group(labelled(rows), Text(), Text("loss", "dim"))


def log_table(found: LogFigures) -> RenderableType:
    """Return the series that the job file's `metrics:` found at the end of the log."""
    if found.warning:
        return plain(found.warning)
    if not found.series:
        return Text()
    table = Table.grid(padding=(0, 2))
    for name, words in run_facts.log_metrics(found.series):
        curve = sparkline(found.series[name], SPARKLINE)
        table.add_row(plain(name, "dim"), Text(words), Text(curve))
    return Group(Text("press m to search the log again", "dim"), table)
