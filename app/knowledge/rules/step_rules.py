"""Rules about steps: their requests and numbers of processes."""

import math
import re
from collections.abc import Iterator

from lumitui.app.knowledge.program.step_program import one_gpu_of, runs
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.network_rules import how_to_set, missing_variables
from lumitui.app.knowledge.rules.phrases import INHERIT, one_of, some
from lumitui.app.knowledge.script_job import CommandOptions, JobStep, ScriptJob
from lumitui.app.knowledge.site_facts.allocation import (
    cores_of_node,
    gpu_option,
    has_unknown_sources,
    whole_nodes,
)
from lumitui.app.knowledge.site_facts.process_counts import (
    PER_NODE_LAUNCHERS,
    amount,
    nodes_of,
    starts_one_rank_each,
    tasks_per_node_of,
)
from lumitui.remote.site.profile import Site


def _steps(job: ScriptJob) -> Iterator[CommandOptions]:
    """Yield srun's options of each step that runs in this job's own allocation."""
    for step in job.steps:
        if step.srun is not None and not step.srun.has(
            "jobid", "overlap", "het-group", "pack-group"
        ):
            yield step.srun


def _ranges(job: ScriptJob) -> bool:
    """Return whether the job's node count is a range, or not a number."""
    option = job.options.get("nodes")
    if option is None:
        return job.options.has("ntasks")
    return not (option.value or "").isdecimal()


@rule(
    "step-tasks",
    "error",
    "a step with too many tasks for the job's cores",
    why="srun refuses the step or waits forever: `More processors requested than permitted`.",
    source="srun(1) --ntasks",
)
def _tasks(job: ScriptJob, site: Site) -> Iterator[Hit]:
    each, cores = job.tasks_per_node, job.resources.cpus_per_task or 1
    whole, has = whole_nodes(job, site) is True, cores_of_node(job, site)
    if _ranges(job) or has is None or (whole and not job.options.has("ntasks", "ntasks-per-node")):
        return
    own, total = job.options.has("cpus-per-task"), has * job.nodes
    even = f" with {some(cores, 'core')} each"
    given = even if own or has == each else f" and gets {total} cores with its GPUs"
    for options in _steps(job):
        option, asked = options.get("ntasks"), options.number("ntasks")
        if option is None or asked is None or asked <= each * job.nodes:
            continue
        used = options.number("cpus-per-task") or (cores if site.srun_has_cpus else 1)
        fits = asked * used <= total
        if fits and (options.has("cpus-per-task") or not own):
            continue  # it divides the job's cores differently
        too_many = not fits and not whole
        right = math.ceil(asked / job.nodes)
        yield Hit(
            f"srun starts {some(asked, 'task')}, but the job requests {each * job.nodes}"
            + (
                f"{given}: no cores are left for the rest."
                if too_many
                else ", so tasks share cores."
            ),
            f"Write #SBATCH --ntasks-per-node={right}, and omit --ntasks from srun.",
            option.at,
            severity=None if too_many else "warning",
        )


@rule(
    "srun-cores",
    "warning",
    "srun without the cores requested from sbatch",
    why="In Slurm 22.05 to 23.02, srun does not inherit --cpus-per-task: each task gets one core.",
    source="Slurm 22.05, RELEASE_NOTES; measured: 22.05.8 does not, 24.11.5 and 26.05.5 do",
)
def _unshared(job: ScriptJob, site: Site) -> Iterator[Hit]:
    option, cores = job.options.get("cpus-per-task"), job.resources.cpus_per_task or 1
    if site.srun_has_cpus is not False or option is None or cores < 2:
        return
    if job.variable("SRUN_CPUS_PER_TASK") is not None:
        return
    for step in job.training:
        options = step.srun
        if options is None or options.has("cpus-per-task", "exact", "jobid", "cpu-bind"):
            continue
        yield Hit(
            f"At {site.name}, srun does not inherit --cpus-per-task={cores} from sbatch: each "
            "task gets one core.",
            f"Write {INHERIT} before srun.",
            step.at,
        )


_MATRIX = "csc-user-guide, ml-multi.md; sbatch(1) --ntasks-per-node"


