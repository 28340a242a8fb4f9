"""The proof of binding: what each rank may really use, against what was planned. Pure."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from lumitui.app.job import Layout
from lumitui.remote.cores import format_cores, parse_cores

EVERY_NODE = 16
"""Beyond so many nodes the first and the last stand for all (templates/probe.sh)."""

Kind = Literal["proved", "differs", "not measured", "pending"]


@dataclass(frozen=True)
class RankProof:
    """One rank: planned and found."""

    rank: int
    local_rank: int
    host: str
    planned: str
    """Cores as ranges; empty: nothing was promised."""
    found: str
    """Cores the rank may really use."""
    gpus: str
    """GPUs it sees, as its variable lists them; empty: unknown."""
    ok: bool
    wrong: str = ""
    """What is not as planned, in words."""


@dataclass(frozen=True)
class Verdict:
    """What the probe says of a launch."""

    kind: Kind
    measured: int
    expected: int
    rows: tuple[RankProof, ...]
    sentence: str


@dataclass(frozen=True)
class _Report:
    rank: int
    local_rank: int
    host: str
    cores: str
    gpus: str


def verdict(binding: str | None, layout: Layout, *, ended: bool = False) -> Verdict:
    """Return what binding.json (`binding`) says of the planned `layout`.

    `ended`: the run is over, so that a missing report stays missing.
    """
    nodes = layout.nodes if layout.nodes <= EVERY_NODE else 2
    expected = nodes * layout.ranks_per_node
    if binding is None:
        if ended:
            return Verdict("not measured", 0, expected, (), "The run left no report of its probe.")
        return Verdict("pending", 0, expected, (), "The probe has not reported yet.")
    reports = _read(binding)
    if not reports:
        return Verdict("not measured", 0, expected, (), "No rank reported its cores.")
    rows = tuple(_judge(report, layout) for report in reports)
    rows = _together(rows, layout)
    wrong = [row for row in rows if not row.ok]
    if wrong:
        first = wrong[0]
        others = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        return Verdict(
            "differs",
            len(rows),
            expected,
            rows,
            f"Rank {first.rank} on {first.host}{others}: {first.wrong}.",
        )
    if not all(row.found for row in rows):
        sentence = "The nodes could not tell the cores of their ranks (no taskset)."
        return Verdict("not measured", 0, expected, rows, sentence)
    if not layout.planned_cores:
        sentence = "No cores were promised: Slurm chose them."
        return Verdict("not measured", len(rows), expected, rows, sentence)
    if len(rows) < expected:
        sentence = f"Only {len(rows)} of {expected} ranks reported; these are as planned."
        return Verdict("not measured", len(rows), expected, rows, sentence)
    how = "exactly the planned cores" if layout.exact else "its own part of the planned cores"
    return Verdict(
        "proved", len(rows), expected, rows, f"Each of the {len(rows)} measured ranks has {how}."
    )


def table(result: Verdict) -> str:
    """Return the verdict as a table for a terminal, a line a rank."""
    lines = [f"{result.kind}: {result.sentence}"]
    if result.rows:
        lines.append(f"{'rank':>4}  {'local':>5}  {'host':<12}  {'planned':<13}  found")
    for row in result.rows:
        mark = "" if row.ok else f"  <- {row.wrong}"
        lines.append(
            f"{row.rank:4d}  {row.local_rank:5d}  {row.host[:12]:<12}  "
            f"{row.planned or '-':<13}  {row.found or '?'}{mark}"
        )
    return "\n".join(lines)


def _read(text: str) -> list[_Report]:
    """Return the reports by rank; what is not a report, or not twice the same, is left out."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = list(_lines(text))
    reports: dict[int, _Report] = {}
    for item in data if isinstance(data, list) else []:
        try:
            report = _Report(
                rank=int(item["rank"]),
                local_rank=int(item["local_rank"]),
                host=str(item["host"]),
                cores=format_cores(parse_cores(str(item["cores"]))),
                gpus=str(item["gpus"]),
            )
        except (TypeError, KeyError, ValueError, OverflowError):
            continue
        reports.setdefault(report.rank, report)
    return [reports[rank] for rank in sorted(reports)]


def _lines(text: str) -> Iterable[object]:
    # A report cut half way (a full disk): every whole line still counts.
    for line in text.splitlines():
        try:
            yield json.loads(line.strip().rstrip(","))
        except (ValueError, RecursionError):
            continue


def _judge(report: _Report, layout: Layout) -> RankProof:
    planned, wrong = "", ""
    if 0 <= report.local_rank < len(layout.planned_cores):
        planned = layout.planned_cores[report.local_rank]
    if not 0 <= report.local_rank < layout.ranks_per_node:
        wrong = f"its local rank {report.local_rank} is not one of {layout.ranks_per_node}"
    elif planned and report.cores:
        want, have = set(parse_cores(planned)), set(parse_cores(report.cores))
        if layout.exact and want != have:
            wrong = f"planned {planned}, found {report.cores}"
        elif not layout.exact and not have <= want:
            wrong = f"planned within {planned}, found {report.cores}"
    gpus = [word for word in report.gpus.split(",") if word]
    if not wrong and gpus and len(gpus) < layout.ranks_per_node and len(gpus) != 1:
        wrong = f"it sees only the GPUs {report.gpus}"
    return RankProof(
        report.rank,
        report.local_rank,
        report.host,
        planned,
        report.cores,
        report.gpus,
        not wrong,
        wrong,
    )


def _together(rows: Sequence[RankProof], layout: Layout) -> tuple[RankProof, ...]:
    """Return the rows, judged also as ranks of one host: each local rank once, shared nothing."""
    hosts: dict[str, list[RankProof]] = defaultdict(list)
    for row in rows:
        hosts[row.host].append(row)
    judged: list[RankProof] = []
    for mates in hosts.values():
        seen: dict[int, int] = {}
        taken: dict[int, int] = {}
        for row in mates:
            wrong = row.wrong
            if not wrong and row.local_rank in seen:
                wrong = f"rank {seen[row.local_rank]} has the local rank {row.local_rank} too"
            seen.setdefault(row.local_rank, row.rank)
            if not wrong and row.planned and not layout.exact:
                for core in parse_cores(row.found):
                    if core in taken:
                        wrong = f"core {core} is rank {taken[core]}'s too"
                        break
                    taken[core] = row.rank
            judged.append(
                row
                if wrong == row.wrong
                else RankProof(
                    row.rank, row.local_rank, row.host, row.planned, row.found, row.gpus, False, wrong
                )
            )
    return tuple(sorted(judged, key=lambda row: row.rank))
