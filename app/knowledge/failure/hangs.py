"""The rank that the others waited for, from the lines of a bundled trainer or PyTorch. Pure.

In `[rank5]:[E… ProcessGroupNCCL.cpp:616] [PG ID 2 PG GUID 5(tp) Rank 1] …` 5 is the global rank and
1 the rank in that process group. Each group counts its own operations. Forms: `[Rank 1]` (PyTorch
2.0), `[PG 1 Rank 1]` (2.3), `[PG 0 (default_pg) Rank 1]` (2.4) and `[PG ID 0 PG GUID 0(default_pg)
Rank 1]` (since 2.5; source: ProcessGroupNCCL.cpp, createLogPrefix). The trainer's sentences come
from trainers/monitor/watchdog.py.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lumitui.app.knowledge.causes.meanings import Meaning
from lumitui.app.knowledge.log_lines import LogLine
from lumitui.app.knowledge.rules.phrases import some

_TAG = re.compile(r"\[rank(\d{1,6})\]:")
_PLACE = re.compile(r"\[(?:(PG [^\[\]]{1,200}) )?Rank (\d{1,6})\]")
# Only this name is the same on all ranks; the numbers before it count in each process.
_GLOBAL = re.compile(r"PG GUID (\S+)")
_CAUGHT = re.compile(
    r"Watchdog caught collective operation timeout: WorkNCCL\("
    r"SeqNum=(\d{1,12}), (OpType=\w+(?:, Numel\w+=\d+)*)"
)
_ENQUEUED = re.compile(r"[Ll]ast enqueued (?:NCCL )?work: (-?\d{1,12})")
_WAITED = re.compile(r"(?:at|NCCL) work: (\d{1,12}), last enqueued")
# TraceUtils.h, analyzeLaggingRanks and analyzeMissingRanks.
_DESYNC = re.compile(
    r"^\s*(?:- )?\[(\d{1,6}(?:, \d{1,6})*)\] (?:joined but didn't finish|finished) collective #"
    r"|ranks \[(\d{1,6}(?:, \d{1,6})*)\] are the lagging ranks"
)


@dataclass(frozen=True)
class Straggler:
    """The rank that the others waited for."""

    rank: int
    sentence: str


@dataclass(frozen=True)
class _Report:
    """The report of one rank about one process group."""

    rank: int
    inner: int
    """The rank in the group."""
    group: str
    """"" if the line does not name it."""
    caught: int | None
    operation: str
    enqueued: int | None
    waited: int | None

    @property
    def is_plain(self) -> bool:
        """Whether the group's ranks may be the global ranks."""
        return self.rank == self.inner


def straggler(lines: Sequence[LogLine], world_size: int | None = None) -> Straggler | None:
    """Return the rank that the others waited for; None if the log does not prove one."""
    reports = [report for line in lines if (report := _report(line)) is not None]
    if not reports:
        return None
    absent = _desynced(lines) if all(report.is_plain for report in reports) else None
    if absent is None:
        absent = _silent(lines, reports, world_size)
    if (behind := _behind(reports)) is not None:
        return behind
    if absent is None:
        return None
    return Straggler(absent, f"Rank {absent} did not join.")


def _report(line: LogLine) -> _Report | None:
    caught, enqueued = _CAUGHT.search(line.text), _ENQUEUED.search(line.text)
    first = caught or enqueued
    if first is None:
        return None
    head = line.text[: first.start()]
    places, tags = _PLACE.findall(head), _TAG.findall(head)
    rank = int(tags[-1]) if tags else line.rank
    if not places or rank is None:
        return None
    waited = _WAITED.search(line.text)
    return _Report(
        rank,
        int(places[-1][1]),
        places[-1][0],
        int(caught[1]) if caught else None,
        caught[2] if caught else "",
        int(enqueued[1]) if enqueued else None,
        int(waited[1]) if waited else None,
    )


