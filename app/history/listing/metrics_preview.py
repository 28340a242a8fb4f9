"""A look at a run's metrics for one row of a list: the shape of its loss, and its speed.

It reads a few points of each run, however many there are; `results.summary` reads them all.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lumitui.app.history.metric_points import MetricPoint, RunMetrics

SHAPE = 24
"""Points that the shape of the loss is made of."""
NEWEST = 16
"""Points that the last loss is taken from."""
TIMED = 500
"""Points that the speed is taken from: all of a run that has not more."""
_KEPT = 4000
"""Runs whose look is kept."""

GlanceKey = tuple[str, int]
"""A run, and the bytes of its metrics that are in history: with more, it is inspected again."""


@dataclass(frozen=True)
class Glance:
    """What a row shows of a run's metrics."""

    loss: tuple[float, ...] = ()
    last_loss: float | None = None
    samples_per_s: float | None = None
    """The median step after the warm-up, as a summary has it."""


def glance_of(
    shape: Iterable[MetricPoint], newest: Iterable[MetricPoint], timed: Iterable[MetricPoint]
) -> Glance:
    """Return the look at points that are spread over a run, few or many, and at its newest ones."""
    from statistics import median

    from lumitui.app.history.metric_points import speeds_of

    losses = [point.loss for point in shape if point.event == "step" and point.loss is not None]
    steps = [point for point in newest if point.event == "step"]
    speeds = speeds_of(timed).values
    last = next((point.loss for point in reversed(steps) if point.loss is not None), None)
    return Glance(
        tuple(losses),
        last if last is not None else (losses[-1] if losses else None),
        median(speeds) if speeds else None,
    )


class Glances:
    """The looks at runs, kept; threads may share them."""

    def __init__(self, metrics: Callable[[], RunMetrics]) -> None:
        """Look at the runs of `metrics`, which is called when the first look is taken."""
        self._metrics = metrics
        self._kept: OrderedDict[GlanceKey, Glance] = OrderedDict()
        self._lock = Lock()

    def known(self, key: GlanceKey) -> Glance | None:
        """Return the look at a run if it was taken already; nothing is read."""
        with self._lock:
            return self._kept.get(key)

    def take(self, keys: Iterable[GlanceKey]) -> None:
        """Look at runs, a few points of each.

        Raises:
            HistoryError: it cannot be read.
        """
        metrics = self._metrics()
        for key in keys:
            if self.known(key) is None:
                run_id = key[0]
                shape = metrics.spread(run_id, SHAPE)
                newest = metrics.of(run_id, last=NEWEST)
                glance = glance_of(shape, newest, metrics.spread(run_id, TIMED))
                with self._lock:
                    self._kept[key] = glance
                    while len(self._kept) > _KEPT:
                        self._kept.popitem(last=False)
