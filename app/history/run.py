"""A run, as the history stores it and screens show it.

A job with `chain:` (templates/job/chain.sh) appends two lines to attempts.jsonl for each attempt:
`began` and `ended`. A killed attempt has no second line.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypedDict

from lumitui.app.history.kept_spec import Brief, LateSpec, brief_of
from lumitui.app.job.launch import Price, RankLayout
from lumitui.remote.site import walltime
from lumitui.remote.site.answer_fields import json_of, moment, short, whole
from lumitui.remote.site.errors import HistoryError, InputError
from lumitui.remote.site.gpu_use import GpuUse
from lumitui.remote.site.run_folder import JOB_SCRIPT, MACHINERY, PROBE_SCRIPT
from lumitui.remote.site.safe_text import SEPARATOR, UNSEEN
from lumitui.remote.site.states import HANGS, State

if TYPE_CHECKING:
    from lumitui.app.job.spec import JobSpec

MOST_ATTEMPTS = 999
"""Same as run_files.MOST_ATTEMPT; a program may write any number of lines."""
_MOST_NODES = 4000  # maximum characters of a node list
_MOST_STEPS = 10**15
_CODES = 256

KILLED = "killed"
"""The possible ends of an attempt that wrote none: a node failed, or someone requeued its job."""
ENDS = ("requeue", "done", "failed", "used-up", "no-progress", "unsaved", "cancelled", "refused")
"""The ends that a job reports; `refused`: Slurm refused to requeue it."""

SAVED = ("requeue", "used-up", "refused")
"""The ends of an attempt that saved after a stop request."""
NODE_PROBE = "node-probe"
"""Name of the job that measures a node for its site's profile."""
SAVED_TAG = "#saved"
"""The tag of such a job whose measurements are in the profile."""
FETCHED_TAG = "#fetched"
"""The tag of a run whose results were fetched after its end."""
AGENT_TAG = "#agent"
"""Tag in the note of each run that an agent sent; these runs count toward the agents' budget."""


@dataclass(frozen=True)
class AttemptRecord:
    """One attempt of a run, as recorded by its job. Times are epoch seconds of the site's clock."""

    number: int
    """Counted from 1."""
    job_id: str
    nodes: str
    started: float
    ended: float | None = None
    """When it ended; for a killed attempt, when it last wrote to its log."""
    rc: int | None = None
    step: int | None = None
    """Last trained step; None if the program does not report steps."""
    end: str = ""
    """One of ENDS, or KILLED; empty while the attempt runs."""
    said: str = ""
    """Slurm's message, if it refused the requeue."""


def merged(records: Iterable[AttemptRecord], lines: bytes) -> tuple[AttemptRecord, ...]:
    """Return the attempts after more lines of attempts.jsonl; ignores invalid lines."""
    by_number = {record.number: record for record in records}
    for data in map(json_of, lines.splitlines()):
        if not isinstance(data, dict):
            continue
        number, when = whole(data.get("attempt"), 1, MOST_ATTEMPTS), moment(data.get("time"))
        if number is None or when is None:
            continue
        if data.get("event") == "began":
            _close(by_number, number, moment(data.get("alive")))
            nodes, job_id = short(data.get("nodes"), _MOST_NODES), short(data.get("job"), 40)
            by_number[number] = AttemptRecord(number, job_id, nodes, when)
        elif number in by_number and by_number[number].end != KILLED:  # else its node came back
            by_number[number] = _after(by_number[number], data, when)
    return tuple(by_number[number] for number in sorted(by_number))


def _close(by_number: dict[int, AttemptRecord], number: int, alive: float | None) -> None:
    """Mark the attempt before `number` as killed if it wrote no end."""
    before = by_number.get(number - 1)
    if before is not None and not before.end:
        ended = None if alive is None else max(before.started, alive)
        by_number[number - 1] = replace(before, end=KILLED, ended=ended)


def _after(record: AttemptRecord, data: dict[object, object], when: float) -> AttemptRecord:
    if data.get("event") == "refused":
        return replace(record, end="refused", said=short(data.get("said"), 300))
    end = data.get("next")
    if data.get("event") != "ended" or end not in ENDS:
        return record
    rc, step = whole(data.get("rc"), 0, _CODES), whole(data.get("step"), 0, _MOST_STEPS)
    ended = max(record.started, when)  # a node's clock may have been set back
    return replace(record, ended=ended, rc=rc, step=step, end=str(end))


def seconds_ended(records: Iterable[AttemptRecord]) -> float:
    """Return the total duration of the ended attempts, as far as known."""
    over = (record for record in records if record.end)
    return sum((record.ended or record.started) - record.started for record in over)


def saved(records: Iterable[AttemptRecord]) -> bool:
    """Return whether an attempt ended with a checkpoint to resume from."""
    return any(record.end in SAVED for record in records)


