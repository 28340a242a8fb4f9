"""How much faster a training is on more nodes: runs compared by their throughput. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from lumitui.app.explain.training_summary import Summary


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
    """Its throughput over the first run's; None: one of them is not known."""
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
