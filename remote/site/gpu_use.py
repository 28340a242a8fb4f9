"""How busy the GPUs of a job's first node were, as the job measured it. Standard library only."""

from dataclasses import dataclass

from lumitui.remote.site.answer_fields import whole

BELOW = 10
"""The use in percent below which a GPU counts as idle (templates/job/gpus.sh)."""
_MOST = 10**9


@dataclass(frozen=True)
class GpuUse:
    """The figures of one attempt so far; each reading counts for the time since the one before."""

    seconds: int
    """How long the GPUs were watched."""
    gpus: int
    """Of the node."""
    busy: int
    """GPUs that were used in at least one reading."""
    low: float
    """The share of their time, 0 to 1, below `BELOW` percent use."""
    mean: float
    """Their use in percent."""
    used_mib: int
    """The most memory that was in use on one of them."""
    memory_mib: int
    """The memory of each."""


def gpu_use_of(data: object) -> GpuUse | None:
    """Return the content of gpu_use.json; None if no job of lumitui wrote it."""
    if not isinstance(data, dict):
        return None
    counts = {name: whole(data.get(name), least, _MOST) for name, least in _COUNTS.items()}
    seconds, gpus, busy, used, memory = counts.values()
    low, mean = _share(data.get("low"), 1), _share(data.get("mean"), 100)
    if seconds is None or gpus is None or busy is None or used is None or memory is None:
        return None
    if low is None or mean is None:
        return None
    return GpuUse(seconds, gpus, busy, low, mean, used, memory)


_COUNTS = {"seconds": 1, "gpus": 1, "busy": 0, "used_mib": 0, "memory_mib": 1}
"""The least of each number."""


def _share(value: object, most: int) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= most else None
