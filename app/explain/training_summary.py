"""A summary of a run's metrics: how far, how well and how fast it trained, and its speed-up."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Throughput:
    """Figures of the last attempt; None if the trainer does not report them."""

    over_all: float | None = None
    """Samples a second over all the time since the warm-up: with tests, saves and every wait."""
    tokens_per_s: float | None = None
    tflops: float | None = None
    """10^12 operations a second of one GPU."""
    mfu: float | None = None
    """Their share of the GPU's peak, 0 to 1."""
    peak_tflops: float | None = None
    """The GPU's peak in `precision`."""
    precision: str | None = None
    memory_gib: float | None = None
    """The most that the first rank has used."""
    parts: tuple[tuple[str, float], ...] = ()
    """The latest share of a step's time in each of its parts, 0 to 1."""


@dataclass(frozen=True)
class Summary:
    """The summary of a run's metrics."""

    steps: int
    """Trained, over all attempts: the last step, and one more where the first is step 0."""
    last_loss: float | None
    samples_per_s: float | None
    """The median step after each attempt's warm-up."""
    test_accuracy: float | None
    """The last one reported."""
    seconds: float | None
    """Spent training, over all attempts."""
    world_size: int | None
    """Of the last attempt."""
    global_batch: int | None
    throughput: Throughput = field(default_factory=Throughput)
    slowest_save: float | None = None
    """Seconds."""


@dataclass(frozen=True)
class TrainedRun:
    """A run to compare: its summary, and on how many nodes it trained."""

    run: str
    nodes: int
    summary: Summary


@dataclass(frozen=True)
class Speedup:
    """One run compared with the first one."""

    run: str
    speed_up: float | None
    """Its throughput relative to the first run's; None if one of them is unknown."""
    efficiency: float | None
    """Percent: the speed-up over how many times more ranks (nodes, where not known) it has."""


def speedups(runs: Sequence[TrainedRun]) -> list[Speedup]:
    """Return each run, in the given order, compared with the first that has a throughput."""
    first = next((item for item in runs if item.summary.samples_per_s), None)
    return [_compared(item, first) for item in runs]


def _compared(item: TrainedRun, first: TrainedRun | None) -> Speedup:
    speed, ranks = item.summary.samples_per_s, item.summary.world_size
    speed_up = efficiency = None
    if first is not None and speed and first.summary.samples_per_s:
        speed_up = speed / first.summary.samples_per_s
        more = item.nodes / first.nodes if first.nodes else 0.0
        if ranks and first.summary.world_size:
            more = ranks / first.summary.world_size
        efficiency = 100 * speed_up / more if more else None
    return Speedup(item.run, speed_up, efficiency)
