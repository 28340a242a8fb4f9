"""What the metrics of one run come to: the summary, and every number over the steps."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lumitui.app.explain.training_summary import Summary
from lumitui.app.follow.results.summary import Curve, curve, curve_of, summarize
from lumitui.app.history.history import History
from lumitui.app.history.metric_points import MetricPoint

MOST_SERIES = 12
"""Numbers of a run that are shown; a user's own trainer may write hundreds."""
_FIRST = ("loss", "samples_per_s", "lr", "test_accuracy")
_THEN = ("tokens_per_s", "tflops", "mfu")
_EVENTS = ("step", "eval")


@dataclass(frozen=True)
class FigureSeries:
    """One number over the steps."""

    name: str
    """As metrics.jsonl has it."""
    curve: Curve
    last: float
    low: float
    high: float


@dataclass(frozen=True)
class Figures:
    """What the metrics of one run come to, as far as they have arrived on the laptop."""

    summary: Summary
    loss: Curve
    points: int
    """Lines of metrics.jsonl that the history keeps."""
    broken: int
    """Lines of it that could not be read."""
    series: tuple[FigureSeries, ...] = ()
    """Every number of it over the steps."""


def figures_of(history: History, run_id: str) -> Figures:
    """Return the figures of a run; 100,000 steps take about a second."""
    return figures_from(history.metrics.of(run_id), history.metrics.broken(run_id))


def figures_from(points: Sequence[MetricPoint], broken: int) -> Figures:
    """Return the figures of a run's points, and how many of its lines were broken."""
    return Figures(summarize(points), curve(points), len(points), broken, series_of(points))


def series_of(points: Iterable[MetricPoint], most: int = MOST_SERIES) -> tuple[FigureSeries, ...]:
    """Return the numbers of a run's points: those that trainers write first, then others by name.

    The later line of a step counts. A line of an evaluation without a step belongs to the step
    before it.
    """
    by_name: dict[str, dict[int, float]] = {}
    step: int | None = None
    for point in points:
        step = point.step if point.step is not None else step
        if point.event in _EVENTS and step is not None:
            for name, value in _numbers(point):
                by_name.setdefault(name, {})[step] = value
    names = [name for name in _FIRST + _THEN if name in by_name]
    names += sorted(name for name in by_name if name not in names)
    return tuple(_series(name, by_name[name]) for name in names[:most])


def _numbers(point: MetricPoint) -> Iterator[tuple[str, float]]:
    for name in _FIRST:
        value: float | None = getattr(point, name)
        if value is not None:
            yield name, value
    for name, other in point.extra.items():
        if isinstance(other, float):
            yield name, other


def _series(name: str, values: dict[int, float]) -> FigureSeries:
    last = values[max(values)]
    return FigureSeries(name, curve_of(values), last, min(values.values()), max(values.values()))
