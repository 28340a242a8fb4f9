"""Rules about DeepSpeed's configuration as such: its text, its batch, who reads it."""

from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.program.deepspeed_config import MICRO, TRAIN
from lumitui.app.knowledge.program.step_program import Run, configurations, runs
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site

_CONFIG = "github.com/deepspeedai/DeepSpeed, deepspeed/runtime/config.py"
_RANKS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def _fills_auto(run: Run) -> bool:
    """Return whether a library puts its own values in the place of `auto`."""
    return run.trainer or run.uses("transformers", "accelerate", "trl") or run.lightning


@rule(
    "deepspeed-config",
    "error",
    "a DeepSpeed configuration that cannot be read",
    why="DeepSpeed ends on every rank, after the job has waited and loaded its model.",
    source=_CONFIG,
)
def _unreadable(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        for config in run.configs:
            if config.fault:
                yield Hit(
                    f"DeepSpeed cannot read {config.file}: {config.fault.message}.",
                    f"Correct line {config.fault.at.line} of {config.file}.",
                    config.fault.at,
                )


@rule(
    "deepspeed-json",
    "note",
    "a DeepSpeed configuration that is not strict JSON",
    why="DeepSpeed itself reads HJSON, with commas at the end and comments; transformers and "
    "accelerate read JSON alone, and end.",
    source=f"{_CONFIG} (hjson.load); accelerate, utils/deepspeed.py (json.load)",
)
def _strict(job: Job, site: Site) -> Iterator[Hit]:
    for run, config in configurations(job):
        if config.strict:
            continue
        if _fills_auto(run):
            yield Hit(
                f"{config.file} is not strict JSON (a comma too many, a comment), and transformers "
                "and accelerate cannot read it.",
                f"Correct it; `python -m json.tool {config.file}` shows the place.",
                config.first,
                severity="error",
            )
        else:
            yield Hit(
                f"{config.file} is not strict JSON (a comma too many, a comment). DeepSpeed reads "
                "it, other programs do not.",
                f"Correct it where others read it; `python -m json.tool {config.file}` shows the "
                "place.",
                config.first,
            )


@rule(
    "deepspeed-batch",
    "error",
    "batch sizes that do not fit the number of ranks",
    why="DeepSpeed ends unless train_batch_size is micro batch x accumulation x ranks.",
    source=f"{_CONFIG}, _batch_assertion",
)
def _batch(job: Job, site: Site) -> Iterator[Hit]:
    for run, config in configurations(job):
        train, micro, steps = config.train, config.micro, config.accumulation
        if not run.world or not isinstance(train, int) or "auto" in (micro, steps):
            continue
        if any(type(value) is int and value < 1 for value in (train, micro, steps)):
            yield Hit(
                f"{config.file} has a batch size or an accumulation below 1: DeepSpeed ends.",
                "Write whole numbers from 1.",
                config.at(TRAIN),
            )
            continue
        share = train // run.world
        if isinstance(micro, int) and isinstance(steps, int):
            if micro * steps * run.world != train:
                yield Hit(
                    f"{TRAIN} is {train} in {config.file}, but {micro} per GPU x {steps} steps x "
                    f"{run.world} ranks are {micro * steps * run.world}: DeepSpeed ends.",
                    f"Write {TRAIN}: {micro * steps * run.world}, or leave it out.",
                    config.at(TRAIN),
                )
            continue
        part = micro if isinstance(micro, int) else steps if isinstance(steps, int) else 1
        if share < 1:
            yield Hit(
                f"{TRAIN} is {train} in {config.file}, less than the {run.world} ranks of this "
                "job: each would get no sample.",
                f"Write {TRAIN}: {run.world}, or a multiple of it, or take fewer nodes.",
                config.at(TRAIN),
            )
        elif part < 1 or train % (run.world * part):
            each = f" x {part}" if part != 1 else ""
            yield Hit(
                f"{TRAIN} is {train} in {config.file}, which {run.world} ranks{each} do not divide "
                "evenly: DeepSpeed ends.",
                f"Write a multiple of {run.world * max(1, part)}, like "
                f"{max(1, round(train / (run.world * max(1, part)))) * run.world * max(1, part)}.",
                config.at(TRAIN),
            )


@rule(
    "deepspeed-no-batch",
    "error",
    "a DeepSpeed configuration without a batch size",
    why="DeepSpeed ends with `Either train_batch_size or train_micro_batch_size_per_gpu needs to "
    "be provided`.",
    source=f"{_CONFIG}, _set_batch_related_parameters",
)
def _no_batch(job: Job, site: Site) -> Iterator[Hit]:
    for run, config in configurations(job):
        if config.train is None and config.micro is None and not _fills_auto(run) and run.closed:
            yield Hit(
                f"{config.file} has neither {TRAIN} nor {MICRO}: DeepSpeed ends.",
                f"Give {MICRO}, which stays right on any number of nodes.",
                config.first,
            )


@rule(
    "deepspeed-auto",
    "error",
    "`auto` in a configuration that only DeepSpeed reads",
    why="transformers and accelerate put their own values in the place of `auto`. DeepSpeed itself "
    "takes it for a value and ends.",
    source="huggingface.co/docs/transformers/deepspeed; github.com/deepspeedai/DeepSpeed/issues",
)
def _auto(job: Job, site: Site) -> Iterator[Hit]:
    for run, config in configurations(job):
        if config.autos and run.closed and not _fills_auto(run):
            first = config.autos[0]
            yield Hit(
                f'{config.file} says "auto" for {first}'
                f"{f' and {len(config.autos) - 1} more' if len(config.autos) > 1 else ''}, and "
                "nothing in this job puts a value there: DeepSpeed ends.",
                f"Write a number for {first}.",
                config.at(*first.split(".")),
            )


@rule(
    "deepspeed-config-missing",
    "error",
    "a program that waits for a DeepSpeed configuration and gets none",
    why="deepspeed.initialize ends with `DeepSpeed requires --deepspeed_config to specify "
    "configuration file`.",
    source="github.com/deepspeedai/DeepSpeed, deepspeed/__init__.py",
)
def _missing(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        if not run.has("deepspeed.add_config_arguments") or run.given("deepspeed_config"):
            continue
        for program, call in run.calls("deepspeed.initialize"):
            named = call.get("config") or call.get("config_params") or call.open
            if not named:
                yield Hit(
                    f"{program.file} takes its DeepSpeed configuration from --deepspeed_config, "
                    "and the job does not give it.",
                    "Add --deepspeed --deepspeed_config ds_config.json after the program.",
                    run.step.at,
                )


@rule(
    "loader-batch",
    "warning",
    "a loader whose batch is not DeepSpeed's",
    why="DeepSpeed counts steps and the learning rate's schedule by its own micro batch. A loader "
    "with another one trains on another global batch than the configuration says.",
    source=f"{_CONFIG}; LUMI-AI-Guide, ds_visiontransformer.py",
)
def _loader(job: Job, site: Site) -> Iterator[Hit]:
    for run, config in configurations(job):
        steps = config.accumulation if isinstance(config.accumulation, int) else 1
        micro = config.micro
        if steps < 1:
            continue
        if micro is None and isinstance(config.train, int) and run.world:
            micro = config.train // (run.world * steps)
        if not isinstance(micro, int) or micro < 1 or run.trainer:
            continue
        for program, call in run.calls("torch.utils.data.DataLoader"):
            given = run.number(call.get("batch_size", 1))
            tests = any(word in call.target.lower() for word in ("val", "test", "eval"))
            if given is not None and given != micro and not tests:
                yield Hit(
                    f"{program.file} reads {given} samples a step and rank, and {config.file} "
                    f"means {micro}: the global batch is {given * run.world * steps or given}, not "
                    "what it says.",
                    f"Read {micro} at a time, or set {MICRO} to {given}.",
                    call.at,
                )


@rule(
    "deepspeed-mpi",
    "warning",
    "DeepSpeed that asks MPI for its ranks",
    why="Where one of RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT is missing, "
    "DeepSpeed imports mpi4py, overwrites all five, and takes the node's first address, which may "
    "be one that other nodes do not reach.",
    source="github.com/deepspeedai/DeepSpeed, deepspeed/comm/comm.py, mpi_discovery",
)
def _mpi(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        alone = run.step.launcher != "plain" or run.step.srun is None or run.world < 2
        if alone or not run.has("deepspeed.init_distributed", "deepspeed.initialize"):
            continue
        set_there = {one.target for program in run.files for one in program.settings}
        missing = [
            name
            for name in _RANKS
            if job.variable(name) is None and f"environ[{name}]" not in set_there
        ]
        if missing and run.closed and not run.trainer and not run.lightning:
            yield Hit(
                f"srun starts {run.program.file} without {', '.join(missing)}: DeepSpeed asks MPI "
                "for them, which needs mpi4py.",
                "Export MASTER_ADDR, MASTER_PORT and WORLD_SIZE in the script, and RANK and "
                "LOCAL_RANK in each task.",
                run.step.at,
            )


RULES: tuple[Rule, ...] = (
    _unreadable,
    _strict,
    _batch,
    _no_batch,
    _auto,
    _missing,
    _loader,
    _mpi,
)
"""Every rule of this subject."""