def _behind(reports: Sequence[_Report]) -> Straggler | None:
    """Return the rank that is behind all others of its group; None if groups disagree."""
    groups: defaultdict[str, list[_Report]] = defaultdict(list)
    for report in reports:
        if report.enqueued is not None:
            name = _GLOBAL.search(report.group)
            groups[name[0] if name else report.group].append(report)
    found = [_least(name, members) for name, members in groups.items()]
    if not groups:
        found = [_least_caught(reports)]
    named = {item.rank: item for item in found if item is not None}
    return next(iter(named.values())) if len(named) == 1 else None


def _least(name: str, members: Sequence[_Report]) -> Straggler | None:
    if "GUID" not in name and not all(report.is_plain for report in members):
        return None
    works = {report.rank: report.enqueued for report in members if report.enqueued is not None}
    if (rank := _lowest(works)) is None:
        return None
    waits = [
        report.waited for report in members if report.rank != rank and report.waited is not None
    ]
    if waits and works[rank] < min(waits):
        return Straggler(rank, f"Rank {rank} did not join.")
    most = max(works.values())
    started = some(works[rank], "operation") if works[rank] > 0 else "no operation"  # or -1
    sentence = f"Rank {rank} is behind: it had started {started}, the others up to {most:,}."
    return Straggler(rank, sentence)


def _least_caught(reports: Sequence[_Report]) -> Straggler | None:
    """Return the rank behind all others if no line names a group and all may be in one."""
    if not all(report.is_plain and not report.group for report in reports):
        return None
    if len({report.operation for report in reports}) != 1:
        return None
    seen = {(report.rank, report.caught) for report in reports}
    works = {rank: work for rank, work in seen if work is not None}
    if len(works) != len(seen) or (rank := _lowest(works)) is None:
        return None
    return Straggler(rank, f"Rank {rank} did not join.")


def _lowest(works: Mapping[int, int]) -> int | None:
    least = [rank for rank, work in works.items() if work == min(works.values())]
    return least[0] if len(works) > 1 and len(least) == 1 else None


def _desynced(lines: Sequence[LogLine]) -> int | None:
    """Return the one rank that PyTorch's own desync report names."""
    named: set[int] = set()
    for line in lines:
        if match := _DESYNC.search(line.text):
            named.update(int(rank) for rank in (match[1] or match[2]).split(", "))
    return named.pop() if len(named) == 1 else None


def _silent(
    lines: Sequence[LogLine], reports: Sequence[_Report], world_size: int | None
) -> int | None:
    """Return the only rank of the job whose watchdog reported nothing."""
    seen = {line.rank for line in lines if line.rank is not None}
    seen |= {report.rank for report in reports}
    waiting = {report.rank for report in reports if report.caught is not None}
    everyone = set(range(world_size or max(seen) + 1))
    silent = everyone - waiting
    if len(waiting) < 2 or len(silent) != 1 or not silent <= seen or not seen <= everyone:
        return None
    return silent.pop()


HUNG = 88
"""The bundled trainers' exit code when they ended because a rank hung (`hang:`)."""
HANG = Meaning(
    "hung",
    "The training made no progress for longer than `hang:` allows, so it ended itself.",
    "Resubmit from the checkpoint; if the same node hangs again, exclude it with "
    "`sbatch: [--exclude=NODE]`.",
)
WAITING = "If it does not resume, cancel the job and resubmit from its checkpoint."
"""Advice while a rank hangs."""
_NAMED = re.compile(
    r"^(?P<sentence>Ranks? (?P<rank>\d{1,6})\b.{1,200} not moved for \d{1,9} s\b.{0,200})"
)
_AGAIN = re.compile(r"^(?:Rank \d{1,6} on \S{1,100} moves|The ranks move) again\.$")
_ENDS = " The training ends, because `hang:` is set."


def hung(lines: Sequence[LogLine]) -> Straggler | None:
    """Return the last rank that the log reports as hung; None if it moved again."""
    for line in reversed(lines):
        if _AGAIN.match(line.text):
            return None
        if match := _NAMED.match(line.text):
            sentence = match["sentence"].removesuffix(_ENDS).strip()
            return Straggler(int(match["rank"]), sentence)
    return None


def ended(lines: Sequence[LogLine]) -> bool:
    """Return whether the training ended because of a hang; torchrun loses its exit code."""
    return any(line.text.endswith(_ENDS) and " moved for " in line.text for line in lines)
