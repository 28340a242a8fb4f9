"""A cluster's overview in one request: nodes, the user's queue, reservations, budget.

Each part fails on its own. Formats: sinfo(1), squeue(1), scontrol(1); times are epoch seconds by
SLURM_TIME_FORMAT=%s.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from lumitui.remote.site.answer_fields import count, lines, moment
from lumitui.remote.site.shell_text import quote
from lumitui.remote.transport.questions import MOST_PART, Question, SiteAnswers, ask, read_answers
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

MOST_ROWS = 2_000
"""Maximum number of partitions, jobs or reservations to read of a part."""
MOST_BUDGET_LINES = 60
SECONDS = 60.0
"""Time limit of the request in seconds."""
_LONGEST = 200

IDLE = frozenset({"idle"})
MIXED = frozenset({"mixed"})
ALLOCATED = frozenset({"allocated", "completing"})
WAITING = frozenset({"planned", "reserved", "maint", "powering_up", "reboot", "powered_down"})
"""States of working but reserved nodes (sinfo(1), NODE STATE CODES)."""


@dataclass(frozen=True)
class Nodes:
    """The nodes of a partition, by state."""

    partition: str
    available: str
    """`up`, `down`, `drain` or `inact`."""
    max_time: str
    job_nodes: str
    """Nodes that a job may have: `1-4`, `1-infinite`."""
    idle: int = 0
    mixed: int = 0
    allocated: int = 0
    other: int = 0
    """Nodes reserved by a reservation, maintenance or a large job."""
    down: int = 0

    @property
    def total(self) -> int:
        """Number of all nodes."""
        return self.idle + self.mixed + self.allocated + self.other + self.down


@dataclass(frozen=True)
class QueuedJob:
    """A job of the user, sent by lumitui or not."""

    job_id: str
    state: str
    partition: str
    nodes: int
    elapsed: str
    limit: str
    start: float | None
    """When it started or is expected to start."""
    reason: str
    name: str


@dataclass(frozen=True)
class Reservation:
    """A reservation of nodes."""

    name: str
    state: str
    start: float | None
    end: float | None
    nodes: int
    partition: str


@dataclass(frozen=True)
class ClusterOverview:
    """A site's overview; a part in `faults` is empty."""

    partitions: tuple[Nodes, ...] = ()
    queue: tuple[QueuedJob, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    budget: tuple[str, ...] = ()
    """The output lines of the site's own command."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Why a part (`nodes`, `queue`, `reservations`, `budget`) is missing."""


@purpose("cluster")
def ask_overview(transport: Transport, clean: str, budget: str) -> ClusterOverview:
    """Query a site for all parts in one request; `budget` is the site's own command, or ''.

    `clean` is sh that unsets variables that would change Slurm's answers.
    """
    unset = r"unset $(env | sed -nE 's/^(SINFO_[A-Z0-9_]*)=.*/\1/p')"
    answers = ask(transport, f"{clean}\n{unset}", _questions(budget), timeout=SECONDS)
    return _overview(answers)


def parse_overview(output: bytes, marker: str, budget: str) -> ClusterOverview:
    """Return the overview in a request's output; raises no errors."""
    return _overview(read_answers(output, marker, _questions(budget)))


def _questions(budget: str) -> tuple[Question[object], ...]:
    more = Question("budget", f"sh -c {quote(budget)}", _budget, budget, "commands: balance:")
    return (_NODES, _QUEUE, _RESERVATIONS, *((more,) if budget else ()))


def _overview(answers: SiteAnswers) -> ClusterOverview:
    return ClusterOverview(
        partitions=answers.of(_NODES),
        queue=answers.of(_QUEUE),
        reservations=answers.of(_RESERVATIONS),
        budget=_budget(answers.texts.get("budget", "")),
        faults=answers.faults,
    )


def _rows(text: str, fields: int) -> Iterator[list[str]]:
    """Yield the rows with this many fields, without messages of sinfo and squeue."""
    for line in islice(lines(text[:MOST_PART]), MOST_ROWS):
        row = [word.strip()[:_LONGEST] for word in line.split("|", fields - 1)]
        if len(row) == fields:
            yield row


def _partitions(text: str) -> tuple[Nodes, ...]:
    rows: dict[str, dict[str, Any]] = {}
    for name, available, max_time, job_nodes, state, nodes in _rows(text, 6):
        number = count(nodes)
        if not name or number is None:
            continue
        start = {"available": available, "max_time": max_time, "job_nodes": job_nodes}
        row = rows.setdefault(name, start)
        kind = node_kind(state)
        row[kind] = row.get(kind, 0) + number
    return tuple(Nodes(name, **row) for name, row in rows.items())


def node_kind(state: str) -> str:
    """Return the field of `Nodes` for a state from sinfo.

    A sign after the state qualifies it: `*`: the node does not respond; `$`: maintenance; `@`, `^`:
    a pending reboot; `-`: planned for a large job.
    """
    word = state.lower().rstrip("*~#!%$@^+-")
    signs = state[len(word) :]
    if "*" in signs:
        return "down"
    if word in IDLE:
        return "other" if set(signs) & set("-$!%") else "idle"
    kinds = ((MIXED, "mixed"), (ALLOCATED, "allocated"), (WAITING, "other"))
    return next((kind for words, kind in kinds if word in words), "down")


def _queue(text: str) -> tuple[QueuedJob, ...]:
    return tuple(
        QueuedJob(job_id, state, partition, count(nodes) or 0, elapsed, limit, moment(start), why,
                  name)
        for job_id, state, partition, nodes, elapsed, limit, start, why, name in _rows(text, 9)
        if job_id[:1].isdigit()
    )  # fmt: skip


def _reservations(text: str) -> tuple[Reservation, ...]:
    reservations: list[Reservation] = []
    for line in islice(lines(text[:MOST_PART]), MOST_ROWS):
        record = dict(re.findall(r"(?:^|\s)([A-Za-z]\w*)=(\S*)", line))
        if name := record.get("ReservationName", "")[:_LONGEST]:
            reservations.append(
                Reservation(
                    name,
                    record.get("State", "")[:_LONGEST],
                    moment(record.get("StartTime", "")),
                    moment(record.get("EndTime", "")),
                    count(record.get("NodeCnt", "")) or 0,
                    record.get("PartitionName", "")[:_LONGEST],
                )
            )
    return tuple(reservations)


def _budget(text: str) -> tuple[str, ...]:
    kept = [line.rstrip()[:_LONGEST] for line in lines(text[:MOST_PART])]
    while kept and not kept[-1]:
        kept.pop()
    return tuple(kept[:MOST_BUDGET_LINES])


_NODES = Question("nodes", "sinfo -h -o '%R|%a|%l|%s|%T|%D'", _partitions, "sinfo")
_QUEUE = Question("queue", "squeue --me -a -h -o '%i|%T|%P|%D|%M|%l|%S|%r|%j'", _queue, "squeue")
_RESERVATIONS = Question("reservations", "scontrol show reservation -o", _reservations, "scontrol")
