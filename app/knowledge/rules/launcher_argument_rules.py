"""Rules about what torchrun, accelerate and deepspeed are told of nodes and ranks."""

from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import some
from lumitui.app.knowledge.script_job import JobStep, ScriptJob
from lumitui.app.knowledge.site_facts.process_counts import amount, nodes_of, tasks_per_node_of
from lumitui.remote.site.profile import Site

_RUN = "pytorch, torch/distributed/run.py"
_ACCELERATE = "accelerate, commands/launch.py; csc-user-guide, ml-multi.md"
_NODES = ("nnodes", "num-machines")


def _spanning(job: ScriptJob, *launchers: str) -> Iterator[JobStep]:
    """Yield the steps that srun starts on several nodes with one of these launchers."""
    for step in job.training:
        if step.launcher in launchers and step.srun and nodes_of(job, step) > 1:
            yield step


def _counted(job: ScriptJob, step: JobStep, *names: str) -> tuple[int, str] | None:
    """Return a number among the launcher's options, with the option as it was written."""
    option = step.launcher_options.get(*names)
    number = step.launcher_options.number(*names)
    return None if option is None or number is None else (number, option.raw or option.name)


@rule(
    "torchrun-standalone",
    "error",
    "--standalone on several nodes",
    why="It opens a separate rendezvous on each node, so every node trains its own copy without "
    "the others.",
    source=f"{_RUN} --standalone",
)
def torchrun_standalone(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `torchrun --standalone` in a step of two nodes."""
    for step in _spanning(job, "torchrun"):
        option = step.launcher_options.get("standalone")
        if option is not None:
            yield Hit(
                f"--standalone makes each of the {nodes_of(job, step)} nodes train alone.",
                "Write --rdzv_backend=c10d --rdzv_endpoint=$MASTER_ADDR:$MASTER_PORT instead.",
                option.at if option.at.line else step.at,
            )


@rule(
    "launcher-nodes",
    "error",
    "a launcher with a different number of nodes than the job",
    why="With more nodes than there are the launcher waits for the missing ones until it gives "
    "up; with fewer, the others are refused or train alone.",
    source=f"{_RUN} --nnodes; {_ACCELERATE}",
)
def launcher_nodes(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `--nnodes=2` in a job of four nodes."""
    for step in job.training:
        if step.launcher not in ("torchrun", "accelerate"):
            continue
        told, nodes = _counted(job, step, *_NODES), nodes_of(job, step)
        if told is not None and told[0] != nodes and (step.srun or told[0] != job.nodes):
            yield Hit(
                f"{told[1]} does not fit the {nodes} node{'' if nodes == 1 else 's'} of the step.",
                "Write $SLURM_JOB_NUM_NODES in place of the number.",
                step.at,
            )


@rule(
    "launcher-nodes-missing",
    "error",
    "a launcher on several nodes without their number",
    why="Without a number of nodes the launcher takes one, so that every node trains a copy of "
    "its own, and all of them write the same files.",
    source=f"{_RUN} --nnodes (default 1:1); {_ACCELERATE}",
)
def launcher_nodes_missing(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `srun torchrun --nproc_per_node=8` in a job of two nodes."""
    for step in _spanning(job, "torchrun", "accelerate"):
        options = step.launcher_options
        configured = options.has("config-file", "standalone") or job.variable("PET_NNODES")
        if not options.has(*_NODES) and not configured:
            name = "--nnodes" if step.launcher == "torchrun" else "--num_machines"
            yield Hit(
                f"{step.launcher} is not told of the {nodes_of(job, step)} nodes, so that each of "
                "them trains alone.",
                f"Write {name}=$SLURM_JOB_NUM_NODES.",
                step.at,
            )


@rule(
    "torchrun-processes",
    "error",
    "torchrun with a different number of ranks on a node than its GPUs",
    why="A rank without a GPU ends with an invalid device ordinal; a GPU without a rank stays "
    "idle and is billed.",
    source=f"{_RUN} --nproc-per-node",
)
def torchrun_processes(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `--nproc_per_node=8` with four GPUs."""
    gpus = job.resources.gpus_per_node
    for step in job.training:
        if step.launcher != "torchrun" or not gpus or (tasks_per_node_of(job, step) or 2) > 1:
            continue
        option = step.launcher_options.get("nproc-per-node")
        told = amount(job, option.value) if option else None
        if _chooses_gpus(job, step):
            continue
        if option is None and gpus > 1 and not job.variable("PET_NPROC_PER_NODE"):
            yield Hit(
                f"torchrun is not told how many ranks to start, and starts one for {gpus} GPUs.",
                f"Write --nproc_per_node={gpus}.",
                step.at,
                severity="warning",
            )
        elif option is not None and told is not None and told != gpus:
            more = told > gpus
            yield Hit(
                f"torchrun starts {some(told, 'rank')} on each node, and the job has "
                f"{some(gpus, 'GPU')} there" + ("." if more else f": {gpus - told} stay idle."),
                f"Write --nproc_per_node={gpus}.",
                option.at if option.at.line else step.at,
                severity="error" if more else "warning",
            )


def _chooses_gpus(job: ScriptJob, step: JobStep) -> bool:
    """Whether a step has some of the node's GPUs, as others run beside it."""
    number = job.steps.index(step)
    return step.background and any(
        item.name.endswith("VISIBLE_DEVICES") and item.step in (None, number)
        for item in job.variables
    )


@rule(
    "no-node-rank",
    "error",
    "a static rendezvous without the rank of each node",
    why="With only --master_addr every node takes itself for node 0 and waits for the others.",
    source=f"{_RUN}, static rendezvous, --node-rank (default 0); "
    "github.com/meta-pytorch/torchx/pull/751",
)
def no_node_rank(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `--master_addr` on several nodes without `--node_rank`, or with the same on all."""
    for step in _spanning(job, "torchrun", "accelerate"):
        options = step.launcher_options
        name = "node-rank" if step.launcher == "torchrun" else "machine-rank"
        static = options.has("master-addr", "main-process-ip") and not options.has(
            "rdzv-endpoint", "rdzv-backend"
        )
        option = options.get(name)
        variable = job.variable("PET_NODE_RANK")
        if static and option is None and variable is None and not options.has("config-file"):
            yield Hit(
                f"Each of {nodes_of(job, step)} nodes takes itself for node 0, as --{name} is "
                "missing.",
                f"Write --{name.replace('-', '_')} $SLURM_NODEID where each task expands it.",
                step.at,
            )
        elif option is not None and options.number(name) is not None:
            yield Hit(
                f"Each of {nodes_of(job, step)} nodes is told that it is node {option.value}.",
                f"Write --{name.replace('-', '_')} $SLURM_NODEID where each task expands it.",
                option.at if option.at.line else step.at,
            )


@rule(
    "accelerate-processes",
    "error",
    "accelerate with one node's number of ranks as the total",
    why="--num_processes of accelerate counts the ranks of all nodes, unlike torchrun's. It is "
    "divided by the number of nodes, so most GPUs stay idle.",
    source=_ACCELERATE,
)
def accelerate_processes(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `--num_processes 8` on two nodes of eight GPUs."""
    gpus = job.resources.gpus_per_node
    for step in job.training:
        told = amount(job, step.launcher_options.value("num-processes"))
        nodes = nodes_of(job, step)
        if step.launcher != "accelerate" or not gpus or told is None or told == gpus * nodes:
            continue
        if told % nodes:
            yield Hit(
                f"--num_processes={told} cannot be shared out to {nodes} nodes.",
                f"Write --num_processes={gpus * nodes}: {gpus} on each of {nodes} nodes.",
                step.at,
            )
        else:
            fewer = told < gpus * nodes
            yield Hit(
                f"--num_processes={told} counts the ranks of all {nodes} nodes: "
                f"{told // nodes} on each, which has {gpus} GPUs.",
                f"Write --num_processes={gpus * nodes}.",
                step.at,
                severity="warning" if fewer and nodes == 1 else None,
            )
