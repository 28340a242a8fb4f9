"""The interface of a scheduler: requests and answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from lumitui.remote.site.gpu_use import GpuUse
from lumitui.remote.site.run_folder import JOB_SCRIPT, attempt_log
from lumitui.remote.site.states import STATES as STATES
from lumitui.remote.site.states import State as State

if TYPE_CHECKING:
    # A poll needs neither these nor pydantic.
    from lumitui.remote.scheduler.cluster_overview import ClusterOverview
    from lumitui.remote.scheduler.job_step import GpuReading, StepCall
    from lumitui.remote.site.meters import GpuReadings

SBATCH = (
    'sbatch --parsable --chdir="$RUN" --job-name="$NAME" --comment="lumitui:$TOKEN" '
    f'--output="$RUN/{attempt_log(1)}" "$RUN/{JOB_SCRIPT}"'
)
"""sbatch with all its arguments, except those in the script's #SBATCH lines."""
MOST_WORDS = 4000
"""Maximum characters of a scheduler's message, or of a list of nodes."""
MOST_LIST = 8 << 20
"""Maximum bytes of a list of jobs. One user's 20,000 jobs take about 5 MB; jobs missing from a
truncated list would seem to have ended, so none of it counts."""


@dataclass(frozen=True)
class Submission:
    """The identity of a run's submission."""

    folder: str
    """The run's folder on the site, absolute."""
    name: str
    """The job's name: the run's id, permanently unique."""
    token: str
    """Random text in the job's comment."""
    script_sha256: str
    """Of `SCRIPTS` as they were composed, one after the other; without it nothing is submitted."""


@dataclass(frozen=True)
class Answer:
    """The outcome of a submission, as far as the evidence shows."""

    state: State
    """QUEUED with a job id; REFUSED or NOT_SENT if certain; or UNKNOWN."""
    job_id: str | None = None
    message: str = ""
    """The scheduler's own message, at most MOST_WORDS characters."""
    hidden_at: float | None = None
    """When the run's folder was missing, in epoch seconds of the site's clock."""


@dataclass(frozen=True)
class Watch:
    """One run to poll, and what is known about it."""

    run: str
    """The run's id, which is its job's name."""
    folder: str
    """The run's folder on the site, in which its job runs."""
    job_id: str
    token: str = ""
    """Random text in its job's comment."""
    metrics_offset: int = 0
    """Number of known bytes of metrics.jsonl."""
    anew: bool = False
    """Whether those bytes belong to another file: the file was rewritten and is read from its
    start."""
    has_binding: bool = False
    attempt: int = 1
    """The last known attempt; the binding of a later attempt is new."""
    exits: int = 0
    """The last attempt with a known exit file."""
    attempts_read: int = 0
    """Number of known bytes of attempts.jsonl."""
    owner: str = ""
    """The jobs' owner, the same for all runs of a poll; "" means the current user."""


@dataclass(frozen=True)
class JobStatus:
    """The scheduler's report on a job. Times are epoch seconds."""

    job_id: str
    state: State
    word: str
    reason: str = ""
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    """For a running job: when its time limit ends it."""
    nodes: str = ""
    exit_code: str = ""
    partition: str = ""
    signs: str = ""
    """The owner's marks of a job: its name and comment, and its folder if known."""


@dataclass(frozen=True)
class ExitFile:
    """job.sh's report after the launch returned; a killed job leaves none."""

    attempt: int
    rc: int
    """Exit code of the first failed rank, else of the launcher."""
    rank: int | None
    ended: float
    job_id: str = ""
    started: float | None = None
    oom: bool = False
    """Whether srun reported that this rank ran out of memory."""


@dataclass(frozen=True)
class Hang:
    """A running training's report on a hung rank."""

    sentence: str
    said: float | None
    """Time of the last report, by the node's clock; it is repeated every few seconds."""


