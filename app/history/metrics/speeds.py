"""Which of a run's steps say how fast it trains."""

from collections.abc import Iterable
from dataclasses import dataclass

from lumitui.app.history.metrics.points import MetricPoint

WARM_UP_STEPS = 5
"""Steps of each attempt that say nothing about speed: kernels are compiled, caches fill."""


@dataclass(frozen=True)
class Speeds:
    """The samples a second of a run's steps that say how fast it trains."""

    values: tuple[float, ...]
    warm: bool
    """Whether they are from after the warm-up; False: the run is too short to have others."""


def speeds_of(points: Iterable[MetricPoint]) -> Speeds:
    """Return the speeds of the last world size, after each attempt's warm-up.

    A run resumed on more nodes is not averaged with its beginning.
    """
    attempts: list[list[float]] = [[]]
    world_size = None
    for point in points:
        if point.event == "start":
            if point.world_size is not None and point.world_size != world_size:
                attempts = []
            attempts.append([])
        world_size = point.world_size if point.world_size is not None else world_size
        counted = point.event == "step" and point.step is not None
        if counted and point.samples_per_s is not None and point.samples_per_s > 0:
            attempts[-1].append(point.samples_per_s)
    warm = [speed for attempt in attempts for speed in attempt[WARM_UP_STEPS:]]
    # A run that is too short to warm up: its own speed is better than none.
    return Speeds(tuple(warm or (speed for each in attempts for speed in each)), bool(warm))
