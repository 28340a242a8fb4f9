"""A summary of a run's metrics: progress, loss, throughput and speed-up."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Throughput:
    """Throughput of the last attempt; None for values that the trainer does not report."""

    over_all: float | None = None
    """Samples per second of all attempts' time since the warm-up, with evaluation and saves."""
    tokens_per_s: float | None = None
    tflops: float | None = None
    """TFLOP/s of one GPU."""
    mfu: float | None = None
    """Share of the GPU's peak, 0 to 1."""
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
    """Number of steps trained over all attempts: the last step, plus one if the first is step 0."""
    last_loss: float | None
    samples_per_s: float | None
    """Median speed of the steps after each attempt's warm-up."""
    test_accuracy: float | None
    """The last reported accuracy."""
    seconds: float | None
    """Time spent training, over all attempts."""
    world_size: int | None
    """Ranks of the last attempt."""
    global_batch: int | None
    throughput: Throughput = field(default_factory=Throughput)
    slowest_save: float | None = None
    """Seconds."""
    unit: str = "step"
    """What `steps` counts: `line` or `epoch` if the values come from a log without steps."""
    before: int = 0
    """Number of steps before the first reported one: those of its parent, if the run resumed."""


@dataclass(frozen=True)
class TrainedRun:
    """A run to compare: its summary and number of nodes."""

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
    """Efficiency in percent: the speed-up divided by the ratio of ranks (of nodes, if unknown)."""


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
