"""What an inquiry can find, for `lumitui rules`: the id, how bad it is, why, and who says so."""

from lumitui.app.knowledge.rule_catalogue import Topic
from lumitui.remote.site.finding import Finding, Severity
from lumitui.remote.site.source_position import NOWHERE, Position

_SINGULARITY = "Singularity user guide, bind paths: a source that is missing ends the container"


def _topic(name: str, severity: Severity, title: str, why: str, source: str) -> Topic:
    return Topic(name, severity, title, why, source, "cluster")


TOPICS: tuple[Topic, ...] = (
    _topic(
        "cluster-image", "error", "a container image that is not on the cluster",
        "Every rank ends at once with `FATAL: could not open image`, after the wait in the queue.",
        "Singularity user guide, exec",
    ),
    _topic(
        "cluster-bind", "error", "a bound folder that is not on the cluster",
        "The container does not start when the source of a bind is missing.", _SINGULARITY,
    ),
    _topic(
        "cluster-path", "warning", "a path in the program's arguments that is not there",
        "The program finds no data or no configuration, after the wait in the queue.",
        "open(2), ENOENT",
    ),
    _topic(
        "cluster-output", "error", "an output folder that is missing or closed",
        "Slurm cannot open the job's log, so the job ends in its first second and leaves no word.",
        "sbatch(1), --output: missing folders are not made",
    ),
    _topic(
        "cluster-quota", "warning", "a quota of bytes or files that is almost used up",
        "A write fails with `Disk quota exceeded` in the middle of the training; file quotas are "
        "reached by caches and unpacked archives.",
        "the site's own command for quotas (`quota:` of its profile)",
    ),
    _topic(
        "cluster-disk", "warning", "a file system that is almost full",
        "A write fails with `No space left on device`.", "df(1)",
    ),
    _topic(
        "cluster-account", "error", "an account that Slurm does not know for you",
        "sbatch refuses the job: `Invalid account or account/partition combination`.",
        "sacctmgr(1), show associations",
    ),
    _topic(
        "cluster-partition", "error", "a partition that takes no job, or none of this size",
        "sbatch refuses the job, or it waits for ever with the reason PartitionDown or "
        "PartitionTimeLimit.",
        "scontrol(1), show partition",
    ),
    _topic(
        "cluster-jobs", "error", "as many jobs as the account or QOS allows",
        "sbatch refuses further jobs of yours until one of them ends.",
        "sacctmgr(1), MaxSubmitJobs and MaxJobs",
    ),
    _topic(
        "cluster-budget", "warning", "a budget that the job could use up",
        "Jobs of an account without hours are refused, or wait behind all others.",
        "the site's own command for the budget (`commands: balance:` of its profile)",
    ),
    _topic(
        "cluster-refused", "error", "a script that sbatch refuses",
        "`sbatch --test-only` checks the script as a submit would, and sends nothing.",
        "sbatch(1), --test-only",
    ),
    _topic(
        "cluster-start", "note", "when the job would start",
        "It is Slurm's own estimate of this moment: jobs that end early or come first change it.",
        "sbatch(1), --test-only",
    ),
    _topic(
        "cluster-silent", "note", "a question that the cluster did not answer",
        "What could not be asked may still be wrong, and says nothing against the job.",
        "lumitui's own request",
    ),
)  # fmt: skip
"""The rules of an inquiry, in the order in which a user would look."""
_KNOWN = {topic.id: topic for topic in TOPICS}


def finding(
    name: str, message: str, do: str, at: Position = NOWHERE, severity: Severity | None = None
) -> Finding:
    """Return a finding of the rule `name`, with its own severity unless another is given."""
    topic = _KNOWN[name]
    return Finding(name, severity or topic.severity, message, do, topic.source, at)
