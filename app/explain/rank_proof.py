"""Each rank against its plan: has it its cores, its GPUs and its node to itself? Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from lumitui.app.explain.probe_report import Report
from lumitui.app.job.launch import Layout
from lumitui.remote.cores import parse_cores

_CORES = re.compile(r"\d{1,4}(?:[,-]\d{1,4})*")


@dataclass(frozen=True)
class RankProof:
    """One rank: what was planned for it and what it found."""

    rank: int
    local_rank: int
    host: str
    planned: str
    """Cores as ranges; empty where nothing was promised."""
    found: str
    """Cores as ranges; empty where they could not be measured."""
    gpus: str
    """The GPUs it may see, `none`, or empty where no variable limits them."""
    ok: bool
    why: str = ""
    """What is wrong with it."""


def compare_ranks(reports: Sequence[Report], layout: Layout) -> list[RankProof]:
    """Return one row for each rank that reported, by rank, with what is wrong with it."""
    planned = layout.planned_cores
    rows = [
        replace(row, planned=planned[row.local_rank]) if 0 <= row.local_rank < len(planned) else row
        for row in _unique(reports)
    ]
    rows = [_place(row, layout) for row in rows]
    if planned:
        # Without a plan the ranks may be processes of one machine (the embedded site).
        rows = _hosts(rows, layout)
        rows = [_cores(row, layout) for row in rows]
        if not layout.exact:
            rows = _disjoint(rows)
    return _gpus(rows, layout)


def _unique(reports: Sequence[Report]) -> list[RankProof]:
    """Return one row per rank, by rank; a rank with two different reports is wrong."""
    rows: dict[int, RankProof] = {}
    for item in reports:
        row = RankProof(item.rank, item.local_rank, item.host, "", item.cores, item.gpus, True)
        known = rows.setdefault(item.rank, row)
        if known.ok and replace(row, ok=True) != known:
            both = " and ".join(f"{one.found or '?'} on {one.host or '?'}" for one in (known, row))
            rows[item.rank] = _wrong(known, f"two processes report this rank: cores {both}")
    return [rows[rank] for rank in sorted(rows)]


def _wrong(row: RankProof, why: str) -> RankProof:
    """Return the row marked wrong; the first reason stays."""
    return row if not row.ok else replace(row, ok=False, why=why)


def _place(row: RankProof, layout: Layout) -> RankProof:
    """Ranks fill one node after the other: rank r is local rank r mod ranks per node."""
    if not 0 <= row.rank < layout.world_size:
        return _wrong(row, f"there are only {layout.world_size} ranks")
    if row.local_rank != row.rank % layout.ranks_per_node:
        return _wrong(row, f"its local rank should be {row.rank % layout.ranks_per_node}")
    return row


def _hosts(rows: list[RankProof], layout: Layout) -> list[RankProof]:
    """Each node's ranks are on one host, and no host has two nodes' ranks."""
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


def _cores(row: RankProof, layout: Layout) -> RankProof:
    if not row.found:
        return row
    found, planned = _set(row.found), _set(row.planned)
    if found is None:
        return _wrong(row, "its cores cannot be read")
    if planned is None:
        return _wrong(row, f"it has cores {row.found}, planned none")
    if found != planned if layout.exact else not found <= planned:
        words = f"it has cores {row.found}, planned {row.planned}"
        return _wrong(row, words + _kind_of_wrong(found, planned, layout))
    return row


def _kind_of_wrong(found: frozenset[int], planned: frozenset[int], layout: Layout) -> str:
    """Return how the cores differ from exact ones, where it has a name."""
    if not layout.exact:
        return ""
    others = [i for i, cores in enumerate(layout.planned_cores) if _set(cores) == found]
    if others:
        return f" (local rank {others[0]}'s)"
    if found < planned:
        return f" (only {len(found)} of {len(planned)})"
    if found > planned and layout.masks:
        # Linux numbers the second threads after all cores; a mask has four of them a digit.
        cores = 4 * len(layout.masks[0].removeprefix("0x"))
        if any(found - planned == {core + cores - k for core in planned} for k in range(4)):
            return " (and their second hardware threads)"
    return ""


@lru_cache(maxsize=1024)  # a thousand nodes have a few lists of cores, each on every node
def _set(text: str) -> frozenset[int] | None:
    if not _CORES.fullmatch(text):
        return None
    try:
        return frozenset(parse_cores(text))
    except ValueError:
        return None


def _disjoint(rows: list[RankProof]) -> list[RankProof]:
    """No two ranks of a host share a core."""
    owner: dict[tuple[str, int], int] = {}
    checked = []
    for row in rows:
        # A rank that is wrong already must not put the blame on those whose cores it took.
        cores = _set(row.found) if row.ok else None
        taken = {owner.setdefault((row.host, core), row.rank) for core in cores or ()}
        others = sorted(taken - {row.rank})
        checked.append(_wrong(row, f"it shares cores with rank {others[0]}") if others else row)
    return checked


def _gpus(rows: list[RankProof], layout: Layout) -> list[RankProof]:
    """A rank finds its GPU by its local rank: all of a host see the same, or each its own."""
    hosts: dict[str, list[RankProof]] = {}
    for row in rows:
        hosts.setdefault(row.host, []).append(row)
    lists = {host: [_visible(row) for row in some] for host, some in hosts.items()}
    checked = []
    for row in rows:
        why = _wrong_gpus(row, lists[row.host], layout) if any(lists[row.host]) else ""
        checked.append(_wrong(row, why) if why else row)
    return checked


def _visible(row: RankProof) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for part in row.gpus.split(",") if part))


def _wrong_gpus(row: RankProof, beside: list[tuple[str, ...]], layout: Layout) -> str:
    """Return what is wrong with the GPUs the row sees; `beside` are the lists of its host."""
    mine, local = _visible(row), row.local_rank
    if mine == ("none",):
        return f"it sees no GPU, planned {layout.gpus_per_node}"
    alone = sum(1 for seen in beside if len(seen) == 1)
    if layout.ranks_per_node > 1 and 2 * alone > len(beside) > 1:
        # Each has a GPU of its own.
        if mine == (str(local),):
            return ""
        return f"it sees GPU {row.gpus or '0 and all others'}, planned {local}"
    counts = Counter(beside)
    common = max(counts, key=lambda seen: (len(seen) >= layout.gpus_per_node, counts[seen]))
    if mine != common:
        others = ",".join(common) or "all"
        return f"it sees GPU {row.gpus or 'all'}, the others of its node {others}"
    if len(mine) < layout.gpus_per_node:
        return f"it sees only GPU {row.gpus}, planned {layout.gpus_per_node}"
    if all(part.isdecimal() for part in mine):
        right = sorted(mine, key=int)
        if local < len(mine) and mine[local] != right[local]:
            return f"its GPU is {mine[local]}, planned {right[local]}: the list is {row.gpus}"
    return ""
