"""What the probe found against what was planned: does each rank have its cores? Pure."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from lumitui.app.job import Layout
from lumitui.remote.cores import parse_cores

ALL_NODES = 16
"""Beyond so many nodes only the first and the last one are measured (templates/probe.sh)."""
_CORES = re.compile(r"\d{1,4}(?:[,-]\d{1,4})*")
_TEXT = 1000

Kind = Literal["proved", "differs", "not measured", "pending"]


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
    """The visible GPUs as the rank's environment lists them; empty: all, or not known."""
    ok: bool
    why: str = ""
    """What is wrong with it."""


@dataclass(frozen=True)
class Verdict:
    """What a run's probe says of its binding."""

    kind: Kind
    measured: int
    """Ranks that reported their cores."""
    expected: int
    """Ranks that should have."""
    rows: tuple[RankProof, ...]
    sentence: str


def verdict(binding: str | None, layout: Layout, *, ended: bool = False) -> Verdict:
    """Return what `binding` (the text of binding.json) says of the plan in `layout`.

    `ended` tells whether the text may still come. Whatever the text holds, nothing is raised.
    """
    nodes = layout.nodes if layout.nodes <= ALL_NODES else 2
    expected = nodes * layout.ranks_per_node
    if binding is None and not ended:
        return Verdict("pending", 0, expected, (), "The ranks have not reported yet.")
    if binding is None:
        why = "The job left no binding.json: it ended before the probe, or `proof: off`."
        return Verdict("not measured", 0, expected, (), why)
    reports = _read(binding)
    if reports is None:
        why = "binding.json cannot be read."
        return Verdict("not measured", 0, expected, (), why)
    rows = _judged(_unique(reports), layout)
    measured = sum(1 for row in rows if row.found)
    kind, sentence = _conclude(rows, layout, measured, expected)
    return Verdict(kind, measured, expected, tuple(rows), sentence)


def table(verdict: Verdict) -> str:
    """Return the verdict and a line a rank as text."""
    lines = [f"{verdict.kind}: {verdict.sentence}"]
    if not verdict.rows:
        return lines[0]
    cells = [("rank", "local", "host", "planned", "found", "GPUs", "")]
    cells += [
        (
            str(row.rank),
            str(row.local_rank),
            row.host or "?",
            row.planned or "-",
            row.found or "?",
            row.gpus or "?",
            "ok" if row.ok else f"differs: {row.why}",
        )
        for row in verdict.rows
    ]
    widths = [max(len(row[column]) for row in cells) for column in range(6)]
    lines.append("")
    for row in cells:
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        lines.append("  ".join([*padded, row[6]]).rstrip())
    return "\n".join(lines)


def _read(text: str) -> list[RankProof] | None:
    """Return the reports in the text; None when it is not a list of them."""
    try:
        data = json.loads(text)
    # RecursionError: thousands of opening brackets.
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        return None
    reports = []
    for item in data:
        rank, local_rank = item.get("rank"), item.get("local_rank")
        if type(rank) is not int or type(local_rank) is not int:
            return None
        host, cores, gpus = (_plain(item.get(name)) for name in ("host", "cores", "gpus"))
        reports.append(RankProof(rank, local_rank, host, "", cores, gpus, True))
    return reports


def _plain(value: object) -> str:
    text = value[:_TEXT] if isinstance(value, str) else ""
    return "".join(char for char in text if char.isprintable()).strip()


def _unique(reports: Sequence[RankProof]) -> list[RankProof]:
    """Return one row a rank, by rank; a rank that said two things is wrong."""
    rows: dict[int, RankProof] = {}
    for report in reports:
        known = rows.setdefault(report.rank, report)
        if known.ok and replace(report, ok=True) != known:
            rows[report.rank] = _wrong(known, "two processes say they are this rank")
    return [rows[rank] for rank in sorted(rows)]


def _wrong(row: RankProof, why: str) -> RankProof:
    """Return the row marked wrong; the first reason stays."""
    return row if not row.ok else replace(row, ok=False, why=why)


