"""Each rank against its plan: cores, GPUs and node. Pure.

GPUs are also checked against what the driver shows the rank.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lumitui.app.explain.proof.probe_report import RankReport
from lumitui.app.explain.words import ranks_named
from lumitui.app.job.launch import RankLayout
from lumitui.remote.site.core_sets import parse_cores

_CORES = re.compile(r"\d{1,4}(?:[,-]\d{1,4})*")


@dataclass(frozen=True)
class RankProof:
    """One rank: planned, found, and the problem."""

    rank: int
    local_rank: int
    host: str
    planned: str
    """Planned cores as ranges; empty if none were planned."""
    found: str
    """Measured cores as ranges; empty if they could not be measured."""
    gpus: str
    """Visible GPUs; `none`, or empty if no variable limits them."""
    ok: bool
    why: str = ""
    devices: str | None = None
    """PCI addresses of the GPUs that the driver shows; `none`; empty without a driver; None for an
    older probe."""
    device: str = ""
    """The GPU it uses."""


def compare_ranks(reports: Sequence[RankReport], layout: RankLayout) -> list[RankProof]:
    """Return one row per rank that reported, in rank order, with its problem."""
    rows = [_place(row, layout) for row in _unique(reports, layout.planned_cores)]
    if layout.planned_cores:
        # Without a plan, the ranks may be processes of one machine (the embedded site).
        rows = _hosts(rows, layout)
        rows = [_cores(row, layout) for row in rows]
        if not layout.exact:
            rows = _disjoint(rows)
    return _gpus(rows, layout)


def _unique(reports: Sequence[RankReport], planned: Sequence[str]) -> list[RankProof]:
    """Return one row per rank, in rank order; a rank with two different reports is wrong."""
    rows: dict[int, RankProof] = {}
    for item in reports:
        local = item.local_rank
        plan = planned[local] if 0 <= local < len(planned) else ""
        row = RankProof(
            item.rank, local, item.host, plan, item.cores, item.gpus, True,
            devices=item.devices, device=item.device,
        )  # fmt: skip
        first = rows.setdefault(item.rank, row)
        if first is not row and first.ok and first != row:
            both = " and ".join(f"{one.found or '?'} on {one.host or '?'}" for one in (first, row))
            rows[item.rank] = _wrong(first, f"two processes report this rank: cores {both}")
    return [rows[rank] for rank in sorted(rows)]


def _wrong(row: RankProof, why: str) -> RankProof:
    """Return the row marked as wrong; its first reason stays."""
    return row if not row.ok else replace(row, ok=False, why=why)


def _place(row: RankProof, layout: RankLayout) -> RankProof:
    """Check that ranks fill the nodes in order: rank r is local rank r mod ranks per node."""
    if not 0 <= row.rank < layout.world_size:
        return _wrong(row, f"there are only {layout.world_size} ranks")
    if row.local_rank != row.rank % layout.ranks_per_node:
        return _wrong(row, f"its local rank should be {row.rank % layout.ranks_per_node}")
    return row


def _hosts(rows: list[RankProof], layout: RankLayout) -> list[RankProof]:
    """Check that each node's ranks are on one host, and no host has two nodes' ranks."""
    host_of: dict[int, str] = {}
    node_of: dict[str, int] = {}
    checked = []
    for row in rows:
        node = row.rank // layout.ranks_per_node
        if row.host and row.host != host_of.setdefault(node, row.host):
            row = _wrong(row, f"the ranks before it on this node are on {host_of[node]}")
        elif row.host and node != node_of.setdefault(row.host, node):
            row = _wrong(row, f"{row.host} already has {layout.ranks_per_node} other ranks")
        checked.append(row)
    return checked


def _cores(row: RankProof, layout: RankLayout) -> RankProof:
    if not row.found:
        return row
    cores, planned = _set(row.found), _set(row.planned)
    if cores is None:
        return _wrong(row, "its cores cannot be read")
    if planned is None:
        return _wrong(row, f"it has cores {row.found}, but none were planned")
    if cores != planned if layout.exact else not cores <= planned:
        words = f"it has cores {row.found}, planned {row.planned}"
        return _wrong(row, words + _kind_of_wrong(cores, planned, layout))
    return row


def _kind_of_wrong(found: frozenset[int], planned: frozenset[int], layout: RankLayout) -> str:
    """Return the known reason for which the cores differ, if any."""
    if not layout.exact:
        return ""
    others = [i for i, cores in enumerate(layout.planned_cores) if _set(cores) == found]
    if others:
        return f" (local rank {others[0]}'s)"
    if found < planned:
        return f" (only {len(found)} of {len(planned)})"
    both, more = found & planned, found - planned
    if both and more and min(more) > max(planned):
        apart = min(more) - min(both)
        if not layout.masks and more == {core + apart for core in both}:
            return (
                " (Slurm counts threads as cores: set `sbatch_arguments: [--hint=nomultithread]`"
                " in the site's profile)"
            )
    if found > planned and layout.masks:
        # Linux numbers the second threads after all cores; a mask has four per digit.
        cores = 4 * len(layout.masks[0].removeprefix("0x"))
        if any(found - planned == {core + cores - k for core in planned} for k in range(4)):
            return " (and their second hardware threads)"
    return ""


@lru_cache(maxsize=1024)  # cached: a thousand nodes have only a few different core lists
def _set(text: str) -> frozenset[int] | None:
    if not _CORES.fullmatch(text):
        return None
    try:
        return frozenset(parse_cores(text))
    except ValueError:
        return None


def _disjoint(rows: list[RankProof]) -> list[RankProof]:
    """Check that no two ranks of a host share a core."""
    owner: dict[tuple[str, int], int] = {}
    checked = []
    for row in rows:
        # A rank that is already wrong must not make those wrong whose cores it took.
        cores = _set(row.found) if row.ok else None
        taken = {owner.setdefault((row.host, core), row.rank) for core in cores or ()}
        others = sorted(taken - {row.rank})
        checked.append(_wrong(row, f"it shares cores with rank {others[0]}") if others else row)
    return checked


def _gpus(rows: list[RankProof], layout: RankLayout) -> list[RankProof]:
    """Check each rank's GPU: all ranks of a host see the same list, or each its own GPU."""
    lists: dict[str, list[tuple[str, ...]]] = {}
    for row in rows:
        lists.setdefault(row.host, []).append(_visible(row.gpus))
    beside = {host: _beside(seen, layout) for host, seen in lists.items() if any(seen)}
    checked = []
    for row in rows:
        host = beside.get(row.host)
        why = _wrong_gpus(row, host, layout) if host else ""
        checked.append(_wrong(row, why) if why else row)
    return checked


