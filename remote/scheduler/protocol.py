"""What lumitui asks of a scheduler, and the words it answers with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class State(StrEnum):
    """What a run is doing, in one word for every scheduler."""

    SENDING = "sending"
    """On its way; nothing is known to be on the cluster yet."""
    UNKNOWN = "unknown"
    """It may or may not be on the cluster, or its end was not seen; settled later."""
    REFUSED = "refused"
    NOT_SENT = "not sent"
    """Certainly no job: none was created, and none can start any more."""
    QUEUED = "queued"
    RUNNING = "running"
    FINISHING = "finishing"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out of memory"
    NODE_FAILED = "node failed"
    PREEMPTED = "preempted"

    @property
    def is_final(self) -> bool:
        """Whether nothing more will happen."""
        return self in _FINAL

    @property
    def is_live(self) -> bool:
        """Whether a job of it is known to be on the cluster."""
        return self in (State.QUEUED, State.RUNNING, State.FINISHING)


_FINAL = frozenset(
    {
        State.REFUSED,
        State.NOT_SENT,
        State.DONE,
        State.FAILED,
        State.CANCELLED,
        State.TIMEOUT,
        State.OUT_OF_MEMORY,
        State.NODE_FAILED,
        State.PREEMPTED,
    }
)

STATES: Mapping[str, State] = {
    "PENDING": State.QUEUED,
    "REQUEUED": State.QUEUED,
    "REQUEUE_FED": State.QUEUED,
    "REQUEUE_HOLD": State.QUEUED,
    "RESV_DEL_HOLD": State.QUEUED,
    "SPECIAL_EXIT": State.QUEUED,
    "CONFIGURING": State.QUEUED,
    "POWER_UP_NODE": State.QUEUED,
    "RUNNING": State.RUNNING,
    "RESIZING": State.RUNNING,
    "SIGNALING": State.RUNNING,
    "SUSPENDED": State.RUNNING,
    "STOPPED": State.RUNNING,
    "COMPLETING": State.FINISHING,
    "STAGE_OUT": State.FINISHING,
    "COMPLETED": State.DONE,
    "FAILED": State.FAILED,
    "BOOT_FAIL": State.NODE_FAILED,
    "LAUNCH_FAILED": State.NODE_FAILED,
    "RECONFIG_FAIL": State.NODE_FAILED,
    "NODE_FAIL": State.NODE_FAILED,
    "CANCELLED": State.CANCELLED,
    "REVOKED": State.CANCELLED,
    "DEADLINE": State.TIMEOUT,
    "TIMEOUT": State.TIMEOUT,
    "OUT_OF_MEMORY": State.OUT_OF_MEMORY,
    "PREEMPTED": State.PREEMPTED,
}
"""Slurm's words (squeue(1), "JOB STATE CODES") as ours; a word not here is UNKNOWN."""


@dataclass(frozen=True)
class Submission:
    """What identifies one submission of a run."""

    folder: str
    """The run's folder on the site, absolute."""
    name: str
    """The job's name: the run's id, unique for good."""
    token: str
    """Random text in the job's comment."""
    script_sha256: str
    """Of job.sh as it was composed: other bytes are not submitted."""


@dataclass(frozen=True)
class Answer:
    """What became of a submission, as far as the evidence goes."""

    state: State
    """QUEUED with a job id; REFUSED or NOT_SENT for certain; UNKNOWN."""
    job_id: str | None = None
    message: str = ""
    """The scheduler's own words."""


@dataclass(frozen=True)
class Watch:
    """One run to ask about, and what is already known of it."""

    run: str
    folder: str
    job_id: str
    submitted: float
    """Epoch seconds on the laptop's clock; accounting is searched from a day before:
    a laptop's clock may be wrong."""
    metrics_offset: int = 0
    """Bytes of metrics.jsonl already here."""
    anew: bool = False
    """Those are of another file: it was written anew and is wanted from its beginning."""
    has_binding: bool = False
    attempt: int = 1
    """The last one known: a later one's binding is news."""
    exits: int = 0
    """Attempts whose exit file is already here."""


