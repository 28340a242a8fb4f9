"""The verdict on idle GPUs: what they waited for, and whether fewer GPUs would suffice. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumitui.app.explain import words
from lumitui.remote.site.gpu_use import BELOW, GpuUse

if TYPE_CHECKING:
    from lumitui.app.explain.training_summary import Summary
    from lumitui.app.history.run import Run

IDLE = 0.2
"""Minimum share of a step or run spent waiting that lumitui reports; less is seldom worth a
change."""
ENOUGH_SECONDS = 600
"""Minimum seconds of GPU readings before giving advice: a start is not representative."""
LIGHT = 40
"""Mean use, in percent, below which half of the GPUs could do the work."""
FULL = 0.9
"""Maximum share of a GPU's memory that the data of two GPUs may fill."""


def idle(run: Run, totals: Summary | None) -> str:
    """Return the verdict as one line; '' if neither readings nor metrics allow one."""
    use = run.gpu_use
    parts = [_readings(use)] if use else []
    parts += [waits] if (waits := waiting(totals, run.layout.nodes)) else []
    if use and run.layout.nodes * use.gpus > 1 and fits_on_half(use):
        parts.append("this job would fit on half the GPUs")
    return "; ".join(parts)


def idle_remark(run: Run, totals: Summary | None) -> str:
    """Return the verdict if it suggests a change; '' for a run that used its GPUs well."""
    use = run.gpu_use
    low = use is not None and use.seconds >= ENOUGH_SECONDS and use.low >= IDLE
    half = use is not None and fits_on_half(use)
    return idle(run, totals) if low or half or waiting(totals, 1) else ""


def fits_on_half(use: GpuUse) -> bool:
    """Return whether half of the GPUs would have sufficed: half were idle, or all did little.

    The second case requires that the memory used on two GPUs fits on one.
    """
    if use.seconds < ENOUGH_SECONDS:
        return False
    little = use.mean <= LIGHT and 2 * use.used_mib <= FULL * use.memory_mib
    return 2 * use.busy <= use.gpus or little


def _readings(use: GpuUse) -> str:
    gpus = words.count(use.gpus, "GPU") + (" of the first node" if use.gpus > 1 else "")
    left = max(0, use.memory_mib - use.used_mib) / 1024
    unused = use.gpus - use.busy
    return (
        f"below {BELOW} % use for {100 * use.low:.0f} % of {words.length(use.seconds)}"
        f" ({gpus}, {use.mean:.0f} % on average"
        + (f", {unused} never used" if unused else "")
        + f"); {left:.0f} of {use.memory_mib / 1024:.0f} GiB of GPU memory never used"
    )


def waiting(totals: Summary | None, nodes: int) -> str:
    """Return what the ranks wait for; '' if the trainer reports no parts or they wait little.

    The parts cover the last window of steps; `over_all` includes evaluation and saves between
    steps.
    """
    if totals is None:
        return ""
    figures, shares = totals.throughput, dict(totals.throughput.parts)
    waits = []
    if (data := shares.get("data_s", 0.0)) >= IDLE:
        waits.append(f"{100 * data:.0f} % of each step for data: give the trainer more --workers")
    if (wire := shares.get("exposed_s", 0.0)) >= IDLE:
        fewer = "fewer nodes, or " if nodes > 1 else ""
        waits.append(f"{100 * wire:.0f} % of each step for gradients: try {fewer}larger batches")
    if totals.samples_per_s and figures.over_all:
        between = 1 - figures.over_all / totals.samples_per_s
        if between >= IDLE:
            waits.append(
                f"{100 * between:.0f} % of the time for evaluation, saves and starts between steps"
            )
    return f"the ranks wait {'; '.join(waits)}" if waits else ""
