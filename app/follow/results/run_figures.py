"""What the metrics of one run come to, all of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from lumitui.app.follow.results.metric_series import Series, series_of
from lumitui.app.follow.results.summary import Curve, Summary, curve, summarize
from lumitui.app.history.history import History
from lumitui.app.history.metrics.points import MetricPoint


@dataclass(frozen=True)
class Figures:
    """What the metrics of one run come to, as far as they have arrived on the laptop."""

    summary: Summary
    loss: Curve
    points: int
    """Lines of metrics.jsonl that the history keeps."""
    broken: int
    """Lines of it that could not be read."""
    series: tuple[Series, ...] = ()
    """Every number of it over the steps."""


def figures_of(history: History, run_id: str) -> Figures:
    """Return the figures of a run; 100,000 steps take about a second."""
    return figures_from(history.metrics.of(run_id), history.metrics.broken(run_id))


def figures_from(points: Sequence[MetricPoint], broken: int) -> Figures:
    """Return the figures of a run's points, and how many of its lines were broken."""
    return Figures(summarize(points), curve(points), len(points), broken, series_of(points))
