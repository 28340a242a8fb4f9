"""The number of processes that a step starts, for the rules. Pure."""

import re

from lumitui.app.knowledge.script_job import JobStep, ScriptJob, Variable

PER_NODE_LAUNCHERS = ("torchrun", "deepspeed", "accelerate")
"""Launchers that start a node's ranks themselves, so that Slurm starts them once per node."""
RANK_VARIABLES = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID")
"""Variables that Slurm sets per task of a step; the batch script has those of its single task."""


def nodes_of(job: ScriptJob, step: JobStep) -> int:
    """Return the number of nodes on which a step starts processes."""
    if step.srun is None:
        return 1
    return step.srun.number("nodes") or job.nodes


def tasks_per_node_of(job: ScriptJob, step: JobStep) -> int | None:
    """Return the tasks that srun starts on each node; None if an unsupported option decides."""
    request, nodes = job.resources, nodes_of(job, step)
    if step.srun is None:
        return 1
    if step.srun.has("ntasks-per-node"):
        return step.srun.number("ntasks-per-node")
    if step.srun.has("ntasks"):
        tasks = step.srun.number("ntasks")
        return None if tasks is None else -(-tasks // nodes)
    if job.options.has("ntasks-per-gpu", "ntasks-per-core") or step.srun.has("ntasks-per-gpu"):
        return None
    if request.tasks_per_node is not None:
        return request.tasks_per_node
    if job.options.has("ntasks-per-node", "ntasks") and request.tasks is None:
        return None
    return -(-request.tasks // job.nodes) if request.tasks else 1


def tasks_of(job: ScriptJob, step: JobStep) -> int | None:
    """Return the tasks that srun starts in total; None if unknown."""
    each = tasks_per_node_of(job, step)
    if step.srun and (total := step.srun.number("ntasks")) is not None:
        return total
    if step.srun and job.resources.tasks and not step.srun.has("nodes", "ntasks-per-node"):
        return job.resources.tasks
    return None if each is None else each * nodes_of(job, step)


def steps_with(job: ScriptJob, variable: Variable) -> tuple[JobStep, ...]:
    """Return the main programs that start with this setting, not with another one of its name."""
    later = [one for one in job.settings(variable.name) if one.at > variable.at]

    def starts_with(number: int, step: JobStep) -> bool:
        if variable.step is not None or variable.at.file != step.at.file:
            return variable.step in (None, number)
        replaced = any(
            one.at < step.at and one.step in (None, number) and not one.conditional for one in later
        )
        return variable.at < step.at and not replaced

    return tuple(
        step for number, step in enumerate(job.steps) if step.trains and starts_with(number, step)
    )


_BY_RANK = re.compile(r"\$\{?(SLURM_LOCALID|LOCAL_RANK|OMPI_COMM_WORLD_LOCAL_RANK)\b")


def shows_own_gpu(variable: Variable) -> bool:
    """Return whether a variable shows each task only the GPU with its local number."""
    return variable.name.endswith("_VISIBLE_DEVICES") and bool(_BY_RANK.search(variable.value))


def has_one_rank(job: ScriptJob, step: JobStep) -> bool:
    """Return whether each torchrun of a step starts one rank, so that its LOCAL_RANK is 0."""
    number = step.launcher_options.value("nproc-per-node")
    silent = job.variable("PET_NPROC_PER_NODE") is None
    count = amount(job, number) if number is not None else 1 if silent else None
    return step.launcher == "torchrun" and count == 1


def starts_one_rank_each(job: ScriptJob, step: JobStep) -> bool:
    """Return whether each task starts torchrun for one rank, on its own GPU.

    Such launches do not collide on a port: they use `--standalone` or `--nnodes` above 1.
    """
    options, number = step.launcher_options, job.steps.index(step)
    apart = options.has("standalone") or (options.value("nnodes") or "1") not in ("1", "1:1")
    own = any(shows_own_gpu(each) and each.step in (None, number) for each in job.variables)
    has_gpu = any(
        each is not None and each.has("gpus-per-task") for each in (step.srun, job.options)
    )
    return has_one_rank(job, step) and apart and (own or has_gpu)


def amount(job: ScriptJob, text: str | None) -> int | None:
    """Return the number in a text, or that of Slurm's variable in the batch script."""
    request, plain = job.resources, (text or "").strip().replace("{", "").replace("}", "")
    if plain.isdecimal() and len(plain) <= 12:
        return int(plain)
    values = {
        "$SLURM_GPUS": job.options.number("gpus"),
        "$SLURM_GPUS_ON_NODE": request.gpus_per_node,
        "$SLURM_GPUS_PER_NODE": job.options.number("gpus-per-node"),
        "$SLURM_NNODES": job.nodes,
        "$SLURM_JOB_NUM_NODES": job.nodes,
        "$SLURM_NTASKS": request.tasks,
        "$SLURM_NPROCS": request.tasks,
        "$SLURM_NTASKS_PER_NODE": job.options.number("ntasks-per-node"),
        "$SLURM_CPUS_PER_TASK": job.options.number("cpus-per-task"),
    }
    return values.get(plain)


def loses_ranks(job: ScriptJob, name: str) -> bool:
    """Return whether a Slurm rank variable differs between tasks, unlike the batch script's."""
    request = job.resources
    tasks = request.tasks or (request.tasks_per_node or 1) * job.nodes
    if name == "SLURM_NODEID":
        return job.nodes > 1
    if name == "SLURM_LOCALID":
        return tasks > job.nodes
    return tasks > 1
