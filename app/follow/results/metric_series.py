"""Every number that a run's metrics.jsonl tells over its steps."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lumitui.app.follow.results.summary import Curve, curve_of
from lumitui.app.history.metrics.points import MetricPoint

MOST_SERIES = 12
"""Numbers of a run that are shown; a person's own trainer may write hundreds."""
_FIRST = ("loss", "samples_per_s", "lr", "test_accuracy")
_THEN = ("tokens_per_s", "tflops", "mfu")
_EVENTS = ("step", "eval")


@dataclass(frozen=True)
class Series:
    """One number over the steps."""

    name: str
    """As metrics.jsonl has it."""
    curve: Curve
    last: float
    low: float
    high: float


def series_of(points: Iterable[MetricPoint], most: int = MOST_SERIES) -> tuple[Series, ...]:
    """Return the numbers of a run's points: those that trainers write first, then others by name.

    The later line of a step counts. A line of an evaluation without a step belongs to the step
    before it.
    """
    found: dict[str, dict[int, float]] = {}
    step: int | None = None
    for point in points:
        step = point.step if point.step is not None else step
        if point.event in _EVENTS and step is not None:
            for name, value in _numbers(point):
                found.setdefault(name, {})[step] = value
    names = [name for name in _FIRST + _THEN if name in found]
    names += sorted(name for name in found if name not in names)
    return tuple(_series(name, found[name]) for name in names[:most])


def _numbers(point: MetricPoint) -> Iterator[tuple[str, float]]:
    for name in _FIRST:
        value: float | None = getattr(point, name)
        if value is not None:
            yield name, value
    for name, other in point.extra.items():
        if isinstance(other, float):
            yield name, other


def _series(name: str, values: dict[int, float]) -> Series:
    last = values[max(values)]
    return Series(name, curve_of(values), last, min(values.values()), max(values.values()))
