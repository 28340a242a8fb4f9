"""Rules about steps: whether srun starts as many processes as the launcher behind it wants."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.program.step_program import runs
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import some
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.app.knowledge.site_facts.process_counts import (
    PER_NODE_LAUNCHERS,
    starts_one_rank_each,
    tasks_per_node_of,
)
from lumitui.remote.site.profile import Site

_MATRIX = "csc-user-guide, ml-multi.md; sbatch(1) --ntasks-per-node"


@rule(
    "launcher-tasks",
    "error",
    "a launcher of ranks that is started several times on a node",
    why="torchrun, accelerate and deepspeed start all ranks of a node themselves. Started by "
    "several tasks they start them several times over, and the copies fight for GPUs and ports.",
    source=_MATRIX,
)
def launcher_tasks(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `srun --ntasks-per-node=8 torchrun`."""
    for step in job.training:
        tasks = tasks_per_node_of(job, step)
        if starts_one_rank_each(job, step):
            continue
        if step.launcher in PER_NODE_LAUNCHERS and step.srun and tasks and tasks > 1:
            yield Hit(
                f"srun starts {step.launcher} {tasks} times on each node, and each of them starts "
                "the ranks of the whole node.",
                "Write --ntasks-per-node=1, and give the task all cores of its ranks.",
                step.at,
            )


@rule(
    "more-tasks-than-gpus",
    "error",
    "more tasks on a node than the job has GPUs on it",
    why="Each task takes the GPU of its local rank. A task without one ends with an invalid "
    "device ordinal, and the others wait for it until the time limit.",
    source=_MATRIX,
)
def more_tasks_than_gpus(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find eight tasks on four GPUs."""
    gpus = job.resources.gpus_per_node
    # A script that gives each task its rank starts a task for each GPU.
    ranked = any("SLURM_PROCID" in variable.value for variable in job.settings("RANK"))
    for step in job.training:
        tasks = tasks_per_node_of(job, step)
        if not gpus or not tasks or step.launcher not in ("srun", "plain") or not step.srun:
            continue
        if tasks > gpus and step.python:
            yield Hit(
                f"Each node starts {tasks} tasks, and the job has {some(gpus, 'GPU')} there.",
                f"Write --ntasks-per-node={gpus}.",
                step.at,
            )
        elif step.python and (1 < tasks < gpus or (tasks == 1 < gpus and ranked)):
            yield Hit(
                f"Each node starts {some(tasks, 'task')} for {gpus} GPUs, so that "
                f"{gpus - tasks} of them stay idle.",
                f"Write --ntasks-per-node={gpus}, or ask for {tasks} GPUs.",
                step.at,
                severity="warning",
            )


@rule(
    "no-srun",
    "warning",
    "several tasks, and a program that is started without srun",
    why="Without srun the program runs once, on the first node. The other tasks and nodes do "
    "nothing and are billed.",
    source="sbatch(1); LUMI-training-materials, AI course of June 2026",
)
def no_srun(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `singularity exec … python train.py` in a job of eight tasks."""
    request = job.resources
    tasks = request.tasks or (request.tasks_per_node or 1) * job.nodes
    if any(step.srun is not None for step in job.training):
        return
    for step in job.training:
        if step.launcher == "plain" and step.python and tasks > 1:
            yield Hit(
                f"The job asks for {tasks} tasks, but without srun the program starts once, on the "
                "first node.",
                "Write srun in front of it.",
                step.at,
            )
        elif step.launcher in ("torchrun", "accelerate") and job.nodes > 1:
            yield Hit(
                f"Without srun {step.launcher} starts on the first of {job.nodes} nodes alone, and "
                "waits for the others.",
                "Write srun in front of it, with --ntasks-per-node=1.",
                step.at,
                severity="error",
            )


@rule(
    "mpirun-count",
    "error",
    "mpirun with a different number of ranks than the job's tasks",
    why="Open MPI starts as many ranks as Slurm gave tasks. More are refused with `not enough "
    "slots`; fewer leave GPUs idle.",
    source="Open MPI, mpirun(1) --np; other_sites, launcher matrix",
)
def mpirun_count(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find `mpirun -np 8` in a job of four tasks."""
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
        right, do = divmod(tasks, job.nodes), "Leave the number out"
        if mapped and not right[1]:  # the map limits the ranks of a node, also without a number
            ranks = ranks or int(mapped[1]) * job.nodes
            do = f"Write ppr:{right[0]}:node in --map-by, and leave the number out"
        if ranks is not None and ranks != tasks:
            yield Hit(
                f"{step.mpirun} is to start {ranks} ranks, and the job has {tasks} tasks.",
                f"{do}: {step.mpirun} starts {tasks} by itself.",
                step.at,
                severity="error" if ranks > tasks else "warning",
            )


@rule(
    "launcher-of-site",
    "warning",
    "a launcher that does not work at the site",
    why="The profile lists the launchers that start jobs there; others fail in their first "
    "second, or start all ranks on one node.",
    source="the site's profile, launchers",
)
def launcher_of_site(job: ScriptJob, site: Site) -> Iterator[Hit]:
    """Find mpirun where MPI programs are started by srun."""
    for step in job.training:
        if step.mpirun and "mpirun" not in site.launchers:
            yield Hit(
                f"{step.mpirun} starts no ranks across nodes at {site.name}: its MPI is started by "
                "srun.",
                f"Write srun in place of {step.mpirun}.",
                step.at,
            )


_SLURM = (
    "github.com/Lightning-AI/pytorch-lightning, plugins/environments/slurm.py and "
    "connectors/accelerator_connector.py"
)


@rule(
    "lightning-nodes",
    "error",
    "a number of nodes that is not the job's",
    why="Lightning compares `num_nodes` (default 1) with the job's nodes, and ends if they differ.",
    source=f"{_SLURM}; github.com/Lightning-AI/pytorch-lightning/issues/10098",
)
def _nodes(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if (job.rank.world_size or 0) < 2:
        return
    for run in runs(job):
        if not run.lightning or run.step.srun is None or run.step.launcher != "plain":
            continue  # else Lightning starts the ranks itself
        for _program, call in run.calls("Trainer"):
            argument = call.get("num_nodes")
            count = 1 if argument is None else run.number(argument)
            if call.open or count in (None, job.nodes):
                continue
            given = (
                f"says num_nodes={count}" if argument else "says nothing of nodes, which means 1"
            )
            yield Hit(
                f"The Trainer {given}, and the job has {job.nodes}: Lightning ends.",
                f"Write num_nodes={job.nodes}, or int(os.environ['SLURM_NNODES']).",
                call.at,
            )
