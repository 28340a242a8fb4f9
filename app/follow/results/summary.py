"""A run's metrics: a summary, the speed, and each value over the steps."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Literal

from lumitui.app.explain.training_summary import Summary, Throughput
from lumitui.app.history.history import History
from lumitui.app.history.metric_points import WARM_UP_STEPS, MetricPoint, slowest_save, speeds_of

WIRE = ("communication_s", "exposed_s")
"""Names of the metrics for the seconds in which a backward pass transfers gradients, and in which
it waits for them."""
SPEEDS = ("samples_per_s", "images_per_s", "examples_per_s", "sequences_per_s")
"""`samples_per_s`, and common names for it in a log."""
PARTS = ("data_s", "forward_backward_s", "optimizer_s", *WIRE)
"""Names of the parts of a step's time that a trainer reports (trainers/engine/training.py)."""


def _unit_of(points: Sequence[MetricPoint]) -> str:
    """Return what the points' steps count: those found in a log may be its lines or epochs."""
    counts = points[-1].extra.get("counts") if points else None
    return str(counts) if counts in ("line", "epoch") else "step"


def throughput_of(points: Sequence[MetricPoint], median: float | None) -> Throughput:
    """Return the throughput from a run's points; `median` is in samples per second.

    Operations and tokens per second follow from it, as a fixed number per sample.
    """
    starts = [at for at, point in enumerate(points) if point.event == "start"]
    mine = points[starts[-1] if starts else 0 :]
    start = mine[0].extra if starts else {}
    steps = [point for point in mine if point.event == "step" and point.step is not None]
    told = [point for point in steps if point.samples_per_s]

    def scaled(name: str) -> float | None:
        having = [point for point in told if isinstance(point.extra.get(name), float)]
        if not having or median is None:
            return None
        per_sample = _number(having[-1], name) / (having[-1].samples_per_s or 1.0)
        return per_sample * median

    precision = start.get("precision")
    return Throughput(
        over_all=_over_all(points, starts),
        tokens_per_s=scaled("tokens_per_s"),
        tflops=scaled("tflops"),
        mfu=scaled("mfu"),
        peak_tflops=_last([mine[0]] if starts else [], "peak_tflops"),
        precision=precision if isinstance(precision, str) else None,
        memory_gib=_last(steps, "memory_gib"),
        parts=_parts(mine, told),
    )


def _over_all(points: Sequence[MetricPoint], starts: Sequence[int]) -> float | None:
    """Return the samples per second of elapsed time after each attempt's warm-up."""
    seconds = samples = 0.0
    for begin, end in pairwise([0, *starts, len(points)]):
        timed = [
            (point.step, point.seconds)
            for point in points[begin:end]
            if point.event == "step" and point.step is not None and point.seconds is not None
        ]
        after = [one for one in timed if one[0] >= timed[0][0] + WARM_UP_STEPS]
        batch = next((point.global_batch for point in points[begin:end] if point.global_batch), 0)
        if after and batch:
            seconds += after[-1][1] - after[0][1]
            samples += (after[-1][0] - after[0][0]) * batch
    return samples / seconds if seconds > 0 and samples > 0 else None


def _parts(
    mine: Sequence[MetricPoint], told: Sequence[MetricPoint]
) -> tuple[tuple[str, float], ...]:
    batch = next((point.global_batch for point in mine if point.global_batch), None)
    split = [point for point in told if isinstance(point.extra.get(PARTS[0]), float)]
    if not split or batch is None:
        return ()
    step_s = batch / (split[-1].samples_per_s or 1.0)
    return tuple(
        (name, _number(split[-1], name) / step_s) for name in PARTS if name in split[-1].extra
    )


def _last(points: Sequence[MetricPoint], name: str) -> float | None:
    having = [point for point in points if isinstance(point.extra.get(name), float)]
    return _number(having[-1], name) if having else None


def _number(point: MetricPoint, name: str) -> float:
    value = point.extra[name]
    return value if isinstance(value, float) else 0.0


def summarize(points: Iterable[MetricPoint]) -> Summary:
    """Return the summary of a run's points, given in the order they were written.

    A resumed attempt may write steps again that the previous one had written: the later line
    counts. `speeds_of` selects the steps for the throughput.
    """
    points = list(points)
    losses: dict[int, float] = {}
    ends: list[float] = [0.0]
    accuracy: float | None = None
    world_size = global_batch = None
    for point in points:
        if point.event == "start":
            ends.append(0.0)
        world_size = point.world_size if point.world_size is not None else world_size
        global_batch = point.global_batch if point.global_batch is not None else global_batch
        accuracy = point.test_accuracy if point.test_accuracy is not None else accuracy
        if point.seconds is not None:
            ends[-1] = max(ends[-1], point.seconds)
        if point.event == "step" and point.step is not None:
            losses.pop(point.step, None)
            losses[point.step] = math.nan if point.loss is None else point.loss
    speeds = speeds_of(points).values
    middle = median(speeds) if speeds else None
    last = next(reversed(losses.values()), math.nan)
    return Summary(
        steps=next(reversed(losses), 0) + (0 in losses),
        last_loss=None if math.isnan(last) else last,
        samples_per_s=middle,
        test_accuracy=accuracy,
        seconds=sum(ends) or None,
        world_size=world_size,
        global_batch=global_batch,
        throughput=throughput_of(points, middle),
        slowest_save=slowest_save(points),
        unit=_unit_of(points),
        before=_steps_before(list(losses)),
    )


