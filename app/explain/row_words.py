"""The words of one row in a list of runs, the same in CLI and TUI. Pure."""

import time
from collections.abc import Sequence

from lumitui.app.explain import words
from lumitui.app.explain.waiting import again, plain_reason
from lumitui.app.history.listing.state_filter import STATE_GROUPS, WENT_WRONG
from lumitui.app.history.run import Run
from lumitui.remote.site.device import CPU
from lumitui.remote.site.states import State

BARS = "▁▂▃▄▅▆▇"
"""Without the full block, which would touch the bar above."""
_PLACES = {
    "Resources": "next in line",
    "Priority": "others ahead",
    "Dependency": "waits for another job",
    "DependencyNeverSatisfied": "can never start: cancel it",
    "BeginTime": "waits for its start time",
    "JobHeldUser": "you hold it",
    "JobHeldAdmin": "held by the site",
    "Reservation": "waits for a reservation",
    "ReqNodeNotAvail": "its nodes are down or reserved",
    "PartitionDown": "the partition is down",
    "None": "",
}
"""Short words for reasons of waiting; for other reasons, the sentence is cut."""
_SAME = {"", "timelimit", "outofmemory", "nodefail", "preempted", "nonzeroexitcode"}
"""The scheduler's reasons that add nothing to the state."""


def size(run: Run) -> str:
    """Return nodes and GPUs per node: `4x8`; a run without GPUs has its ranks: `4x16r`."""
    layout = run.layout
    if layout.on_cpu or not layout.gpus_per_node:
        return f"{layout.nodes}x{layout.ranks_per_node}{CPU.mark}"
    return f"{layout.nodes}x{layout.gpus_per_node}"


def sizes(runs: Sequence[Run]) -> str:
    """Return the sizes of runs: `1-4x8`; only their number if more than the nodes differ."""
    each = {size(run) for run in runs}
    if len(each) == 1:
        return each.pop()
    if len({one.partition("x")[2] for one in each}) > 1:
        return f"{len(each)} sizes"
    by_nodes = sorted(runs, key=lambda run: run.layout.nodes)
    return f"{by_nodes[0].layout.nodes}-{size(by_nodes[-1])}"


def age(run: Run, now: float) -> str:
    """Return the age of a run in at most five characters: `45s`, `2d04`, `124d`.

    `ahead`: this machine's clock was ahead when the run was sent.
    """
    if run.created > now + words.CLOCK_ERROR:
        return "ahead"
    days = (now - run.created) / 86400
    return f"{days:.0f}d" if days >= 9.5 else words.short_length(now - run.created)


def since_end(run: Run, now: float) -> str:
    """Return the time since a run ended; `-` for one that has not."""
    return "-" if run.ended is None else words.short_length(now - run.ended)


def share(run: Run, now: float) -> float | None:
    """Return the used share of a job's time limit, up to 1; None if it is not running."""
    if run.state not in STATE_GROUPS["running"] or run.started is None:
        return None
    return min(1.0, run.elapsed(now) / max(1, run.limit))


def cost(runs: Sequence[Run], now: float) -> str:
    """Return the same as `total`, but GPU-hours without the unit, for a column of costs."""
    return total(runs, now).removesuffix(" GPU-hours")


def total(runs: Sequence[Run], now: float) -> str:
    """Return the total cost of runs so far: `8.00 GPU-hours`; '' if nothing is billed.

    Sites have different units, and a site may change its own: '' also if these runs have several.
    """
    billed = [(run.billed(now), run.price.unit) for run in runs]
    units = {unit for spent, unit in billed if spent}
    return f"{sum(spent for spent, _ in billed):,.2f} {units.pop()}" if len(units) == 1 else ""


def loss(value: float) -> str:
    """Return a loss with three decimals; as `figure` if that leaves no digit."""
    shown = value == 0 or 0.001 <= abs(value) < 1e7
    return f"{value:,.3f}" if shown else figure(value)


def figure(value: float | None) -> str:
    """Return a number in at most five characters: `0.413`, `98.1`, `61k`, `1.2M`, `2e-05`."""
    if value is None:
        return ""
    for limit, unit in ((1e3, ""), (1e6, "k"), (1e9, "M"), (1e12, "G")):
        if abs(value) >= limit * 0.9995:
            continue
        part = value / limit * 1e3
        if abs(part) >= 99.95 or part == 0:
            return f"{part:.0f}{unit}"
        if abs(part) >= 9.995:
            return f"{part:.1f}{unit}" if not unit else f"{part:.0f}{unit}"
        if unit or abs(part) >= 0.9995:
            return f"{part:.1f}{unit}" if unit else f"{part:.2f}"
        return f"{part:.3f}".removesuffix("0") if abs(part) >= 0.001 else f"{part:.0e}"
    return f"{value:.0e}"


def shape(values: Sequence[float], width: int) -> str:
    """Return a spark line of numbers in at most `width` characters; '' for fewer than two."""
    if len(values) < 2 or width < 1:
        return ""
    count = min(width, len(values))
    parts = [
        values[len(values) * at // count : len(values) * (at + 1) // count] for at in range(count)
    ]
    # Halved: the largest numbers' sums would be infinite. A rounded sum may lie outside of them.
    means = [
        sorted((min(part) / 2, sum(one / 2 / len(part) for one in part), max(part) / 2))[1]
        for part in parts
    ]
    low, high = min(means), max(means)
    span = (high - low) or 1.0
    return "".join(BARS[min(6, int((mean - low) / span * 7))] for mean in means)


def news(run: Run, now: float) -> str:
    """Return why a run waits or failed, or the age of its last answer.

    '' if the state suffices.
    """
    if run.state is State.QUEUED:
        old = words.heard(run, now)
        return f"as of {old}: {_queued(run, now)}" if old else _queued(run, now)
    if run.state is State.SENDING:
        return "on its way to the site"
    if run.state is State.UNKNOWN:
        return words.scheduler_reason(run) or "not settled yet"
    if run.state in WENT_WRONG:
        return _cause(run)
    if old := words.as_of(run, now):
        return old
    if run.state is State.RUNNING:
        return run.hang
    return words.reason(run) if run.state is State.CANCELLED else ""


def short_reason(run: Run) -> str:
    """Return why a run waits, with the scheduler's word, or the reason for its state."""
    word = words.scheduler_reason(run)
    place = _place(run) if run.state is State.QUEUED else ""
    if not place:
        return words.reason(run)
    return place if not word or word in place else f"{place} ({word})"


def _place(run: Run) -> str:
    word = (words.scheduler_reason(run) or "None").split(",")[0]
    place = "requeued" if again(run) else _PLACES.get(word)
    return plain_reason(run) if place is None else place


def _queued(run: Run, now: float) -> str:
    place = _place(run)
    if run.expected_start is None:
        return place or "no start time yet"
    start = run.expected_start
    at = time.strftime("%H:%M", time.localtime(start)) if 0 < start < 1e11 else "no date"
    when = f"~{at}" if start > now else f"~{at} due"
    if place:
        return f"{when}, {place}"
    return f"{when} in {words.short_length(start - now)}" if start > now else when


def _cause(run: Run) -> str:
    if cause := words.chain_end(run) or run.cause:
        return cause
    reason = words.scheduler_reason(run)
    parts = []
    if run.failed_rank is not None:
        parts.append(f"rank {run.failed_rank}")
    if run.rc and run.state is State.FAILED:
        parts.append(f"exit {run.rc}")
    if reason.lower().replace("_", "") not in _SAME:
        parts.append(reason)
    return ", ".join(parts)
