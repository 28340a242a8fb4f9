"""Rules about how a program shares its data among ranks, and feeds them."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.program.program_facts import Call, Program
from lumitui.app.knowledge.program.step_program import Run, runs
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site

_DATA = "docs.pytorch.org/docs/stable/data"
_LOADER = "torch.utils.data.DataLoader"
_TRAINS = re.compile(r"train", re.IGNORECASE)


def _loaders(run: Run) -> Iterator[tuple[Program, Call]]:
    """Yield the loaders whose arguments are all in the text."""
    return ((program, call) for program, call in run.calls(_LOADER) if not call.open)


def _is_for_training(call: Call) -> bool:
    shuffle, first = call.get("shuffle"), call.get("dataset", 0)
    words = call.target + (first.text if first else "")
    return bool(_TRAINS.search(words)) or (shuffle is not None and shuffle.value is True)


def _workers(run: Run, call: Call) -> int | None:
    """Return a loader's workers; 0 where it names none, None where they are not known."""
    argument = call.get("num_workers", 5)
    return 0 if argument is None else run.number(argument)


@rule(
    "no-sampler",
    "warning",
    "a loader that gives every rank the same data",
    why="DDP shares gradients, not data: without a DistributedSampler each rank reads the whole "
    "data set, and an epoch on 8 ranks computes everything 8 times.",
    source=f"{_DATA}, DistributedSampler",
)
def _no_sampler(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        if run.world < 2 or not run.by_hand or run.uses("deepspeed", "webdataset"):
            continue
        if run.has("split_dataset_by_node", "DistributedSampler", "shard", "Subset"):
            continue  # it shares the data in a way of its own, maybe before the loader
        for program, call in _loaders(run):
            given = call.get("sampler", 3) or call.get("batch_sampler", 4)
            if not given and _is_for_training(call) and not _distributed_else(call):
                yield Hit(
                    f"{program.file} reads the training data without a DistributedSampler: each of "
                    f"{run.world} ranks trains on all of it.",
                    "Give the loader sampler=DistributedSampler(dataset), without shuffle=True.",
                    call.at,
                )


def _distributed_else(call: Call) -> bool:
    """Return whether the loader may be that of a run on one GPU."""
    return any(guard.kind == "other" for guard in call.guards)


@rule(
    "sampler-and-shuffle",
    "error",
    "a loader with both a sampler and shuffle=True",
    why="PyTorch raises `sampler option is mutually exclusive with shuffle`.",
    source=f"{_DATA}, torch.utils.data.DataLoader",
)
def _both(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        for program, call in run.calls(_LOADER):
            sampler = call.get("sampler", 3)
            always = sampler is not None and not sampler.constant and " else " not in sampler.text
            if always and call.is_true("shuffle") and not _may_be_none(program, call):
                yield Hit(
                    f"{program.file} gives a loader both a sampler and shuffle=True, which PyTorch "
                    "refuses.",
                    "Remove shuffle=True: DistributedSampler shuffles by itself.",
                    call.at,
                )


def _may_be_none(program: Program, call: Call) -> bool:
    """Return whether the name that holds the sampler is None on some way."""
    sampler = call.get("sampler", 3)
    name = sampler.text if sampler else ""
    return any(
        one.target == name and (one.value.constant or "None" in one.value.text)
        for one in program.settings
    )


@rule(
    "no-set-epoch",
    "warning",
    "a DistributedSampler that is never told the epoch",
    why="Without set_epoch(epoch) it shuffles alike in every epoch: the model sees the same order "
    "again and again.",
    source=f"{_DATA}, DistributedSampler.set_epoch",
)
def _no_set_epoch(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        framework = run.lightning or run.trainer or run.uses("accelerate")
        if run.has("set_epoch") or framework or run.world < 2:
            continue
        for program, call in run.calls("DistributedSampler"):
            shuffle = call.get("shuffle")
            fixed = shuffle is not None and shuffle.value is False
            words = " ".join(one.text for one in call.arguments[:1]) + call.target
            tests = re.search(r"val|test|eval", words, re.IGNORECASE)
            if not fixed and not tests and not call.open and _has_epochs(program):
                yield Hit(
                    f"{program.file} never calls set_epoch on its sampler: every epoch has the "
                    "same order.",
                    "Call sampler.set_epoch(epoch) at the beginning of each epoch.",
                    call.at,
                )


def _has_epochs(program: Program) -> bool:
    return any("epoch" in loop.lower() for call in program.calls for loop in call.loops)


@rule(
    "workers-above-cores",
    "warning",
    "more workers of a loader than a rank has cores",
    why="Workers and the rank share its cores: beyond their number they wait for each other, and "
    "PyTorch warns about it.",
    source="LUMI-AI-Guide 05: num_workers=7 with 7 cores per GCD; torch.utils.data warning",
)
def _above(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        cores = run.cores
        if cores is None:
            continue
        for program, call in run.calls(_LOADER):
            argument = call.get("num_workers", 5)
            workers = _workers(run, call)
            by_command = argument is not None and not argument.constant and _on_command_line(run)
            if workers is not None and workers > cores and not by_command:
                yield Hit(
                    f"{program.file} starts {workers} workers for its loader in each rank, which "
                    f"has {cores} core{'s' * (cores != 1)}.",
                    f"Write num_workers={max(1, cores - 1) if cores > 1 else 0}, or fewer.",
                    call.at,
                )
                break


def _on_command_line(run: Run) -> bool:
    """Return whether the job's own arguments say it: the script's rules speak of those."""
    return run.given("num_workers", "workers", "j") is not None


@rule(
    "no-workers",
    "note",
    "a loader without workers",
    why="Without workers the rank reads and prepares its data itself, while its GPU waits: 15.8 s "
    "an epoch with one worker were 5.4 s with four.",
    source="BioGeek, mn5-examples README (MNIST on one H100, 2026)",
)
def _no_workers(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        if site.node.on_cpu or (run.cores or 1) < 3:
            continue
        for program, call in _loaders(run):
            if _workers(run, call) == 0 and _is_for_training(call) and run.by_hand:
                yield Hit(
                    f"{program.file} reads the training data without workers: the GPU waits for "
                    "each batch.",
                    f"Give the loader num_workers={min(8, (run.cores or 2) - 1)}.",
                    call.at,
                )


@rule(
    "workers-missing",
    "error",
    "an option of a loader that needs workers, without any",
    why="PyTorch raises a ValueError: `persistent_workers option needs num_workers > 0`, and the "
    "like for prefetch_factor.",
    source=f"{_DATA}, torch.utils.data.DataLoader",
)
def _missing(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        for program, call in _loaders(run):
            factor = call.get("prefetch_factor")
            option = "persistent_workers" if call.is_true("persistent_workers") else ""
            if factor is not None and factor.number:
                option = option or "prefetch_factor"
            if option and _workers(run, call) == 0:
                yield Hit(
                    f"{program.file} gives a loader {option} but no workers, and PyTorch "
                    "refuses it.",
                    f"Also give it num_workers, or remove {option}.",
                    call.at,
                )


@rule(
    "workers-restart",
    "note",
    "workers that are started anew in every epoch",
    why="Without persistent_workers=True each epoch starts its workers again, which takes seconds "
    "where the data set is large.",
    source=f"{_DATA}, persistent_workers",
)
def _restart(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        for program, call in _loaders(run):
            workers = _workers(run, call) or 0
            once = call.get("persistent_workers") is None and not call.loops
            if _may_be_stream(run, program, call):
                continue  # workers that stay have a copy of the data set, with its first epoch
            if workers and once and _is_for_training(call) and _has_epochs(program):
                yield Hit(
                    f"{program.file} starts {workers} workers anew in every epoch.",
                    "Give the loader persistent_workers=True.",
                    call.at,
                )


def _may_be_stream(run: Run, program: Program, call: Call) -> bool:
    """Return whether the loader's data set may be an iterable one, which knows its epoch itself."""
    if run.uses("webdataset") or any(
        one.is_true("streaming") for _program, one in run.calls("load_dataset")
    ):
        return True
    classes = {name: bases for one in run.files for name, bases in one.classes.items()}
    if not any(_is_stream(name, classes) for name in classes):
        return False
    given = call.get("dataset", 0)
    name = given.text if given else ""
    values = [one.value.text for one in program.settings if one.target == name] or [name]
    made = [value.partition("(")[0].rpartition(".")[2] for value in values]
    return any(one not in classes or _is_stream(one, classes) for one in made)


def _is_stream(name: str, classes: dict[str, tuple[str, ...]]) -> bool:
    """Return whether a class is derived from IterableDataset, through others of the program too."""
    todo, seen = [name], set[str]()
    while todo:
        last = todo.pop().rpartition(".")[2]
        if "IterableDataset" in last:
            return True
        if last not in seen:
            todo += classes.get(last, ())
        seen.add(last)
    return False


@rule(
    "pinned-memory-missing",
    "note",
    "copies that cannot run beside the computation",
    why="`non_blocking=True` has an effect only where the batch lies in pinned memory.",
    source=f"{_DATA}, Memory Pinning",
)
def _pinned(job: Job, site: Site) -> Iterator[Hit]:
    if site.node.on_cpu:
        return
    for run in runs(job):
        if not any(call.is_true("non_blocking") for _program, call in run.calls("to", "cuda")):
            continue
        for program, call in _loaders(run):
            if call.get("pin_memory", 7) is None and _is_for_training(call) and run.by_hand:
                yield Hit(
                    f"{program.file} copies batches with non_blocking=True, and its loader pins no "
                    "memory: the copies block all the same.",
                    "Give the loader pin_memory=True.",
                    call.at,
                )


RULES: tuple[Rule, ...] = (
    _no_sampler,
    _both,
    _no_set_epoch,
    _above,
    _no_workers,
    _missing,
    _restart,
    _pinned,
)
"""Every rule of this subject."""
