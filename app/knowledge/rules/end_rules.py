"""Rules about how a job ends before its program is done: the stop signal, and preemption."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import rewrite
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.app.knowledge.site_facts.allocation import queue_of
from lumitui.remote.site import walltime
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import NOWHERE

_SIGNAL = re.compile(r"(?:[BR]{1,2}:)?[A-Za-z0-9]+@(?P<lead>\d{1,7})")
_SHORT = 60
"""Seconds: a checkpoint of some GB takes as long on a busy file system, and Slurm may signal up to
60 s early but never late."""


@rule(
    "signal-late",
    "warning",
    "a stop signal too shortly before the time limit",
    why="The program gets the signal, finishes its step, and is killed while it writes its "
    "checkpoint: the file is damaged or missing.",
    source="sbatch(1), --signal: sent up to 60 s earlier than asked, KillWait at the limit",
)
def _late(job: ScriptJob, site: Site) -> Iterator[Hit]:
    option = job.options.get("signal")
    match = _SIGNAL.fullmatch(option.value or "") if option else None
    if option and match and int(match["lead"]) < _SHORT:
        yield Hit(
            f"The signal {option.value} comes {match['lead']} seconds before the time limit, too "
            "late to finish a step and to save a checkpoint.",
            "Write 120 to 300 seconds, more for large checkpoints.",
            option.at,
        )


@rule(
    "signal-at-once",
    "error",
    "a stop signal as soon as the job starts",
    why="Slurm sends the signal that many seconds before the time limit. If the limit is not "
    "longer, it comes at once, and the program stops in its first step.",
    source="sbatch(1), --signal: sent up to 60 s earlier than asked",
)
def _at_once(job: ScriptJob, site: Site) -> Iterator[Hit]:
    option, limit = job.options.get("signal"), job.options.value("time")
    match = _SIGNAL.fullmatch(option.value or "") if option else None
    if option is None or match is None or not limit:
        return
    try:
        seconds = walltime.seconds_of(limit)
    except ValueError:
        return  # another rule says so
    if int(match["lead"]) >= seconds:
        yield Hit(
            f"The signal {option.value} comes {match['lead']} seconds before a limit of "
            f"{seconds} seconds: at once, so that the program stops in its first step.",
            f"Write fewer seconds than the limit has, like {option.value.split('@')[0]}@300."
            if option.value and seconds > 1200
            else "Ask for more time, or write fewer seconds than the limit has.",
            option.at,
        )


@rule(
    "preempt-requeue",
    "warning",
    "a job without --requeue, where jobs are ended for others",
    why="Jobs of this partition are ended when others need their nodes. Without --requeue it "
    "depends on the site whether they come back, and with --no-requeue they never do.",
    source="the site's profile, partitions.*.preempts; sbatch(1) --requeue",
)
def _preempted(job: ScriptJob, site: Site) -> Iterator[Hit]:
    queue = queue_of(job, site)
    if queue is None or not queue.partition.preempts:
        return
    never, where = job.options.get("no-requeue"), job.options.get("partition", "qos")
    # A job file with `resume:` says how its program continues when it comes back.
    resumes = any(word.at.field == "resume" for step in job.training for word in step.arguments)
    if never is None and (job.options.has("requeue") or resumes):
        return
    yield Hit(
        f"Jobs on {queue.name} are ended when others need their nodes"
        + (", and --no-requeue keeps this one from coming back." if never else "."),
        _come_back(job, never=never is not None),
        never.at if never else (where.at if where else NOWHERE),
        rewrite(never, "--requeue") if never else None,
    )


def _come_back(job: ScriptJob, *, never: bool) -> str:
    if job.origin == "script":
        return "Write #SBATCH --requeue, and let the program continue from its last checkpoint."
    if never:
        return "Take --no-requeue out of `sbatch:`."
    return "Name the arguments that make the program continue from its last checkpoint: `resume:`."
