"""The rules of an inquiry, for `lumitui rules`: id, severity, reason and source."""

from lumitui.app.knowledge.rule import Topic
from lumitui.remote.site.finding import Finding, Severity
from lumitui.remote.site.source_position import NOWHERE, Position

_SINGULARITY = "Singularity user guide, bind paths: a missing source ends the container"


def _topic(name: str, severity: Severity, title: str, why: str, source: str) -> Topic:
    return Topic(name, severity, title, why, source, "cluster")


TOPICS: tuple[Topic, ...] = (
    _topic(
        "cluster-image", "error", "a container image that does not exist on the cluster",
        "After the wait in the queue, every rank fails with `FATAL: could not open image`.",
        "Singularity user guide, exec",
    ),
    _topic(
        "cluster-bind", "error", "a bound folder that does not exist on the cluster",
        "The container does not start if the source of a bind is missing.", _SINGULARITY,
    ),
    _topic(
        "cluster-path", "warning", "a path in the program's arguments that does not exist",
        "After the wait in the queue, the program does not find its data or configuration.",
        "open(2), ENOENT",
    ),
    _topic(
        "cluster-environment", "warning", "an environment that the cluster cannot provide",
        "After the wait in the queue, the job ends at `module load`, or pip finds no package for "
        "its Python.",
        "bash -l on the login node, where the job's modules were loaded",
    ),
    _topic(
        "cluster-output", "error", "an output folder that is missing or not writable",
        "Slurm cannot open the log, so the job ends in its first second without a message.",
        "sbatch(1), --output: Slurm does not create missing folders",
    ),
    _topic(
        "cluster-quota", "warning", "a quota of bytes or files that is almost used up",
        "A write fails with `Disk quota exceeded` in the middle of training.",
        "the site's own command for quotas (`quota:` of its profile)",
    ),
    _topic(
        "cluster-disk", "warning", "a file system that is almost full",
        "A write fails with `No space left on device`.", "df(1)",
    ),
    _topic(
        "cluster-account", "error", "an account that Slurm does not list for you",
        "sbatch refuses the job: `Invalid account or account/partition combination`.",
        "sacctmgr(1), show associations",
    ),
    _topic(
        "cluster-partition", "error", "a partition that accepts no jobs, or none of this size",
        "sbatch refuses the job, or it waits forever with the reason PartitionDown or "
        "PartitionTimeLimit.",
        "scontrol(1), show partition",
    ),
    _topic(
        "cluster-jobs", "error", "as many jobs as the account or QOS allows",
        "sbatch refuses more of your jobs until one ends.",
        "sacctmgr(1), MaxSubmitJobs and MaxJobs",
    ),
    _topic(
        "cluster-budget", "warning", "a budget that the job could use up",
        "Slurm refuses jobs from an account with no hours left, or starts them after all others.",
        "the site's own command for the budget (`commands: balance:` of its profile)",
    ),
    _topic(
        "cluster-refused", "error", "a script that sbatch refuses",
        "`sbatch --test-only` checks it like a submission, but submits nothing.",
        "sbatch(1), --test-only",
    ),
    _topic(
        "cluster-start", "note", "when the job would start",
        "This is Slurm's current estimate, which other jobs may change.",
        "sbatch(1), --test-only",
    ),
    _topic(
        "cluster-silent", "note", "a query that the cluster did not answer",
        "lumitui could not check this part of the job.",
        "lumitui's own request",
    ),
)  # fmt: skip
_KNOWN = {topic.id: topic for topic in TOPICS}


def finding(
    name: str, message: str, do: str, at: Position = NOWHERE, severity: Severity | None = None
) -> Finding:
    """Return a finding of the rule `name`, by default with the rule's severity."""
    topic = _KNOWN[name]
    return Finding(name, severity or topic.severity, message, do, topic.source, at)