@dataclass(frozen=True)
class JobStatus:
    """What the scheduler says of a job. Times are epoch seconds."""

    job_id: str
    state: State
    word: str
    """The scheduler's own word."""
    reason: str = ""
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    """For a running job: when its time limit ends it."""
    nodes: str = ""
    restarts: int = 0
    exit_code: str = ""
    partition: str = ""
    name: str = ""


@dataclass(frozen=True)
class ExitFile:
    """What job.sh wrote after the launch returned; a killed job leaves none."""

    attempt: int
    rc: int
    """Exit code of the first rank that failed, else of the launcher."""
    rank: int | None
    ended: float
    job_id: str = ""
    started: float | None = None
    oom: bool = False
    """Whether srun said of that rank that it ran out of memory."""


@dataclass(frozen=True)
class RunFiles:
    """What a run's folder holds that was not known yet."""

    log_sizes: Mapping[int, int] = field(default_factory=dict)
    """Attempt to bytes."""
    exits: tuple[ExitFile, ...] = ()
    binding: str | None = None
    """binding.json, when it is there and was not known."""
    metrics: bytes = b""
    """Whole new lines of metrics.jsonl."""
    metrics_after: bytes | None = None
    """The line before them, where it is short: the last one known, if it is the same file still."""
    metrics_anew: bool = False
    """It is another file than the one whose bytes are known; none of its lines are here."""
    more_metrics: bool = False
    """There are more than one answer brings."""
    missing: bool = False
    """The folder itself is not there."""


@dataclass(frozen=True)
class Poll:
    """The answer to one look at a site: of all watched runs at once."""

    jobs: Mapping[str, JobStatus]
    """By job id; a job that nothing is known of has no entry."""
    files: Mapping[str, RunFiles]
    """By run."""
    warning: str = ""
    """Why the scheduler could not be asked; the jobs are then as they were."""
    clock: float | None = None
    """The site's clock, epoch seconds."""
    gone: frozenset[str] = frozenset()
    """Job ids the scheduler was asked for and has no job of (any more). What `jobs` says of one
    of them is accounting's."""
    silent: str = ""
    """Why accounting could not be asked for them; "" when it was, or need not be."""


def moment(value: object) -> float | None:
    """Return epoch seconds that a site told, as digits or a number; None where it is no time.

    Year 5138 is the last: beyond 9999 no clock can show it, and a column holds only what is finite.
    """
    if isinstance(value, str):
        value = count(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e11:
        return None
    return float(value)


def count(text: str) -> int | None:
    """Return the number that plain digits say; None for anything else, and above 15 digits."""
    return int(text) if 0 < len(text) < 16 and text.isascii() and text.isdecimal() else None


class Scheduler(Protocol):
    """Jobs of one site. One contract test suite runs on every implementation."""

    def command(self) -> str:
        """Return the submit command as the preview shows it and the site runs it."""
        ...

    def submit(self, submission: Submission) -> Answer:
        """Create the job, once: a second call for the same submission finds the first's.

        Raises:
            LinkLost: the reply was lost; ask `settle`, never `submit` again.
        """
        ...

    def settle(
        self, submission: Submission, *, deep: bool, void: bool, grace: float = 0.0
    ) -> Answer:
        """Find out what became of a submission whose reply was lost; creates nothing.

        `deep` also asks accounting. With `void`, when there is no sign of a job, the claim is
        taken so that a job that still appears ends at once; the answer is then NOT_SENT. The
        submit step must then have begun `grace` seconds ago, by the site's own clock.
        """
        ...

    def poll(self, watches: Sequence[Watch]) -> Poll:
        """Ask about all `watches` in one request, with at most one query of the queue.

        Accounting is asked only for jobs the queue no longer knows.
        """
        ...

    def cancel(self, job_ids: Sequence[str]) -> None:
        """Cancel jobs; one that already ended is no error.

        Raises:
            RefusedError: the scheduler would not.
        """
        ...
