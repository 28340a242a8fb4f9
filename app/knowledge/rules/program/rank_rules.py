"""Rules about how a program learns which rank it is."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.program.step_program import Run, runs
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site

_LAUNCHERS = ("torchrun", "deepspeed", "accelerate")


@rule(
    "ranks-unused",
    "warning",
    "several ranks of a program that never asks for its rank",
    why="Each rank does the whole work, on all data, and writes the same files: the GPUs are "
    "paid for, and nothing is faster.",
    source="docs.csc.fi, Multi-GPU and multi-node machine learning",
)
def _unused(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        told = any(
            re.search(r"RANK|PROCID|LOCALID|NODEID", word.text) for word in run.step.arguments
        )
        if run.world > 1 and not run.knows_ranks and not told and not run.program.fault:
            yield Hit(
                f"The job starts {run.world} ranks of {run.program.file}, which never asks for its "
                "rank: each does the whole work.",
                "Start it once, on one GPU, or share the work with DistributedDataParallel.",
                run.step.at,
            )


@rule(
    "slurm-ranks-of-agent",
    "error",
    "ranks from Slurm under torchrun",
    why="torchrun starts several ranks in one task of Slurm: SLURM_PROCID and SLURM_LOCALID are "
    "the task's, the same in all of them.",
    source="docs.pytorch.org/docs/stable/elastic/run, Environment Variables",
)
def _of_agent(job: Job, site: Site) -> Iterator[Hit]:
    tasks = job.resources.tasks_per_node
    if tasks is None or (job.rank.per_node or 0) <= tasks:
        return
    for run in runs(job):
        if run.step.launcher not in ("torchrun", "accelerate", "deepspeed"):
            continue
        own = {name for one in run.files for name in one.reads}
        also = {name for one in run.files for name in one.reads | one.asks}
        read = sorted(own & {"SLURM_PROCID", "SLURM_LOCALID"})
        if read and not also & {"RANK", "LOCAL_RANK"}:
            yield Hit(
                f"{run.program.file} takes its rank from {read[0]}, and {run.step.launcher} starts "
                f"{job.rank.per_node} ranks on each node in {tasks} "
                f"task{'s' * (tasks != 1)}: they all get the same.",
                f"Read {'RANK' if read[0].endswith('PROCID') else 'LOCAL_RANK'} instead.",
                run.step.at,
            )


@rule(
    "rank-variable-missing",
    "error",
    "a rank that the program reads from its environment, where nothing sets it",
    why="srun sets Slurm's variables alone. RANK, LOCAL_RANK and WORLD_SIZE are torchrun's, and "
    "the program ends with a KeyError.",
    source="LUMI-AI-Guide 05: export RANK=$SLURM_PROCID in each task",
)
def _absent(job: Job, site: Site) -> Iterator[Hit]:
    slurm = {"RANK": "SLURM_PROCID", "LOCAL_RANK": "SLURM_LOCALID", "WORLD_SIZE": "SLURM_NTASKS"}
    for run in runs(job):
        if run.step.launcher != "plain" or run.step.srun is None or run.world < 2:
            continue
        if run.step.srun.has("export") or run.has("deepspeed.init_distributed"):
            continue
        made = {one.target for program in run.files for one in program.settings}
        for name, source in slurm.items():
            read = any(name in one.reads for one in run.files)
            if read and job.variable(name) is None and f"environ[{name}]" not in made:
                yield Hit(
                    f"{run.program.file} reads {name}, which srun does not set: every rank ends "
                    "with a KeyError.",
                    f"Write `srun bash -c 'export {name}=${source}; exec python …'`, or read "
                    f"{source}.",
                    run.step.at,
                )
                break


@rule(
    "local-rank-as-rank",
    "error",
    "the local rank as the global rank, on several nodes",
    why="Each node has a local rank 0: two ranks say that they are rank 0, and the group hangs.",
    source="docs.pytorch.org/docs/stable/distributed, init_process_group",
)
def _local(job: Job, site: Site) -> Iterator[Hit]:
    if job.nodes < 2:
        return
    for run in runs(job):
        for program, call in run.calls("init_process_group"):
            rank = call.get("rank")
            if rank is not None and rank.role == "local":
                yield Hit(
                    f"{program.file} gives its local rank as the rank in the job, {rank.text}: on "
                    f"{job.nodes} nodes each rank exists {job.nodes} times.",
                    'Give it int(os.environ["RANK"]), or leave rank= out.',
                    call.at,
                )


@rule(
    "local-rank-argument",
    "error",
    "a local rank from an argument that no launcher gives",
    why="torchrun sets the variable LOCAL_RANK and gives no argument: `--local_rank` keeps its "
    "default, and all ranks of a node take the same GPU.",
    source="docs.pytorch.org/docs/stable/elastic/run, Transitioning from torch.distributed.launch",
)
def _argument(job: Job, site: Site) -> Iterator[Hit]:
    if (job.rank.per_node or 1) < 2:
        return
    for run in runs(job):
        if run.step.launcher != "torchrun" or _by_launch(run) or run.trainer or run.lightning:
            continue
        read = any("LOCAL_RANK" in one.reads | one.asks for one in run.files)
        used = run.uses("deepspeed") or run.given("local_rank") or not run.closed
        for program in run.files:
            for option in program.options:
                if option.name == "local_rank" and _is_used(run) and not (read or used):
                    follows = (
                        "argparse ends each rank with exit code 2, as it is required"
                        if option.required
                        else f"all {job.rank.per_node} ranks of a node get the default"
                    )
                    yield Hit(
                        f"{program.file} takes its local rank from {option.flags[0]}, and torchrun "
                        f"gives no such argument: {follows}.",
                        'Remove the argument, and read int(os.environ["LOCAL_RANK"]).'
                        if option.required
                        else 'Read int(os.environ["LOCAL_RANK"]).',
                        option.at,
                    )


def _is_used(run: Run) -> bool:
    """Return whether the argument decides anything."""
    return any("local_rank" in one.text for program in run.files for call in program.calls
               for one in call.arguments if not call.name.endswith("add_argument"))  # fmt: skip


def _by_launch(run: Run) -> bool:
    """Return whether torch.distributed.launch starts it, which gives the argument."""
    return "torch.distributed.launch" in run.job.text and not run.step.launcher_options.has(
        "use-env"
    )


@rule(
    "local-rank-spelling",
    "error",
    "an argument that torch.distributed.launch spells otherwise",
    why="Since PyTorch 2.0 torch.distributed.launch gives `--local-rank` with a dash; a program "
    "that knows only `--local_rank` ends with `unrecognized arguments`.",
    source="docs.pytorch.org/docs/stable/distributed, Launch utility",
)
def _spelling(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        if run.step.launcher != "torchrun" or not _by_launch(run) or run.has("parse_known_args"):
            continue
        for program in run.files:
            for option in program.options:
                if "--local_rank" in option.flags and "--local-rank" not in option.flags:
                    yield Hit(
                        f"torch.distributed.launch gives --local-rank, and {program.file} knows "
                        "only --local_rank: every rank ends with `unrecognized arguments`.",
                        "Start it with torchrun, and read LOCAL_RANK from the environment.",
                        option.at,
                    )


_RANK_NAMES = ("SLURM_PROCID", "RANK")
_INSTEAD = {
    "RANK": _RANK_NAMES,
    "SIZE": ("SLURM_NTASKS", "WORLD_SIZE"),
    "LOCAL_RANK": ("SLURM_LOCALID", "LOCAL_RANK"),
    "NODE_RANK": ("SLURM_LOCALID", "LOCAL_RANK"),
    "LOCAL_SIZE": ("SLURM_NTASKS_PER_NODE", "LOCAL_WORLD_SIZE"),
}
"""What srun's tasks read, and torchrun's, in place of Open MPI's variables."""


