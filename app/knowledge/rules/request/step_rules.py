"""Rules about what a step asks for beyond what the job has."""

import math
import re
from collections.abc import Iterator

from lumitui.app.knowledge.bash.request.resource_options import count_of
from lumitui.app.knowledge.model.command_words import Option, Options
from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.app.knowledge.rules.phrases import some
from lumitui.app.knowledge.site_facts.allocation import (
    cores_of_node,
    gpus_of_node,
    is_exclusive,
    queue_of,
    whole_nodes,
)
from lumitui.remote.site.profile import Site


def _steps(job: Job) -> Iterator[Options]:
    """Yield srun's options of each step that runs in this job's own allocation."""
    for step in job.steps:
        if step.srun is not None and not step.srun.has(
            "jobid", "overlap", "het-group", "pack-group"
        ):
            yield step.srun


def _tasks_per_node(job: Job) -> int:
    asked = job.resources
    return asked.tasks_per_node or math.ceil((asked.tasks or 1) / job.nodes)


@rule(
    "step-nodes",
    "error",
    "a step on more nodes than the job has",
    why="srun refuses the step: `Only allocated 2 nodes asked for 4`.",
    source="srun(1) --nodes",
)
def _nodes(job: Job, site: Site) -> Iterator[Hit]:
    for options in _steps(job):
        option, asked = options.get("nodes"), options.number("nodes")
        if option and asked and asked > job.nodes and not _ranges(job):
            yield Hit(
                f"srun asks for {some(asked, 'node')}, and the job has {job.nodes}.",
                f"Write #SBATCH --nodes={asked}, or leave --nodes out at srun.",
                option.at,
            )


def _ranges(job: Job) -> bool:
    """Return whether the job's number of nodes is open, or not given with a number."""
    option = job.options.get("nodes")
    if option is None:
        return job.options.has("ntasks")
    return not (option.value or "").isdecimal()


@rule(
    "step-tasks",
    "error",
    "a step with more tasks than the job's cores are for",
    why="srun refuses the step or waits for ever: `More processors requested than permitted`. "
    "Where "
    "it starts, its ranks share cores and GPUs.",
    source="srun(1) --ntasks",
)
def _tasks(job: Job, site: Site) -> Iterator[Hit]:
    each, cores = _tasks_per_node(job), job.resources.cpus_per_task or 1
    whole = whole_nodes(job, site) is True
    if _ranges(job) or (whole and not job.options.has("ntasks", "ntasks-per-node")):
        return
    for options in _steps(job):
        option, asked = options.get("ntasks"), options.number("ntasks")
        if option is None or asked is None or asked <= each * job.nodes:
            continue
        used = options.number("cpus-per-task") or (cores if site.srun_inherits_cpus else 1)
        fits = asked * used <= each * cores * job.nodes
        if fits and options.has("cpus-per-task"):
            continue  # it divides the job's cores anew
        too_many = not fits and not whole
        right = math.ceil(asked / job.nodes)
        yield Hit(
            f"srun starts {some(asked, 'task')}, and the job asks for {each * job.nodes}"
            + (
                f" with {some(cores, 'core')} each: there are no cores for them."
                if too_many
                else ", so that tasks share cores."
            ),
            f"Write #SBATCH --ntasks-per-node={right}, and leave --ntasks out at srun.",
            option.at,
            severity=None if too_many else "warning",
        )


@rule(
    "step-tasks-per-node",
    "warning",
    "tasks per node at srun, where the job already has a number of tasks",
    why="With a number of tasks from #SBATCH, --ntasks-per-node of srun is only a maximum: the "
    "step "
    "starts as many tasks as the job has.",
    source="srun(1) --ntasks-per-node; LUMI-training-materials 2day-20260422/201-Slurm",
)
def _per_node(job: Job, site: Site) -> Iterator[Hit]:
    each = _tasks_per_node(job)
    given = job.options.has("ntasks", "ntasks-per-node")
    for options in _steps(job):
        option, asked = options.get("ntasks-per-node"), options.number("ntasks-per-node")
        if option and asked and given and asked > each and not options.has("ntasks"):
            yield Hit(
                f"srun's --ntasks-per-node={asked} is only a maximum here: the job has "
                f"{some(each, 'task')} on each node, and so has the step.",
                f"Write #SBATCH --ntasks-per-node={asked}.",
                option.at,
            )