def trained(
    records: Iterable[AttemptRecord], *, resumed: bool = False
) -> Iterator[tuple[AttemptRecord, int | None]]:
    """Yield each attempt with the number of steps it trained; None if unknown.

    `resumed`: the first one began at another run's checkpoint, whose step is unknown.
    """
    before: int | None = None if resumed else 0
    for record in records:
        is_known = record.step is not None and before is not None
        yield record, max(0, record.step - before) if is_known else None  # type: ignore[operator]
        # What a killed attempt trained after its last checkpoint is trained again.
        before = record.step if record.step is not None else before


_LONGEST_NOTE = 200
OVERTIME_SECONDS = 86_400.0
"""Seconds after its time limit for which a job may still be reported as running."""
NEWS_SECONDS = 90.0
"""Seconds after which a site's answer is outdated: polls come each minute. Title bars and logs call
a site offline after the same time."""


class Text(NamedTuple):
    """Marks a field as a text that the history stores once for all runs that share it."""

    listed: bool = False
    """Whether every list reads it; a run without it is unreadable."""
    needed: bool = False
    """Whether a run that lacks it is unreadable when it is requested."""
    recorded: bool = True
    """Whether the record in a run's folder also has it."""


@dataclass(frozen=True)
class Provenance:
    """The git state of the sent code; all fields are empty outside a repository."""

    commit: str | None
    branch: str | None
    """None also on a detached HEAD."""
    patch: Annotated[str, Text(recorded=False)]
    """The uncommitted changes and the names of untracked files; `''` if there are none."""
    dirty: bool


@dataclass(frozen=True)
class Run:
    """One launch by a user, with its current state. Times are epoch seconds.

    Each field is a column of the history's file (app/history/rows/run_row.py).
    """

    id: str
    name: str
    site: str
    created: float
    parent: str | None
    """The id of the run that this one resubmits or scales."""
    if TYPE_CHECKING:
        spec: JobSpec
    else:
        spec: Annotated[object, Text(listed=True)] = LateSpec()
    script: Annotated[str, Text()]
    """The composed job.sh, like the next two."""
    command: Annotated[str, Text()]
    layout: Annotated[RankLayout, Text(listed=True)]
    price: Annotated[Price, Text(listed=True)]
    global_batch: int | None
    deepspeed_config: Annotated[str | None, Text(needed=True)]
    """The sent DeepSpeed configuration, with its batch fields. A resubmission without it would
    treat the run as a different kind."""
    project: str
    """The project's folder on the laptop."""
    job_file: str | None
    folder: str
    """The run's folder on the site."""
    root: str
    """The project's folder on the site; snapshots are in `root`/code."""
    token: str
    provenance: Provenance
    state: State
    snapshot: str | None = None
    job_id: str | None = None
    reason: str = ""
    word: str = ""
    """The scheduler's word for the state."""
    rc: int | None = None
    failed_rank: int | None = None
    attempt: int = 1
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    updated: float = 0.0
    """When the site last answered about it; 0 before the first answer."""
    nodes_used: str = ""
    log_sizes: dict[int, int] = field(default_factory=dict)
    """Attempt to bytes."""
    binding: Annotated[str | None, Text(recorded=False)] = None
    """binding.json as the job wrote it."""
    metrics_offset: int = 0
    """Fetched bytes of metrics.jsonl; if negative, the points are from so many bytes of its log."""
    exits: int = 0
    """Attempts whose exit file has arrived."""
    resumed_from: str | None = None
    note: str = ""
    expected_start: float | None = None
    """The scheduler's estimate of a queued job's start; the job often starts earlier."""
    expected_end: float | None = None
    """The end of the time limit according to the scheduler; None once the job has ended."""
    machinery: Annotated[str | None, Text()] = None
    """lumitui.sh, which job.sh calls."""
    probe: Annotated[str | None, Text()] = None
    """probe.sh."""
    attempts: tuple[AttemptRecord, ...] = ()
    """The attempts that a run with `chain:` recorded; empty for all others."""
    attempts_read: int = 0
    """Number of bytes of attempts.jsonl already fetched."""
    cause: str = ""
    """Why it failed, in a few words; empty until its log has been searched for causes."""
    gpu_use: GpuUse | None = None
    """GPU utilization in the last attempt; None without readings."""
    missed: float | None = None
    """When its folder was first missing, by the site's clock, while its job is unknown."""

    @property
    def brief(self) -> Brief:
        """The keys of the job file that lists show; `spec` is the whole file, read on request.

        For a run from a list, `spec` raises HistoryError if another version wrote it.
        """
        return brief_of(self.__dict__["spec"])

    @property
    def has_metrics(self) -> bool:
        """Whether the job file has `metrics:`; does not read a stored job file."""
        return bool(vars(self)["spec"].metrics)

    @property
    def awaited(self) -> tuple[str, ...]:
        """The ids of the runs it waits for; does not read a stored job file."""
        runs: tuple[str, ...] = vars(self)["spec"].awaited
        return runs

    @property
    def never_starts(self) -> bool:
        """Whether it can never start, because a run that it waits for did not end as required."""
        return self.state is State.QUEUED and self.reason.startswith("DependencyNeverSatisfied")

    @property
    def files(self) -> dict[str, str]:
        """The sent scripts by name: job.sh and those it calls."""
        texts = {JOB_SCRIPT: self.script, MACHINERY: self.machinery, PROBE_SCRIPT: self.probe}
        return {name: text for name, text in texts.items() if text}

    @property
    def latest_end(self) -> float | None:
        """When the time limit ends the job; None if unknown or if the job has ended."""
        if self.state.is_final or self.expected_end:
            return None if self.state.is_final else self.expected_end
        start = self.started or self.expected_start
        return start + self.limit if start else None

    @property
    def limit(self) -> int:
        """The seconds after which an attempt ends.

        Of a running job it is the site's: Slurm rounds a limit up to whole minutes.
        """
        asked = walltime.seconds_of(self.brief.time)
        if self.state is State.RUNNING and self.started and self.expected_end:
            return max(asked, round(self.expected_end - self.started))
        return asked

    @property
    def queued_again(self) -> bool:
        """Whether its submission time is that of a requeue: Slurm keeps only the latest."""
        begun = self.attempts[0].started if self.attempts else None
        late = self.submitted is not None and begun is not None and self.submitted > begun
        return self.attempt > 1 or late

    @property
    def between_attempts(self) -> bool:
        """Whether an attempt has ended and the next has not begun."""
        return bool(self.attempts) and bool(self.attempts[-1].end) and self.started is None

    @property
    def hang(self) -> str:
        """The hung part of the job, according to a bundled trainer; '' if nothing hangs."""
        words = " ".join(self.reason.split()) if self.state is State.RUNNING else ""
        return words if HANGS.match(words) else ""

    def billed(self, now: float) -> float:
        """Return the approximate cost so far, in the unit of its price.

        Exceeds the price at the time limit only if the end is known: Slurm may end a job after its
        limit (OverTimeLimit, KillWait) and bills that time. For a requeued run without `chain:`,
        only the last attempt's time is known.
        """
        spent = self.price.per_hour * self.ran(now) / 3600
        is_known = self.ended is not None and self.state.is_final
        return spent if is_known else min(spent, self.price.amount)

    def ran(self, now: float) -> float:
        """Return the seconds it has run so far; with `chain:`, in all attempts together."""
        seconds = seconds_ended(self.attempts)
        if not self.attempts or not self.attempts[-1].end or self.attempt > len(self.attempts):
            seconds += self.elapsed(now)
        return seconds

    def as_of(self, now: float) -> float | None:
        """Return when its site last answered, if its state may be out of date.

        None: the state is current, or the run has ended or not begun.
        """
        return None if self.started is None else self.heard(now)

    def heard(self, now: float) -> float | None:
        """Return when its site last reported it, if its state may be out of date.

        None: the state is current, or the run has ended or has no job.
        """
        return self.updated if self.unreported_since(now - NEWS_SECONDS) else None

    def unreported_since(self, moment: float) -> bool:
        """Return whether its site, which knows its state, last reported it before `moment`."""
        needs_no_news = self.state.is_final or self.state is State.UNKNOWN or self.job_id is None
        return not needs_no_news and 0 < self.updated < moment

    def elapsed(self, now: float) -> float:
        """Return the seconds the job has been running, or ran; 0 before it starts.

        Counts no time after the site's last answer, because the job may have ended since.
        """
        if self.started is None:
            return 0.0
        end = min(now, self.updated or now)
        limit = self.started + self.limit
        # A job ends soon after its limit. If a poll saw it running much later, the clocks differ.
        end = end if end < limit + OVERTIME_SECONDS else limit
        if self.state.is_final or self.state is State.UNKNOWN:
            # The end is unknown: the site's last answer bounds it.
            end = self.updated if self.ended is None else self.ended
        return max(0.0, end - self.started)


