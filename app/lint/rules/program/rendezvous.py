"""Rules about how a program learns its ranks, their number and where rank 0 is."""

from collections.abc import Iterator

from lumitui.app.lint.model.job import Job
from lumitui.app.lint.program.run import Run, runs
from lumitui.app.lint.rule import Hit, Rule, rule
from lumitui.remote.site.profile import Site

_TORCH = "docs.pytorch.org/docs/stable/distributed"
_HERE = ("localhost", "127.0.0.1", "0.0.0.0")
_LAUNCHERS = ("torchrun", "deepspeed", "accelerate")


@rule(
    "spawn-in-ranks",
    "error",
    "mp.spawn in a program that the launcher starts once for each GPU",
    why="Each of the launcher's processes starts a process for each GPU again: 8 x 8 on a node of "
    "eight, on the same GPUs and the same port.",
    source="docs.pytorch.org/docs/stable/elastic/run: torchrun starts the workers itself",
)
def _spawn(job: Job, site: Site) -> Iterator[Hit]:
    per_node = job.rank.per_node or 1
    if per_node < 2:
        return
    for run in runs(job):
        for program, call in run.calls("torch.multiprocessing.spawn"):
            count = run.number(call.get("nprocs", 2))
            if call.guards or count == 1:
                continue
            made = f"{per_node} x {count}" if count else f"{per_node} times as many"
            yield Hit(
                f"{program.file} starts its ranks by mp.spawn, and the job already starts "
                f"{per_node} on each node: {made} processes.",
                "Call the function directly, with the rank from the environment; or start the "
                "program once on each node.",
                call.at,
            )


@rule(
    "fixed-world-size",
    "error",
    "a fixed number of ranks that is not the job's",
    why="With fewer ranks than the program waits for, init_process_group hangs until its timeout; "
    "with more, ranks are refused.",
    source=f"{_TORCH}, init_process_group",
)
def _world(job: Job, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        if not run.world or run.has("spawn"):
            continue
        found = [
            (run.value(call.get("world_size")), call.at)
            for _program, call in run.calls("init_process_group")
            if not call.guards
        ]
        found += [
            (run.value(one.value), one.at)
            for one in run.environment("WORLD_SIZE")
            if not one.guards
        ]
        for value, at in found:
            text = str(value)
            if text.isdecimal() and int(text) != run.world:
                yield Hit(
                    f"{at.file} says {text} rank{'s' * (text != '1')}, and this job starts "
                    f"{run.world}: they wait for each other until the timeout.",
                    'Read it: int(os.environ["WORLD_SIZE"]).',
                    at,
                )


@rule(
    "master-in-program",
    "error",
    "an address of this machine for ranks on several nodes",
    why="`localhost` is another machine on each node: the ranks of the other nodes never find "
    "rank 0, and all wait until the timeout.",
    source=f"{_TORCH}, TCP initialization",
)
def _master(job: Job, site: Site) -> Iterator[Hit]:
    if job.nodes < 2:
        return
    for run in runs(job):
        found = [
            (run.value(one.value), one.at)
            for one in run.environment("MASTER_ADDR")
            if not one.guards
        ]
        for _program, call in run.calls("init_process_group"):
            method = run.value(call.get("init_method", 1))
            if isinstance(method, str) and method.startswith("tcp://"):
                found.append((method.removeprefix("tcp://").partition(":")[0], call.at))
        for value, at in found:
            if value in _HERE:
                yield Hit(
                    f"{at.file} sets the address of rank 0 to {value}, and the job has {job.nodes} "
                    "nodes: the others never find it.",
                    "Remove the line, and set MASTER_ADDR in the job script.",
                    at,
                )


@rule(
    "port-in-program",
    "warning",
    "a fixed port in the program, on nodes that others use",
    why="Two jobs on one node cannot listen on one port: the second ends with `Address already in "
    "use`, or joins the first.",
    source="LUMI-AI-Guide: port from the job's id; github.com/pytorch/pytorch/issues/73656",
)
def _port(job: Job, site: Site) -> Iterator[Hit]:
    partition = site.partitions.get(job.resources.partition or "")
    shared = partition is not None and partition.allocation == "shared"
    if job.resources.exclusive or not (shared or job.resources.array):
        return
    for run in runs(job):
        for one in run.environment("MASTER_PORT"):
            if one.value.constant and not one.guards:
                where = "an array" if job.resources.array else job.resources.partition
                yield Hit(
                    f"{one.at.file} always takes port {one.value.value}, which another job on the "
                    f"node may have: jobs of {where} share nodes.",
                    'Set MASTER_PORT in the job script: "1${SLURM_JOB_ID: -4}".',
                    one.at,
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
                if option.name == "local_rank" and not read and not used:
                    yield Hit(
                        f"{program.file} takes its local rank from {option.flags[0]}, and torchrun "
                        f"gives no such argument: all {job.rank.per_node} ranks of a node get the "
                        "default.",
                        'Read int(os.environ["LOCAL_RANK"]).',
                        option.at,
                    )


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
    "that knows `--local_rank` alone ends with `unrecognized arguments`.",
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
                        "--local_rank alone: every rank ends with `unrecognized arguments`.",
                        "Start it with torchrun, and read LOCAL_RANK from the environment.",
                        option.at,
                    )


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
            theirs = "SLURM_PROCID" if launcher == "srun" else "RANK"
            yield Hit(
                f"{run.program.file} reads {missing[0]}, which mpirun alone sets, and {launcher} "
                "starts it: it ends with a KeyError.",
                f"Read {theirs} instead, and its like, or start it with mpirun.",
                run.step.at,
            )


RULES: tuple[Rule, ...] = (
    _spawn,
    _world,
    _master,
    _port,
    _argument,
    _spelling,
    _openmpi,
)
"""Every rule of this subject."""