@dataclass(frozen=True)
class NewRunFiles:
    """The new contents of a run's folder."""

    log_sizes: Mapping[int, int] = field(default_factory=dict)
    """Log sizes in bytes, by attempt."""
    exits: tuple[ExitFile, ...] = ()
    binding: str | None = None
    """binding.json, if it is new."""
    hang: Hang | None = None
    gpu_use: GpuUse | None = None
    metrics: bytes = b""
    """Complete new lines of metrics.jsonl."""
    metrics_skipped: int = 0
    """Bytes before them that stay on the site: the rest of a line too long for an answer."""
    metrics_after: bytes | None = None
    """The line before them, if it is short; in the same file, it is the last known line."""
    metrics_anew: bool = False
    """Whether the file is not the one with the known bytes; none of its lines are included."""
    more_metrics: bool = False
    """Whether there are more lines than fit into one answer."""
    attempts: bytes = b""
    """Complete new lines of attempts.jsonl."""
    missing: bool = False
    cancelled: bool = False
    """Whether a cancel left its mark: the run's job must end, and no attempt may begin."""
    claim: str = ""
    """The job with the claim, if it is not the run's known job."""


@dataclass(frozen=True)
class Poll:
    """The answer to one poll of a site, for all watched runs."""

    jobs: Mapping[str, JobStatus]
    """Job by run; without an entry, the site does not list the run's job. Another job with its id
    does not count."""
    files: Mapping[str, NewRunFiles]
    """By run."""
    warning: str = ""
    """Why the scheduler did not answer; if set, nothing is known about the jobs."""
    clock: float | None = None
    """The site's clock, epoch seconds."""
    gone: frozenset[str] = frozenset()
    """Runs whose jobs are not in the queue; their entries in `jobs` come from accounting."""
    silent: str = ""
    """Why accounting did not answer for them; empty if it did, or was not queried."""
    others: tuple[str, ...] = ()
    """Identifiers of the user's other unfinished jobs: one may belong to an abandoned run."""


class Scheduler(Protocol):
    """The scheduler of one site. One contract test suite runs on every implementation."""

    def submit(self, submission: Submission) -> Answer:
        """Create the job once: a second call for the same submission finds the first one's job.

        The submit command's output and status prove nothing. QUEUED means that the claim or the
        queue has the job; REFUSED that the queue has none and the claim is void, so that a job that
        still appears ends immediately.

        Raises:
            LinkLost: the reply was lost; call `settle`, never `submit` again.
        """
        ...

    def settle(
        self, submission: Submission, *, deep: bool, void: bool, grace: float = 0.0
    ) -> Answer:
        """Return the outcome of a submission whose reply was lost; creates nothing.

        If the submit step began at least `grace` seconds ago by the site's clock, `deep` also
        queries accounting, and `void` takes the claim if there is no sign of a job: a job that
        still appears then ends immediately, and the answer is NOT_SENT or REFUSED. If the claim is
        already void, such a job is cancelled.
        """
        ...

    def poll(self, watches: Sequence[Watch]) -> Poll:
        """Poll all `watches` in one request, with at most one query of the queue.

        Queries accounting only for jobs that have left the queue.
        """
        ...

    def overview(self, budget: str) -> "ClusterOverview":
        """Return nodes, queue, reservations and the site's `budget` command, in one request."""
        ...

    def gpus(self, job_id: str, nodes: int, readings: "GpuReadings") -> "tuple[GpuReading, ...]":
        """Return the current GPU use of a running job's nodes, in one step and one request.

        Raises:
            RefusedError: the step could not start, or the GPUs cannot be read.
        """
        ...

    def place_step(self, call: "StepCall") -> str:
        """Return the path of a script on the site that runs a command inside a running job.

        Raises:
            RefusedError: the job is not running, or has no such node.
        """
        ...

    def node_of(self, call: "StepCall") -> str:
        """Return the name of a running job's node, reachable from the login node.

        Raises: as `place_step`.
        """
        ...

    def cancel(self, watches: Sequence[Watch]) -> Mapping[str, str]:
        """Cancel the jobs of `watches`, including later attempts.

        First leaves a mark in each run's folder, which every attempt reads before anything else.
        The same request first checks that each job is the run's, so that another job with its id is
        never touched. A job that has ended is not an error. A run with an unknown job is marked,
        and its job is cancelled if the queue has it.

        Returns:
            The runs whose jobs are not in the queue, each with a sentence.

        Raises:
            OutcomeUnknown: queue and mark do not confirm that nothing more can start.
            RefusedError: the scheduler refused; the job continues.
        """
        ...