@rule(
    "openmpi-variables",
    "error",
    "ranks that Open MPI's mpirun would set, in a job without mpirun",
    why="srun and torchrun do not set OMPI_COMM_WORLD_RANK and its like: the program ends with a "
    "KeyError.",
    source="docs.open-mpi.org, environment variables of mpirun; IT4I, Multi-GPU course 2023",
)
def _openmpi(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        if run.step.launcher == "mpirun" or (
            run.step.srun is None and run.step.launcher == "plain"
        ):
            continue
        names = sorted(name for one in run.files for name in one.reads if name.startswith("OMPI_"))
        missing = [name for name in names if job.variable(name) is None]
        if missing:
            launcher = run.step.launcher if run.step.launcher in _LAUNCHERS else "srun"
            theirs = _INSTEAD.get(missing[0].removeprefix("OMPI_COMM_WORLD_"), _RANK_NAMES)
            yield Hit(
                f"{run.program.file} reads {missing[0]}, which only mpirun sets, and {launcher} "
                "starts it: it ends with a KeyError.",
                f"Read {theirs[launcher != 'srun']} instead, or start it with mpirun.",
                run.step.at,
            )


RULES: tuple[Rule, ...] = (
    _unused,
    _of_agent,
    _absent,
    _local,
    _argument,
    _spelling,
    _openmpi,
)
"""Every rule of this subject."""
