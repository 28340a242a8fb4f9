"""Rules about checkpoints: who writes them, how they are read, and whether there are any."""

from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.program.program_facts import Call, Program
from lumitui.app.knowledge.program.step_program import Run, runs
from lumitui.app.knowledge.rule import Hit, Rule, rule
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
_LONG = 4 * 3600  # seconds: what a person would not like to lose


@rule(
    "saved-by-all-ranks",
    "warning",
    "one file that all ranks write",
    why="The ranks write over each other: the file may be torn, and the file system gets as many "
    "copies as there are ranks.",
    source=_SAVE,
)
def _all_ranks(job: Job, site: Site) -> Iterator[Hit]:
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


@rule(
    "load-without-map",
    "warning",
    "a checkpoint that every rank loads to the GPU that wrote it",
    why="Tensors come back to the GPU they were saved from: all ranks of a node load theirs into "
    "the memory of GPU 0.",
    source="docs.pytorch.org, torch.load: map_location",
)
def _load(job: Job, site: Site) -> Iterator[Hit]:
    if (job.rank.per_node or 1) < 2 or site.node.on_cpu or job.rank.visible_gpus == "one":
        return
    for run in runs(job):
        for program, call in run.calls("torch.load"):
            plain = call.get("map_location", 1) is None and not call.open and run.by_hand
            other = any(
                one.function == call.function and one.get("map_location", 1)
                for one in program.named("torch.load")
            )
            if plain and not other and program.reach(call) not in ("one", "local"):
                yield Hit(
                    f"{program.file} loads a checkpoint without map_location: all "
                    f"{job.rank.per_node} ranks of a node load it into the memory of GPU 0.",
                    'Write torch.load(path, map_location="cpu").',
                    call.at,
                )


def _trains(run: Run) -> bool:
    return run.has("backward") and run.has("step")


@rule(
    "no-checkpoint",
    "warning",
    "a long training that never writes a checkpoint",
    why="A node that fails or a time limit that is reached ends the job, and everything is lost.",
    source="docs.csc.fi, Machine learning: checkpoints; slurm.schedmd.com, --time",
)
def _no_checkpoint(job: Job, site: Site) -> Iterator[Hit]:
    seconds = job.resources.seconds or 0
    if seconds < _LONG:
        return
    for run in runs(job):
        if not run.closed or not _trains(run) or run.lightning or run.trainer:
            continue
        if not run.has(*_SAVES):
            yield Hit(
                f"{run.program.file} writes no checkpoint, and the job may run for "
                f"{seconds / 3600:g} hours: if a node fails, all is lost.",
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
def _at_the_end(job: Job, site: Site) -> Iterator[Hit]:
    seconds = job.resources.seconds or 0
    if seconds < _LONG:
        return
    for run in runs(job):
        if not run.closed or not _trains(run) or run.lightning or run.trainer:
            continue
        found = list(run.calls(*_SAVES))
        if found and not any(_again(program, call) for program, call in found):
            program, call = found[-1]
            yield Hit(
                f"{program.file} writes its only checkpoint after the training, and the job may "
                f"run for {seconds / 3600:g} hours: at the time limit nothing is kept.",
                "Write one at the end of each epoch, too.",
                call.at,
            )


def _again(program: Program, call: Call) -> bool:
    """Return whether a call may run more than once; one in a method is not known."""
    return program.in_loop(call) or (bool(call.function) and program.reach(call) == "unknown")


@rule(
    "signal-unhandled",
    "warning",
    "a signal before the time limit that ends the program",
    why="A process that does not handle SIGUSR1 is ended by it: the job stops before its limit, "
    "without a checkpoint.",
    source="slurm.schedmd.com/sbatch.html, --signal; man 7 signal: SIGUSR1 terminates",
)
def _signal(job: Job, site: Site) -> Iterator[Hit]:
    given = job.options.get("signal")
    text = given.value if given else None
    if given is None or not text or text.upper().startswith(("B:", "RB:", "BR:")):
        return
    name = text.partition(":")[2] if text.upper().startswith("R:") else text
    name = name.partition("@")[0].upper().removeprefix("SIG")
    if name not in ("USR1", "USR2", "10", "12"):
        return
    for run in runs(job):
        handled = run.has("signal.signal", "signal.sigwait", "add_signal_handler", "set_wakeup_fd")
        if handled or run.lightning or not run.closed or run.uses("submitit"):
            continue
        # The Trainer of transformers handles none of them either (trainer.py has no handler).
        yield Hit(
            f"--signal={text} reaches {run.program.file}, which does not handle it: the signal "
            "ends every rank without a checkpoint.",
            f"Handle it with signal.signal(signal.SIG{name}, …), or leave --signal out."
            if not name.isdigit()
            else "Handle it with signal.signal, or leave --signal out.",
            given.at,
        )


@rule(
    "folder-race",
    "warning",
    "a folder that all ranks make at once",
    why="All ranks see that it is not there, one makes it, and the others end with "
    "FileExistsError.",
    source="docs.python.org, os.makedirs: exist_ok",
)
def _folder(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        if run.world < 2 or not run.knows_ranks:
            continue
        for program, call in run.calls("os.makedirs", "os.mkdir"):
            tried = any(guard.text == "try" for guard in call.guards)
            named = any("rank" in one.text or one.mentions for one in call.arguments)
            if (
                program.reach(call) == "all"
                and not call.get("exist_ok", 2)
                and not (tried or named)
            ):
                yield Hit(
                    f"All {run.world} ranks make the same folder in {program.file}: all but one "
                    "end with FileExistsError, where they meet.",
                    "Write os.makedirs(path, exist_ok=True).",
                    call.at,
                )


@rule(
    "checkpoints-off",
    "warning",
    "a framework whose checkpoints are turned off in a long training",
    why="A node that fails or a time limit that is reached ends the job, and everything is lost.",
    source="huggingface.co/docs/transformers, save_strategy; lightning.ai, enable_checkpointing",
)
def _off(job: Job, site: Site) -> Iterator[Hit]:
    seconds = job.resources.seconds or 0
    if seconds < _LONG:
        return
    for run in runs(job):
        for program, call in run.calls("TrainingArguments", "SFTConfig", "Trainer"):
            strategy, enabled = call.get("save_strategy"), call.get("enable_checkpointing")
            option = ""
            if strategy is not None and strategy.value == "no":
                option = 'save_strategy="no"'
            elif run.lightning and enabled is not None and enabled.value is False:
                option = "enable_checkpointing=False"
            if option and not run.has(*_SAVES):
                yield Hit(
                    f"{program.file} says {option}, and the job may run for {seconds / 3600:g} "
                    "hours: if a node fails, all is lost.",
                    "Leave it out, and give a number of steps between checkpoints.",
                    call.at,
                )


RULES: tuple[Rule, ...] = (_all_ranks, _load, _no_checkpoint, _at_the_end, _signal, _folder, _off)
"""Every rule of this subject."""