@dataclass(frozen=True)
class _Beside:
    """The GPUs visible to the ranks of one host."""

    own: bool
    """Whether each rank has its own GPU."""
    common: tuple[str, ...]
    """The list that most ranks see, among those with enough GPUs if any."""
    given: tuple[str, ...] = ()
    """If each rank has its own GPU: all of them, in order."""


def _beside(lists: list[tuple[str, ...]], layout: RankLayout) -> _Beside:
    alone = sum(1 for seen in lists if len(seen) == 1)
    own = layout.ranks_per_node > 1 and 2 * alone > len(lists) > 1
    counts = Counter(lists)
    common = max(counts, key=lambda seen: (len(seen) >= layout.gpus_per_node, counts[seen]))
    given = {seen[0] for seen in lists if len(seen) == 1 and seen[0].isdecimal()}
    whole = own and len(given) == layout.ranks_per_node
    return _Beside(own, common, tuple(sorted(given, key=int)) if whole else ())


@lru_cache(maxsize=1024)  # cached: the ranks of a thousand nodes see the same few lists
def _visible(gpus: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for part in gpus.split(",") if part))


def _wrong_gpus(row: RankProof, beside: _Beside, layout: RankLayout) -> str:
    """Return the problem with the row's GPUs, compared with those of its host."""
    mine, local = _visible(row.gpus), row.local_rank
    if mine == ("none",):
        return f"it sees no GPU, planned {layout.gpus_per_node}"
    if beside.own:
        planned = str(local)
        if not layout.exact and 0 <= local < len(beside.given):
            planned = beside.given[local]  # on a shared node, the job may have other GPUs
        if mine == (planned,):
            return ""
        return f"it sees GPU {row.gpus or '0 and all others'}, planned {planned}"
    if mine != beside.common:
        others = ",".join(beside.common) or "all"
        return f"it sees GPU {row.gpus or 'all'}, the other ranks of its node see {others}"
    if len(mine) < layout.gpus_per_node:
        return f"it sees only GPU {row.gpus}, planned {layout.gpus_per_node}"
    if all(part.isdecimal() for part in mine):
        right = sorted(mine, key=int)
        if 0 <= local < len(mine) and mine[local] != right[local]:
            return f"its GPU is {mine[local]}, planned {right[local]}: the list is {row.gpus}"
    return ""