class Changes(TypedDict, total=False):
    """The fields of a run that may change after its creation; a test compares them with `Run`."""

    state: State
    job_id: str | None
    reason: str
    word: str
    rc: int | None
    failed_rank: int | None
    attempt: int
    submitted: float | None
    started: float | None
    ended: float | None
    updated: float
    nodes_used: str
    log_sizes: dict[int, int]
    binding: str | None
    metrics_offset: int
    exits: int
    attempts: tuple[AttemptRecord, ...]
    attempts_read: int
    cause: str
    gpu_use: GpuUse | None
    snapshot: str | None
    note: str
    folder: str
    resumed_from: str | None
    expected_start: float | None
    expected_end: float | None
    missed: float | None


UNFINISHED = tuple(state.value for state in State if not state.is_final)


def one_line(note: str) -> str:
    """Return `note`; InputError unless it is one line of at most 200 printable characters."""
    if UNSEEN.search(note) or SEPARATOR.search(note) or {"\n", "\t"} & set(note):
        raise InputError(
            "A note must be one line without control characters.", "Write it on one line."
        )
    if len(note) > _LONGEST_NOTE:
        raise InputError(
            f"The note has {len(note)} characters, more than {_LONGEST_NOTE}.", "Shorten it."
        )
    return note


def unknown_run(run_id: str) -> HistoryError:
    """Return the error for an id that is not in the history."""
    return HistoryError(
        f"The history has no run {run_id!r}.",
        "Check the list of runs; `lumitui history --recover SITE` rebuilds lost runs.",
    )
