"""Rules about checkpoints: who writes them, how they are read, and whether there are any."""

from collections.abc import Iterator

from lumitui.app.knowledge.program.program_facts import Call, PythonFile
from lumitui.app.knowledge.program.step_program import StepProgram, runs
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.profile import Site

_SAVE = "docs.pytorch.org/tutorials/intermediate/ddp_tutorial, Save and Load Checkpoints"
_SAVES = (
    "torch.save",
    "save_pretrained",
    "save_checkpoint",
    "save_file",
    "save_state",
    "save_model",
    "torch.distributed.checkpoint.save",
    "async_save",
    "Checkpoint",
    "ModelCheckpoint",
    "CheckpointManager",
)
_LONG = 4 * 3600  # seconds: what a user would not like to lose


@rule(
    "saved-by-all-ranks",
    "warning",
    "one file that all ranks write",
    why="The ranks write over each other: the file may be torn, and the file system gets as many "
    "copies as there are ranks.",
    source=_SAVE,
)
def _all_ranks(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        if run.world < 2 or run.lightning or run.uses("accelerate") or not run.knows_ranks:
            continue
        for program, call in run.calls(
            "torch.save", "save_pretrained", "safetensors.torch.save_file"
        ):
            who = program.reach(call)
            own = {"rank", "local"} & {role for one in call.arguments for role in one.mentions}
            if call.last == "save_pretrained" and (run.trainer or call.get("is_main_process")):
                continue
            if who == "all" and not own and "rank" not in str(call.arguments):
                yield Hit(
                    f"All {run.world} ranks write the same file in {program.file}: they write over "
                    "each other.",
                    "Write it under `if rank == 0:`, with a barrier behind it.",
                    call.at,
                )
            elif who == "local" and job.nodes > 1 and not own:
                yield Hit(
                    f"The first rank of each of the {job.nodes} nodes writes the same file in "
                    f"{program.file}: they write over each other.",
                    "Ask for the rank in the whole job: `if rank == 0:`.",
                    call.at,
                )


def _long_trainings(job: ScriptJob) -> Iterator[tuple[StepProgram, str]]:
    """Yield the loops of a job's own that may run long, with how many hours they may."""
    seconds = job.resources.seconds or 0
    for run in runs(job) if seconds >= _LONG else ():
        trains = run.has("backward") and run.has("step")
        if run.closed and trains and not run.lightning and not run.trainer:
            yield run, f"{seconds / 3600:g}"


@rule(
    "no-checkpoint",
    "warning",
    "a long training that never writes a checkpoint",
    why="A node that fails or a time limit that is reached ends the job, and everything is lost.",
    source="docs.csc.fi, Machine learning: checkpoints; slurm.schedmd.com, --time",
)
def _no_checkpoint(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run, hours in _long_trainings(job):
        if not run.has(*_SAVES):
            yield Hit(
                f"{run.program.file} writes no checkpoint, and the job may run for "
                f"{hours} hours: if a node fails, all is lost.",
                "Write one with torch.save at the end of each epoch, and load it at the start.",
                run.step.at,
            )


@rule(
    "checkpoint-at-the-end",
    "warning",
    "a long training that writes its only checkpoint at the end",
    why="A job that reaches its time limit never comes to the end: it leaves nothing.",
    source="docs.csc.fi, Machine learning: checkpoints; slurm.schedmd.com, --time",
)
def _at_the_end(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run, hours in _long_trainings(job):
        found = list(run.calls(*_SAVES))
        if found and not any(_again(program, call) for program, call in found):
            program, call = found[-1]
            yield Hit(
                f"{program.file} writes its only checkpoint after the training, and the job may "
                f"run for {hours} hours: at the time limit nothing is kept.",
                "Also write one at the end of each epoch.",
                call.at,
            )


def _again(program: PythonFile, call: Call) -> bool:
    """Return whether a call may run more than once; one in a method is not known."""
    return program.in_loop(call) or (bool(call.function) and program.reach(call) == "unknown")