def _steps_before(steps: Sequence[int]) -> int:
    """Return the steps before a run's first: it may report only every tenth, say."""
    stride = steps[1] - steps[0] if len(steps) > 1 else 1
    return max(0, steps[0] - max(1, stride)) if steps else 0


@dataclass(frozen=True)
class Curve:
    """A number over the steps, thinned for a screen."""

    first_step: int = 0
    last_step: int = 0
    values: tuple[float, ...] = ()
    """The mean of each equal share of the steps, in order; the highest, lowest and last value stay
    as they are."""
    unit: str = "step"


def curve(
    points: Iterable[MetricPoint],
    most: int = 240,
    *,
    of: Literal["loss", "samples_per_s"] = "loss",
) -> Curve:
    """Return a metric over the steps in at most `most` values; the last value of a step counts."""
    values: dict[int, float] = {}
    points = list(points)
    for point in points:
        value = point.loss if of == "loss" else point.samples_per_s
        if point.event == "step" and point.step is not None and value is not None:
            values[point.step] = value
    return curve_of(values, most, _unit_of(points))


def curve_of(values: Mapping[int, float], most: int = 240, unit: str = "step") -> Curve:
    """Return the curve of a number at each step, in at most `most` values."""
    if not values:
        return Curve()
    steps = sorted(values)
    means = thinned_curve([values[step] for step in steps], most)
    return Curve(steps[0], steps[-1], (*means[:-1], values[steps[-1]]), unit)


def thinned_curve(values: Sequence[float], most: int) -> tuple[float, ...]:
    """Return at most `most` values: the means of equal shares. Sums of huge values stay finite.

    The highest and the lowest value stand for their shares: an axis shows a peak of one step.
    """
    count = min(most, len(values))
    edges = [len(values) * index // count for index in range(count + 1)] if count else [0]
    ends = [values.index(end(values)) for end in (max, min)] if count else []
    return tuple(
        next((values[at] for at in ends if begin <= at < end), _mean(values[begin:end]))
        for begin, end in pairwise(edges)
    )


def _mean(values: Sequence[float]) -> float:
    """Return the mean; adds halves, because the sum of the largest numbers would overflow."""
    if len(values) == 1:
        return values[0]
    twice = 2 * math.fsum(value / len(values) / 2 for value in values)
    return min(max(twice, min(values)), max(values))


MOST_SERIES = 12
"""Maximum number of displayed metrics of a run; a user's trainer may write hundreds."""
_FIRST = ("loss", "samples_per_s", "lr", "test_accuracy")
_THEN = ("tokens_per_s", "tflops", "mfu")
_EVENTS = ("step", "eval")


@dataclass(frozen=True)
class FigureSeries:
    """One number over the steps."""

    name: str
    """The name in metrics.jsonl."""
    curve: Curve
    last: float
    low: float
    high: float


@dataclass(frozen=True)
class Figures:
    """The metrics of one run that have arrived on the laptop."""

    summary: Summary
    loss: Curve
    points: int
    """Number of lines of metrics.jsonl in the history."""
    broken: int
    """Number of unreadable lines."""
    series: tuple[FigureSeries, ...] = ()
    """Each number over the steps."""


def figures_of(history: History, run_id: str) -> Figures:
    """Return the metrics of a run; 100,000 steps take about a second."""
    return figures_from(history.metrics.of(run_id), history.metrics.broken(run_id))


def figures_from(points: Sequence[MetricPoint], broken: int = 0) -> Figures:
    """Return the metrics from a run's points, and the number of broken lines."""
    return Figures(summarize(points), curve(points), len(points), broken, series_of(points))


def series_of(points: Iterable[MetricPoint], most: int = MOST_SERIES) -> tuple[FigureSeries, ...]:
    """Return the metrics from a run's points: the trainers' first, then others by name.

    If a step has two lines, the later counts. An evaluation line without a step belongs to the step
    before it.
    """
    points, by_name = list(points), dict[str, dict[int, float]]()
    step: int | None = None
    for point in points:
        step = point.step if point.step is not None else step
        if point.event in _EVENTS and step is not None:
            for name, value in _numbers(point):
                by_name.setdefault(name, {})[step] = value
    names = [name for name in _FIRST + _THEN if name in by_name]
    names += sorted(name for name in by_name if name not in names)
    unit = _unit_of(points)
    return tuple(_series(name, by_name[name], unit) for name in names[:most])


def _numbers(point: MetricPoint) -> Iterator[tuple[str, float]]:
    for name in _FIRST:
        value: float | None = getattr(point, name)
        if value is not None:
            yield name, value
    for name, other in point.extra.items():
        if isinstance(other, float):
            yield name, other


def _series(name: str, values: dict[int, float], unit: str) -> FigureSeries:
    last, drawn = values[max(values)], curve_of(values, unit=unit)
    return FigureSeries(name, drawn, last, min(values.values()), max(values.values()))
