"""Rules about early ends of jobs: preemption, the stop signal and missing checkpoints."""

from collections.abc import Iterator

from lumitui.app.knowledge.program.step_program import runs
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import rewrite
from lumitui.app.knowledge.script_job import Command, ScriptJob
from lumitui.app.knowledge.site_facts.allocation import queue_of
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import NOWHERE

_ENDING = {"EXIT", "ERR", "DEBUG", "RETURN", "TERM", "INT", "KILL"}
"""Signals that do not need `--signal`: bash's own, and those that Slurm sends at a job's end."""


def _plain(signal: str) -> str:
    """Return `USR1` for `SIGUSR1`, `usr1` and `10`."""
    name = signal.upper().removeprefix("SIG")
    return {"10": "USR1", "12": "USR2", "1": "HUP"}.get(name, name)


def _traps(job: ScriptJob, signal: str) -> Iterator[Command]:
    """Yield the traps of the batch script that run a command on a signal."""
    for command in job.commands:
        words = [word.text for word in command.words]
        acts = command.program == "trap" and words[:1] not in ([""], ["-"])
        if acts and command.shell == "batch" and signal in {_plain(word) for word in words[1:]}:
            yield command


def _signal(job: ScriptJob) -> tuple[str, bool]:
    """Return the signal that `--signal` sends, and whether it goes to the batch shell."""
    kinds, _, rest = (job.options.value("signal") or "").rpartition(":")
    return _plain(rest.partition("@")[0]), "B" in kinds.upper()


@rule(
    "trap-behind-launch",
    "warning",
    "a trap that runs only after the launch has ended",
    why="bash waits for the launch before it runs the trap. At the time limit, Slurm ends "
    "both, and nothing is saved.",
    source="bash(1), SIGNALS; sbatch(1) --signal",
)
def _trap_behind_launch(job: ScriptJob, site: Site) -> Iterator[Hit]:
    signal, to_batch = _signal(job)
    if not to_batch or signal in _ENDING or not list(_traps(job, signal)):
        return
    for step in job.training:
        if not step.background and not step.at.file:
            yield Hit(
                f"The trap on {signal} waits until this launch has ended, so it runs too late.",
                "Write `&` after the launch, and `wait $!` below it.",
                step.at,
            )
            return


_SAVES = (
    "torch.save", "save_pretrained", "save_checkpoint", "save_file", "save_state", "save_model",
    "torch.distributed.checkpoint.save", "async_save", "Checkpoint", "ModelCheckpoint",
    "CheckpointManager",
)  # fmt: skip
_LONG = 4 * 3600  # seconds of work worth a checkpoint


@rule(
    "no-checkpoint",
    "warning",
    "a long training job that never writes a checkpoint",
    why="If a node fails or the job reaches its time limit, everything is lost.",
    source="docs.csc.fi, Machine learning: checkpoints; slurm.schedmd.com, --time",
)
def _no_checkpoint(job: ScriptJob, site: Site) -> Iterator[Hit]:
    seconds = job.resources.seconds or 0
    for run in runs(job) if seconds >= _LONG else ():
        own_loop = run.closed and run.has("backward") and run.has("step")
        if own_loop and not run.lightning and not run.trainer and not run.has(*_SAVES):
            yield Hit(
                f"{run.program.file} writes no checkpoint, but the job may run for "
                f"{seconds / 3600:g} hours: if a node fails, everything is lost.",
                "Save one with torch.save at the end of each epoch, and load it at the start.",
                run.step.at,
            )


@rule(
    "preempt-requeue",
    "warning",
    "a job without --requeue in a partition with preemption",
    why="If another job needs the nodes, Slurm ends this one; without --requeue, it might "
    "not restart.",
    source="the site's profile, partitions.*.preempts; sbatch(1) --requeue",
)
def _preempted(job: ScriptJob, site: Site) -> Iterator[Hit]:
    queue = queue_of(job, site)
    if queue is None or not queue.partition.preempts:
        return
    never, where = job.options.get("no-requeue"), job.options.get("partition", "qos")
    # A job file with `resume:` defines how its program continues after a restart.
    resumes = any(word.at.field == "resume" for step in job.training for word in step.arguments)
    if never is None and (job.options.has("requeue") or resumes):
        return
    yield Hit(
        f"Slurm ends jobs on {queue.name} when others need their nodes"
        + (", and --no-requeue prevents a restart." if never else "."),
        _come_back(job, never=never is not None),
        never.at if never else (where.at if where else NOWHERE),
        rewrite(never, "--requeue") if never else None,
    )


def _come_back(job: ScriptJob, *, never: bool) -> str:
    if job.origin == "script":
        return "Write #SBATCH --requeue, and make the program resume from its last checkpoint."
    if never:
        return "Remove --no-requeue from `sbatch:`."
    return "Set `resume:` to the arguments that make the program resume from its last checkpoint."