def _judged(rows: list[RankProof], layout: Layout) -> list[RankProof]:
    planned = layout.planned_cores
    rows = [
        replace(row, planned=planned[row.local_rank]) if 0 <= row.local_rank < len(planned) else row
        for row in rows
    ]
    rows = [_place(row, layout) for row in rows]
    if planned:
        # Without a plan the ranks may be processes of one machine (the embedded site).
        rows = _hosts(rows, layout)
        rows = [_cores(row, layout.exact) for row in rows]
        if not layout.exact:
            rows = _disjoint(rows)
    return _gpus(rows, layout)


def _place(row: RankProof, layout: Layout) -> RankProof:
    """Ranks fill one node after the other: rank r is local rank r mod ranks a node."""
    if not 0 <= row.rank < layout.world_size:
        return _wrong(row, f"there are only {layout.world_size} ranks")
    if row.local_rank != row.rank % layout.ranks_per_node:
        return _wrong(row, f"its local rank should be {row.rank % layout.ranks_per_node}")
    return row


def _hosts(rows: list[RankProof], layout: Layout) -> list[RankProof]:
    """Each node's ranks are on one host, and no host has two nodes' ranks."""
    host_of: dict[int, str] = {}
    node_of: dict[str, int] = {}
    judged = []
    for row in rows:
        node = row.rank // layout.ranks_per_node
        if row.host and row.host != host_of.setdefault(node, row.host):
            row = _wrong(row, f"the ranks before it on this node are on {host_of[node]}")
        elif row.host and node != node_of.setdefault(row.host, node):
            row = _wrong(row, f"{row.host} already has {layout.ranks_per_node} other ranks")
        judged.append(row)
    return judged


def _cores(row: RankProof, exact: bool) -> RankProof:
    if not row.found:
        return row
    found, planned = _set(row.found), _set(row.planned)
    if found is None:
        return _wrong(row, "its cores cannot be read")
    if planned is None or (found != planned if exact else not found <= planned):
        return _wrong(row, f"it has cores {row.found}, planned {row.planned or 'none'}")
    return row


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
    judged = []
    for row in rows:
        # A rank that is wrong already must not put the blame on those whose cores it took.
        cores = _set(row.found) if row.ok else None
        taken = {owner.setdefault((row.host, core), row.rank) for core in cores or ()}
        others = sorted(taken - {row.rank})
        judged.append(_wrong(row, f"it shares cores with rank {others[0]}") if others else row)
    return judged


def _gpus(rows: list[RankProof], layout: Layout) -> list[RankProof]:
    """A rank finds its GPU: all of a host see the same enough, or each sees its own number."""
    seen: dict[str, set[str]] = {}
    for row in rows:
        seen.setdefault(row.host, set()).add(row.gpus)
    judged = []
    for row in rows:
        visible = [part for part in row.gpus.split(",") if part]
        same = len(seen[row.host]) == 1 and len(set(visible)) >= layout.ranks_per_node
        if visible and not same and str(row.local_rank) not in visible:
            row = _wrong(row, f"it sees only GPU {row.gpus}")
        judged.append(row)
    return judged


def _conclude(
    rows: list[RankProof], layout: Layout, measured: int, expected: int
) -> tuple[Kind, str]:
    wrong = [row for row in rows if not row.ok]
    if wrong:
        first = wrong[0]
        more = f" {len(wrong) - 1} more differ." if len(wrong) > 1 else ""
        return "differs", f"Rank {first.rank} on {first.host or '?'}: {first.why}.{more}"
    if not rows:
        return "not measured", "No rank reported."
    if not layout.planned_cores:
        return "not measured", f"{len(rows)} ranks reported; no cores were promised to compare."
    if not measured:
        return "not measured", "The ranks reported no cores: there is no taskset where they run."
    if measured < expected:
        return (
            "not measured",
            f"Only {measured} of {expected} ranks reported; those have the planned cores.",
        )
    what = "the planned cores" if layout.exact else "cores of their own NUMA domain"
    hosts = len({row.host for row in rows})
    part = ""
    if layout.nodes > ALL_NODES:
        part = f" (the first and the last of {layout.nodes})"
    where = "one node" if hosts == 1 else f"{hosts} nodes"
    return "proved", f"All {measured} ranks measured on {where}{part} have {what}."