@rule(
    "step-cores",
    "error",
    "a step with more cores for each task than the job has",
    why="`srun: error: Unable to create step: More processors requested than permitted`, or `Job "
    "step's --cpus-per-task value exceeds that of job. Job step may never run`.",
    source="srun(1) --cpus-per-task; LUMI-training-materials 2day-20260422/201-Slurm",
)
def _cores(job: Job, site: Site) -> Iterator[Hit]:
    queue, has = queue_of(job, site), cores_of_node(job)
    whole = queue is not None and queue.partition.allocation == "node"
    if has is None or is_exclusive(job) or whole or not job.options.has("cpus-per-task"):
        return
    for options in _steps(job):
        option, each = options.get("cpus-per-task"), options.number("cpus-per-task")
        total = options.number("ntasks")
        tasks = options.number("ntasks-per-node") or (
            math.ceil(total / job.nodes) if total else _tasks_per_node(job)
        )
        if option and each and tasks * each > has:
            yield Hit(
                f"srun asks for {each} cores for each of {some(tasks, 'task')} of a node, and "
                "the job "
                f"has {some(has, 'core')} there.",
                f"Write #SBATCH --cpus-per-task={each}, or "
                f"--cpus-per-task={max(1, has // tasks)} at "
                "srun.",
                option.at,
            )


@rule(
    "step-gpus",
    "error",
    "a step with more GPUs than the job has",
    why="srun refuses the step: `Invalid generic resource (gres) specification`, or waits for "
    "ever.",
    source="srun(1) --gpus, --gpus-per-node, --gres",
)
def _gpus(job: Job, site: Site) -> Iterator[Hit]:
    has = gpus_of_node(job)
    if not has or _ranges(job):
        return
    for options in _steps(job):
        for option in options.all:
            asked = _gpus_of(option)
            most = has * job.nodes if option.name == "gpus" else has
            if option.name == "gpus-per-task" and asked:
                tasks = options.number("ntasks-per-node") or _tasks_per_node(job)
                asked *= tasks if not options.has("ntasks") else 1
            if asked and asked > most:
                yield Hit(
                    f"srun's --{option.name}={option.value} asks for {some(asked, 'GPU')}, and "
                    "the job "
                    f"has {most}{'' if option.name == 'gpus' else ' on each node'}.",
                    "Leave it out: a step has all GPUs of the job.",
                    option.at,
                )


def _gpus_of(option: Option) -> int | None:
    """Return the number of GPUs that an option of srun asks for; None: none."""
    value = option.value or ""
    if option.name == "gres":
        found = re.search(r"(?:^|,)gpu(?::[A-Za-z]\w*)?(?::(\d+))?(?:,|$)", value)
        return int(found[1] or 1) if found else None
    if option.name in ("gpus", "gpus-per-node", "gpus-per-task"):
        counted = count_of(value)
        return counted[1] if counted else None
    return None


@rule(
    "srun-cores",
    "warning",
    "srun without the cores that sbatch asked for",
    why="Since Slurm 22.05 srun does not take --cpus-per-task from sbatch: each task gets one "
    "core, "
    "and all its threads and data loaders share it.",
    source="Slurm 22.05, RELEASE_NOTES; csc-user-guide pull request 1632",
)
def _unshared(job: Job, site: Site) -> Iterator[Hit]:
    option, cores = job.options.get("cpus-per-task"), job.resources.cpus_per_task or 1
    if site.srun_inherits_cpus is not False or option is None or cores < 2:
        return
    if job.variable("SRUN_CPUS_PER_TASK") is not None:
        return
    for step in job.training:
        options = step.srun
        if options is None or options.has("cpus-per-task", "exact", "jobid", "cpu-bind"):
            continue
        yield Hit(
            f"srun does not take --cpus-per-task={cores} from sbatch at {site.name}: each task "
            "gets "
            "one core.",
            "Write `export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK` before srun.",
            step.at,
        )


RULES: tuple[Rule, ...] = (_nodes, _tasks, _per_node, _cores, _gpus, _unshared)
"""Steps inside the job."""
