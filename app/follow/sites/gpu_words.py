"""The GPUs of a running job as rows and sentences, the same in CLI and TUI. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lumitui.app.explain.words import count, number, size

if TYPE_CHECKING:
    from lumitui.remote.scheduler.job_step import GpuReading

MOST_NAMED = 8
"""Maximum number of idle GPUs listed by name; the rest are counted."""
GPU_TITLES = ("Node", "GPU", "Power", "Memory", "Use", "")


def is_idle(gpu: GpuReading, idle_watts: float) -> bool:
    """Return whether a GPU is idle, judged by its power, which shows work better than its use.

    The second die of a board does not report its own power, so its use decides.
    """
    return gpu.use == 0 if gpu.watts is None else gpu.watts < idle_watts


def gpu_summary(gpus: Sequence[GpuReading], idle_watts: float) -> list[str]:
    """Return a summary: the totals, and the idle GPUs by name."""
    idle = [gpu for gpu in gpus if is_idle(gpu, idle_watts)]
    nodes = len({gpu.node for gpu in gpus})
    watts = sum(gpu.watts or 0.0 for gpu in gpus)
    power = f", {number(watts, ' W')} together" if watts else ""
    sentences = [f"{count(len(gpus), 'GPU')} on {count(nodes, 'node')}{power}."]
    if not idle:
        return [*sentences, "None is idle."]
    sentences += [f"GPU {gpu.index} on {gpu.node} {_does(gpu)}: idle." for gpu in idle[:MOST_NAMED]]
    if more := len(idle) - MOST_NAMED:
        sentences += [f"{count(more, 'more GPU')} {'are' if more > 1 else 'is'} idle."] * (more > 0)
    return sentences


def _does(gpu: GpuReading) -> str:
    return "is not used" if gpu.watts is None else f"draws {number(gpu.watts, ' W')}"


def gpu_rows(gpus: Sequence[GpuReading], idle_watts: float) -> list[tuple[str, ...]]:
    """Return a row under `GPU_TITLES` for each GPU, idle ones first."""
    ordered = sorted(gpus, key=lambda gpu: not is_idle(gpu, idle_watts))
    return [
        (
            gpu.node,
            str(gpu.index),
            # The first die reports the power of both.
            "with the other die" if gpu.watts is None else number(gpu.watts, " W"),
            _memory(gpu),
            number(gpu.use, " %"),
            "idle" if is_idle(gpu, idle_watts) else "",
        )
        for gpu in ordered
    ]


def _memory(gpu: GpuReading) -> str:
    if gpu.used is None:
        return "-"
    return size(round(gpu.used)) + (f" of {size(round(gpu.total))}" if gpu.total else "")
