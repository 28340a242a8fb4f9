"""What a run's metrics come to: a summary, and the curve of its loss."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Literal

from lumitui.app.explain.training_summary import Summary
from lumitui.app.follow.results.throughput import throughput_of
from lumitui.app.history.metric_points import MetricPoint, slowest_save, speeds_of


def summarize(points: Iterable[MetricPoint]) -> Summary:
    """Return the summary of a run's points in the order they were written.

    A resumed attempt may write steps again that the attempt before it had written: the later
    line counts. `speeds_of` says which steps make the throughput.
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
    )


@dataclass(frozen=True)
class Curve:
    """A number over the steps, thinned for a screen."""

    first_step: int = 0
    last_step: int = 0
    values: tuple[float, ...] = ()
    """The mean of each of the equal shares of the steps, in their order."""


def curve(
    points: Iterable[MetricPoint],
    most: int = 240,
    *,
    of: Literal["loss", "samples_per_s"] = "loss",
) -> Curve:
    """Return a metric over the steps in at most `most` values; the last one of a step."""
    values: dict[int, float] = {}
    for point in points:
        value = point.loss if of == "loss" else point.samples_per_s
        if point.event == "step" and point.step is not None and value is not None:
            values[point.step] = value
    return curve_of(values, most)


def curve_of(values: Mapping[int, float], most: int = 240) -> Curve:
    """Return the curve of a number at each step, in at most `most` values."""
    if not values:
        return Curve()
    steps = sorted(values)
    return Curve(steps[0], steps[-1], thinned_curve([values[step] for step in steps], most))


def thinned_curve(values: Sequence[float], most: int) -> tuple[float, ...]:
    """Return at most `most` values: the means of equal shares. Sums of huge ones stay finite."""
    count = min(most, len(values))
    edges = [len(values) * index // count for index in range(count + 1)] if count else [0]
    return tuple(_mean(values[begin:end]) for begin, end in pairwise(edges))


def _mean(values: Sequence[float]) -> float:
    """Return the mean; halves, since rounded parts of the largest number add up to more than it."""
    if len(values) == 1:
        return values[0]
    twice = 2 * math.fsum(value / len(values) / 2 for value in values)
    return min(max(twice, min(values)), max(values))
