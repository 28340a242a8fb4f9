"""The verdict on a preflight's reports: wrong or slow ranks and nodes, by name. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

WAITED = 5.0
"""Seconds after which ranks that others wait for are reported."""
SLOW = 0.8
"""A rank below this share of the (upper) median is reported."""
WEAK = 0.7
"""A figure below this share of the profile's expectation is reported: the profile's values were
measured at other sizes, and a network that fell back to TCP reaches a tenth."""
UNITS = {"gemm": "TFLOP/s", "node": "GB/s", "all": "GB/s"}


@dataclass(frozen=True)
class Wanted:
    """The expected values; 0 or empty if unknown."""

    world: int
    per_node: int
    gpus: int = 0
    """GPUs per node; 0: the ranks run on the CPU."""
    bus: tuple[str, ...] = ()
    """PCI bus or address of each local rank's GPU."""
    gemm: float = 0.0
    node: float = 0.0
    all: float = 0.0


@dataclass
class Report:
    """One rank's latest report."""

    host: str = ""
    cores: tuple[int, ...] = ()
    devices: int = 0
    """Number of GPUs that PyTorch finds."""
    address: str = ""
    """PCI address of its GPU, if PyTorch reports it."""
    near: tuple[int, ...] = ()
    """The cores near the GPU, according to the kernel."""
    gemm: float = 0.0
    """TFLOP/s of a large matrix product."""
    node: float = 0.0
    """Bus bandwidth of an all-reduce within the node, in GB/s."""
    all: float = 0.0
    """Bus bandwidth of an all-reduce over all nodes, in GB/s."""
    error: str = ""
    done: bool = False
    told: float = 0.0
    """Epoch seconds of the report; the clocks of a cluster's nodes agree."""


@dataclass(frozen=True)
class Finding:
    """A problem and its place."""

    ranks: tuple[int, ...]
    host: str
    text: str


@dataclass(frozen=True)
class Result:
    """The content of preflight.json. `state` is begun, good, bad or not run."""

    state: str
    why: str = ""
    """The first finding; if there is none, the unmeasured values."""
    seconds: float = 0.0
    figures: dict[str, float] = field(default_factory=dict)
    """The median of each measured value in UNITS."""
    findings: tuple[Finding, ...] = ()


def conclude(
    reports: Sequence[Report | None], wanted: Wanted, seconds: float, now: float
) -> Result:
    """Return the verdict on `reports` (by rank; None: no report) at the time `now`."""
    findings = [*_silent(reports, wanted, now), *_broken(reports), *_devices(reports, wanted)]
    figures = {}
    for kind in UNITS:
        known = [value for item in reports if item and (value := getattr(item, kind)) > 0]
        if known:
            figures[kind] = round(statistics.median(known), 3)
            findings += _slow(kind, reports, wanted)
    why = findings[0].text if findings else ""
    if wanted.world > 1 and not findings and "all" not in figures:
        why = "the all-reduce was not measured, because the time was up"
    return Result("bad" if findings else "good", why, round(seconds, 1), figures, tuple(findings))


def _silent(reports: Sequence[Report | None], wanted: Wanted, now: float) -> list[Finding]:
    """Report the ranks with the least progress, not those that wait for them.

    None if all ranks are equally far, or the others have not waited long: the first collective of a
    healthy network may take 16 s.
    """
    hosts = {rank // wanted.per_node: item.host for rank, item in enumerate(reports) if item}
    left = [rank for rank, item in enumerate(reports) if item is None or not item.done]
    least = min((_progress(reports[rank]) for rank in left), default=0)
    to_blame = [rank for rank in left if _progress(reports[rank]) == least]
    ahead = [item.told for rank, item in enumerate(reports) if item and rank not in to_blame]
    if least and len(reports) > 1 and (not ahead or now - max(ahead) < WAITED):
        return []
    what = "did not end in time" if least else "did not answer"
    return [_named((rank,), hosts.get(rank // wanted.per_node, ""), what) for rank in to_blame]


def _progress(report: Report | None) -> int:
    """Return a rank's progress; 0 without a report."""
    if report is None:
        return 0
    return 1 + sum(value > 0 for value in (report.gemm, report.node, report.all))


def _broken(reports: Sequence[Report | None]) -> list[Finding]:
    return [
        _named((rank,), item.host, item.error)
        for rank, item in enumerate(reports)
        if item and item.error
    ]


def _devices(reports: Sequence[Report | None], wanted: Wanted) -> list[Finding]:
    found = []
    for rank, item in enumerate(reports):
        if item is None or item.error or not wanted.gpus:
            continue
        local = rank % wanted.per_node
        planned = wanted.bus[local] if local < len(wanted.bus) else ""
        # One visible GPU is a rank's own.
        if item.devices < wanted.gpus and item.devices != 1:
            text = f"PyTorch finds {item.devices} GPUs, planned {wanted.gpus}"
        elif planned and item.address and not _is_bus(item.address, planned):
            text = f"its GPU is {item.address}, planned {planned}"
        elif item.near and item.cores and not set(item.near) & set(item.cores):
            text = f"none of its cores is beside its GPU {item.address}"
        else:
            continue
        found.append(_named((rank,), item.host, text))
    return found


def _is_bus(address: str, planned: str) -> bool:
    return address == planned or address.split(":")[1:2] == [planned]


def _slow(kind: str, reports: Sequence[Report | None], wanted: Wanted) -> list[Finding]:
    """Report ranks with low figures; a node is reported once if all its ranks are low."""
    values = {r: getattr(item, kind) for r, item in enumerate(reports) if item}
    values = {rank: value for rank, value in values.items() if value > 0}
    expected: float = getattr(wanted, kind)
    median = statistics.median_high(values.values())
    if kind == "all":  # one figure for all ranks
        low = min(values.values())
        text = f"the all-reduce over all nodes reached {low:.3g} GB/s, the profile has {expected:g}"
        return [Finding((), "", text)] if low < WEAK * expected else []
    slow = {r: v for r, v in values.items() if v < max(SLOW * median, WEAK * expected)}
    name = "GEMM" if kind == "gemm" else "all-reduce within the node"
    found = []
    for node in sorted({rank // wanted.per_node for rank in slow}):
        mine = [rank for rank in values if rank // wanted.per_node == node]
        bad = [rank for rank in mine if rank in slow]
        whole = len(bad) == len(mine) and (len(mine) > 1 or kind == "node")
        for ranks in [tuple(bad)] if whole else [(rank,) for rank in bad]:
            value = statistics.median([slow[rank] for rank in ranks])
            beside = f"the median is {median:.3g}"
            if value >= SLOW * median:
                beside = f"the profile has {expected:g}"
            text = f"its {name} reached {value:.3g} {UNITS[kind]}, {beside}"
            first = reports[ranks[0]]
            found.append(_named(ranks, first.host if first else "", text))
    return found


def _named(ranks: tuple[int, ...], host: str, what: str) -> Finding:
    where = f" on {host}" if host else ""
    if len(ranks) > 1:
        return Finding(ranks, host, f"{host} with ranks {ranks[0]} to {ranks[-1]}: {what}")
    return Finding(ranks, host, f"rank {ranks[0]}{where}: {what}")