@rule(
    "launcher-tasks",
    "error",
    "a launcher started several times on a node",
    why="Each copy starts all ranks of the node, and the copies compete for GPUs and ports.",
    source=_MATRIX,
)
def _launcher_tasks(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for step in job.training:
        tasks = tasks_per_node_of(job, step)
        if starts_one_rank_each(job, step):
            continue
        if step.launcher in PER_NODE_LAUNCHERS and step.srun and tasks and tasks > 1:
            yield Hit(
                f"srun starts {step.launcher} {tasks} times on each node, and each instance "
                "starts all ranks of the node.",
                "Write --ntasks-per-node=1, and give this task the cores of all ranks.",
                step.at,
            )


@rule(
    "more-tasks-than-gpus",
    "error",
    "more or fewer tasks on a node than GPUs",
    why="A task without a GPU fails with an invalid device ordinal, and the others wait for it "
    "until the time limit. A GPU without a task stays idle, but is billed.",
    source=_MATRIX,
)
def _more_tasks_than_gpus(job: ScriptJob, site: Site) -> Iterator[Hit]:
    # A script that assigns each task a rank starts one task per GPU.
    ranked = any("SLURM_PROCID" in variable.value for variable in job.settings("RANK"))
    for step in job.training:
        gpus, tasks = step.rank.gpus_per_node, tasks_per_node_of(job, step)
        if not gpus or not tasks or step.launcher not in ("srun", "plain"):
            continue
        alone = one_gpu_of(job, step) if job.origin == "script" and not ranked else "no"
        if gpus > 1 and alone != "no":
            number = f"{gpus} GPUs{' on each node' if job.nodes > 1 else ''}"
            unless = "" if alone == "yes" else " unless the program divides its work"
            yield Hit(
                f"The job has {number}, but starts one process, which uses one GPU{unless}.",
                f"Request one GPU, or start a rank on each: --ntasks-per-node={gpus} or torchrun.",
                step.at,
                severity="warning" if alone == "yes" else "note",
            )
        elif step.srun and step.python and tasks > gpus:
            yield _in_total(job, gpus, tasks) or Hit(
                f"Each node starts {tasks} tasks, but has {some(gpus, 'GPU')}.",
                f"Write --ntasks-per-node={gpus}.",
                step.at,
            )
        elif step.background and len(job.training) > 1:
            continue  # the steps beside it may use the other GPUs
        elif step.srun and step.python and (1 < tasks < gpus or (tasks == 1 < gpus and ranked)):
            yield Hit(
                f"Each node starts {some(tasks, 'task')}, but has {gpus} GPUs.",
                f"Write --ntasks-per-node={gpus}, or request {some(tasks, 'GPU')}.",
                step.at,
                severity="warning",
            )


def _in_total(job: ScriptJob, gpus: int, ranks: int) -> Hit | None:
    """Return the finding if a total of GPUs was meant for each node; None otherwise."""
    option = gpu_option(job)
    if not job.resources.gpus_total or ranks != gpus * job.nodes or option is None:
        return None
    return Hit(
        f"{option.raw} is the total for all {job.nodes} nodes: each starts {ranks} ranks, but has "
        f"{some(gpus, 'GPU')}.",
        f"Write --gpus={ranks * job.nodes}, or --gpus-per-node={ranks}.",
        option.at,
    )


@rule(
    "no-srun",
    "warning",
    "several tasks, but a program started without srun",
    why="The program runs once, on the first node. The other nodes are idle but billed.",
    source="sbatch(1); LUMI-training-materials, AI course of June 2026",
)
def _no_srun(job: ScriptJob, site: Site) -> Iterator[Hit]:
    request = job.resources
    tasks = request.tasks or (request.tasks_per_node or 1) * job.nodes
    if any(step.srun is not None for step in job.training):
        return
    for step in job.training:
        beside = step.repeated and step.background  # each round starts a program of its own
        if step.launcher == "plain" and step.python and tasks > 1 and not beside:
            known = () if has_unknown_sources(job) else runs(job)
            own = next((run for run in known if run.step is step), None)
            if own and (missing := missing_variables(job, own)):
                yield Hit(
                    f"The job requests {tasks} tasks, but without srun {own.program.file} starts "
                    f"once, on the first node, and fails: nothing sets {one_of(missing, 'and')}.",
                    how_to_set(missing),
                    step.at,
                    severity="error",
                )
                continue
            yield Hit(
                f"The job requests {tasks} tasks, but without srun the program starts once, on "
                "the first node.",
                "Write srun before it.",
                step.at,
            )
        elif step.launcher in ("torchrun", "accelerate") and job.nodes > 1:
            yield Hit(
                f"Without srun, {step.launcher} starts only on the first of {job.nodes} nodes, "
                "and waits for the others.",
                "Write srun before it, with --ntasks-per-node=1.",
                step.at,
                severity="error",
            )


@rule(
    "mpirun-count",
    "error",
    "mpirun with a number of ranks that differs from the job's tasks",
    why="Open MPI refuses more ranks with `not enough slots`; fewer leave GPUs idle.",
    source="Open MPI, mpirun(1) --np; other_sites, launcher matrix",
)
def _mpirun_count(job: ScriptJob, site: Site) -> Iterator[Hit]:
    request = job.resources
    tasks = request.tasks or (
        request.tasks_per_node * job.nodes if request.tasks_per_node else None
    )
    for step in job.steps:
        options = step.launcher_options
        if not step.mpirun or tasks is None or options.has("host", "hostfile", "oversubscribe"):
            continue
        ranks = options.number("np") or options.number("n") or options.number("c")
        mapped = re.match(r"ppr:(\d{1,6}):node\b", options.value("map-by") or "")
        right, do = divmod(tasks, job.nodes), "Omit the number"
        if mapped and not right[1]:  # the map limits the ranks per node, even without a number
            ranks = ranks or int(mapped[1]) * job.nodes
            do = f"Write ppr:{right[0]}:node in --map-by, and omit the number"
        if ranks is not None and ranks != tasks:
            yield Hit(
                f"{step.mpirun} starts {ranks} ranks, but the job has {tasks} tasks.",
                f"{do}: by default, {step.mpirun} starts {tasks}.",
                step.at,
                severity="error" if ranks > tasks else "warning",
            )


@rule(
    "launcher-of-site",
    "warning",
    "a launcher that does not work at the site",
    why="It fails within a second, or starts all ranks on one node.",
    source="the site's profile, launchers",
)
def _launcher_of_site(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for step in job.training:
        if step.mpirun and "mpirun" not in site.launchers:
            yield Hit(
                f"{step.mpirun} cannot start ranks on several nodes at {site.name}, where srun "
                "starts MPI programs.",
                f"Write srun instead of {step.mpirun}.",
                step.at,
            )


_SLURM = (
    "github.com/Lightning-AI/pytorch-lightning, plugins/environments/slurm.py and "
    "connectors/accelerator_connector.py"
)


@rule(
    "lightning-nodes",
    "error",
    "a number of nodes that differs from the job's",
    why="Lightning fails: its `num_nodes` (default 1) must match the job.",
    source=f"{_SLURM}; github.com/Lightning-AI/pytorch-lightning/issues/10098",
)
def _nodes(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for run in runs(job):
        if (
            run.world < 2
            or not run.lightning
            or run.step.srun is None
            or run.step.launcher != "plain"
        ):
            continue  # otherwise Lightning starts the ranks itself
        for _program, call in run.calls("Trainer"):
            argument = call.get("num_nodes")
            count = 1 if argument is None else run.number(argument)
            if call.open or count in (None, run.nodes):
                continue
            given = (
                f"sets num_nodes={count}" if argument else "sets no number of nodes, which means 1"
            )
            yield Hit(
                f"The Trainer {given}, but the job has {some(run.nodes, 'node')}: Lightning fails.",
                f"Write num_nodes={run.nodes}, or int(os.environ['SLURM_NNODES']).",
                call.at,
            )


_RUN = "pytorch, torch/distributed/run.py"
_ACCELERATE = "accelerate, commands/launch.py; csc-user-guide, ml-multi.md"
_NODES = ("nnodes", "num-machines")


def _spanning(job: ScriptJob, *launchers: str) -> Iterator[JobStep]:
    """Yield the steps that srun starts on several nodes with one of these launchers."""
    for step in job.training:
        if step.launcher in launchers and step.srun and nodes_of(job, step) > 1:
            yield step


def _counted(job: ScriptJob, step: JobStep, *names: str) -> tuple[int, str] | None:
    """Return a number in the launcher's options, with the option as written."""
    option = step.launcher_options.get(*names)
    number = step.launcher_options.number(*names)
    return None if option is None or number is None else (number, option.raw or option.name)


@rule(
    "torchrun-standalone",
    "error",
    "--standalone on several nodes",
    why="Every node opens its own rendezvous and trains its own copy.",
    source=f"{_RUN} --standalone",
)
def _torchrun_standalone(job: ScriptJob, site: Site) -> Iterator[Hit]:
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
    "a launcher with a number of nodes that differs from the job's",
    why="With a larger number, the launcher waits until it times out; with a smaller one, "
    "some nodes train alone.",
    source=f"{_RUN} --nnodes; {_ACCELERATE}",
)
def _launcher_nodes(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for step in job.training:
        if step.launcher not in ("torchrun", "accelerate") or starts_one_rank_each(job, step):
            continue
        told, nodes = _counted(job, step, *_NODES), nodes_of(job, step)
        if told is not None and told[0] != nodes and (step.srun or told[0] != job.nodes):
            yield Hit(
                f"{told[1]} does not match the {nodes} node{'' if nodes == 1 else 's'} of the "
                "step.",
                "Write $SLURM_JOB_NUM_NODES instead of the number.",
                step.at,
            )


@rule(
    "launcher-nodes-missing",
    "error",
    "a launcher without the number of nodes",
    why="The launcher assumes one node, so every node trains its own copy, and all write the same "
    "files.",
    source=f"{_RUN} --nnodes (default 1:1); {_ACCELERATE}",
)
def _launcher_nodes_missing(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for step in _spanning(job, "torchrun", "accelerate"):
        options = step.launcher_options
        configured = options.has("config-file", "standalone") or job.variable("PET_NNODES")
        if not options.has(*_NODES) and not configured:
            name = "--nnodes" if step.launcher == "torchrun" else "--num_machines"
            yield Hit(
                f"{step.launcher} gets no number of nodes, so each of the "
                f"{nodes_of(job, step)} nodes trains alone.",
                f"Write {name}=$SLURM_JOB_NUM_NODES.",
                step.at,
            )


@rule(
    "torchrun-processes",
    "error",
    "torchrun with more or fewer ranks per node than GPUs",
    why="A rank without a GPU fails with an invalid device ordinal; a GPU without a rank is "
    "idle but billed.",
    source=f"{_RUN} --nproc-per-node",
)
def _torchrun_processes(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for step in job.training:
        gpus = step.rank.gpus_per_node
        if step.launcher != "torchrun" or not gpus or (tasks_per_node_of(job, step) or 2) > 1:
            continue
        option = step.launcher_options.get("nproc-per-node")
        told = amount(job, option.value) if option else None
        if _chooses_gpus(job, step):
            continue
        if option is None and gpus > 1 and not job.variable("PET_NPROC_PER_NODE"):
            yield Hit(
                f"torchrun gets no number of ranks, so it starts only one for {gpus} GPUs.",
                f"Write --nproc_per_node={gpus}.",
                step.at,
                severity="warning",
            )
        elif option is not None and told is not None and told != gpus:
            more = told > gpus
            yield _in_total(job, gpus, told) or Hit(
                f"torchrun starts {some(told, 'rank')} per node, but each node has "
                f"{some(gpus, 'GPU')}" + ("." if more else f": only {told} of them are used."),
                f"Write --nproc_per_node={gpus}.",
                option.at if option.at.line else step.at,
                severity="error" if more else "warning",
            )


def _chooses_gpus(job: ScriptJob, step: JobStep) -> bool:
    """Return whether a step has only some of the node's GPUs, because other steps run beside it."""
    number = job.steps.index(step)
    return step.background and any(
        item.name.endswith("VISIBLE_DEVICES") and item.step in (None, number)
        for item in job.variables
    )


@rule(
    "no-node-rank",
    "error",
    "a static rendezvous without the rank of each node",
    why="With only --master_addr, every node assumes that it is node 0 and waits for the others.",
    source=f"{_RUN}, static rendezvous, --node-rank (default 0); "
    "github.com/meta-pytorch/torchx/pull/751",
)
def _no_node_rank(job: ScriptJob, site: Site) -> Iterator[Hit]:
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
                f"Each of the {nodes_of(job, step)} nodes assumes that it is node 0, because "
                f"--{name} is missing.",
                f"Write --{name.replace('-', '_')} $SLURM_NODEID, and let each task expand it.",
                step.at,
            )
        elif option is not None and options.number(name) is not None:
            yield Hit(
                f"Each of the {nodes_of(job, step)} nodes gets the same node rank, {option.value}.",
                f"Write --{name.replace('-', '_')} $SLURM_NODEID, and let each task expand it.",
                option.at if option.at.line else step.at,
            )


@rule(
    "accelerate-processes",
    "error",
    "accelerate with the ranks of one node instead of all ranks",
    why="accelerate divides --num_processes by the number of nodes, so most GPUs stay idle.",
    source=_ACCELERATE,
)
def _accelerate_processes(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for step in job.training:
        gpus = step.rank.gpus_per_node
        told = amount(job, step.launcher_options.value("num-processes"))
        nodes = nodes_of(job, step)
        if step.launcher != "accelerate" or not gpus or told is None or told == gpus * nodes:
            continue
        yield Hit(
            f"--num_processes={told} starts {some(told, 'rank')} on a node with "
            f"{some(gpus, 'GPU')}."
            if nodes == 1
            else f"--num_processes is the total over all nodes: {told} gives "
            f"{some(told / nodes, 'rank')} per node, but each node has {some(gpus, 'GPU')}.",
            f"Write --num_processes={gpus * nodes}.",
            step.at,
            severity="warning" if told < gpus and nodes == 1 else None,
        )