NONE = "none"
"""The probe's word if the driver exists but the rank may not open any GPU."""
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:([0-9a-f]{2}):[0-9a-f]{2}\.[0-7]")


def compare_devices(rows: Sequence[RankProof], layout: RankLayout) -> list[RankProof]:
    """Return `rows` with the problems of the GPUs that the driver shows to each rank.

    Ranks of an older probe or without a driver stay unchanged: see `unmeasured`.
    """
    if layout.on_cpu:
        return list(rows)
    owner: dict[tuple[str, str], int] = {}
    checked = []
    for row in rows:
        why = _wrong_device(row, layout) if row.ok and row.devices else ""
        if row.ok and row.device and not why:
            other = owner.setdefault((row.host, row.device), row.rank)
            why = f"its GPU {row.device} is also rank {other}'s" if other != row.rank else ""
        checked.append(replace(row, ok=False, why=why) if why else row)
    return checked


def unmeasured(rows: Sequence[RankProof], layout: RankLayout) -> str:
    """Return the ranks with requested GPUs but unknown devices; "" if there are none.

    Ignores reports of an older probe, which did not check.
    """
    probed = [row for row in rows if row.devices is not None]
    silent = [row.rank for row in probed if not row.devices]
    if layout.on_cpu or not silent:
        return ""
    who = "" if len(silent) == len(rows) else f" of {ranks_named(silent).lower()}"
    return f"Devices not measured: the driver did not report the GPUs{who}."


def _wrong_device(row: RankProof, layout: RankLayout) -> str:
    """Return the problem with the GPUs that the driver shows a rank."""
    if row.devices == NONE:
        return "it requested a GPU but sees none"
    seen = row.devices.split(",") if row.devices else []
    # One GPU: each rank was given its own; `_gpus` reports if only some were.
    alone = len(seen) == 1 and row.gpus.count(",") == 0 and row.gpus != ""
    if len(seen) < layout.gpus_per_node and not alone:
        return f"the driver shows {len(seen)} GPUs, planned {layout.gpus_per_node}"
    planned = layout.gpu_bus[row.local_rank] if row.local_rank < len(layout.gpu_bus) else ""
    if planned and row.device and not is_bus(row.device, planned):
        return f"it sees GPU {row.device}, planned {planned}"
    return ""


def is_bus(address: str, planned: str) -> bool:
    """Return whether a PCI address like 0000:c1:00.0 is the planned one, or has its bus (c1)."""
    if ":" in planned:
        return address == planned.lower()
    match = _ADDRESS.fullmatch(address)
    return match is not None and match[1] == planned.lower()
