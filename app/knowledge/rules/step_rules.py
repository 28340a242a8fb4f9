"""Rules about what a step asks for beyond what the job has."""

import math
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import some
from lumitui.app.knowledge.script_job import CommandOptions, ScriptJob
from lumitui.app.knowledge.site_facts.allocation import whole_nodes
from lumitui.remote.site.profile import Site


def _steps(job: ScriptJob) -> Iterator[CommandOptions]:
    """Yield srun's options of each step that runs in this job's own allocation."""
    for step in job.steps:
        if step.srun is not None and not step.srun.has(
            "jobid", "overlap", "het-group", "pack-group"
        ):
            yield step.srun


def _ranges(job: ScriptJob) -> bool:
    """Return whether the job's number of nodes is open, or not given with a number."""
    option = job.options.get("nodes")
    if option is None:
        return job.options.has("ntasks")
    return not (option.value or "").isdecimal()


@rule(
    "step-tasks",
    "error",
    "a step with more tasks than the job has cores for",
    why="srun refuses the step or waits forever: `More processors requested than permitted`. "
    "If it starts, its ranks share cores and GPUs.",
    source="srun(1) --ntasks",
)
def _tasks(job: ScriptJob, site: Site) -> Iterator[Hit]:
    each, cores = job.tasks_per_node, job.resources.cpus_per_task or 1
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
    "srun-cores",
    "warning",
    "srun without the cores that sbatch requested",
    why="Since Slurm 22.05 srun does not take --cpus-per-task from sbatch: each task gets one "
    "core, and all its threads and data loaders share it.",
    source="Slurm 22.05, RELEASE_NOTES; csc-user-guide pull request 1632",
)
def _unshared(job: ScriptJob, site: Site) -> Iterator[Hit]:
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
            "gets one core.",
            "Write `export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK` before srun.",
            step.at,
        )
