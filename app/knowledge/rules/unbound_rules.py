"""Rules about ranks that nothing binds to the cores near to their GPUs, or twice."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.script_job import JobStep, ScriptJob
from lumitui.app.knowledge.site_facts.allocation import gpus_of_node, whole_nodes
from lumitui.remote.site.profile import Site

_BINDS_ITSELF = re.compile(r"cpu_affinity|sched_setaffinity|numa_bind|\bpsutil\b.*affinity")
_BINDERS = ("numactl", "taskset", "hwloc-bind")


def _bound_otherwise(job: ScriptJob, step: JobStep) -> bool:
    """Return whether the ranks get their cores from the program, a wrapper or another option."""
    number = job.steps.index(step)
    wrapped = any(
        command.program.rpartition("/")[2] in _BINDERS and command.step in (None, number)
        for command in job.commands
    )
    own = any(_BINDS_ITSELF.search(text) for text in job.files.values())
    named = job.variable("ACCELERATE_CPU_AFFINITY") or job.variable("SLURM_CPU_BIND")
    options = step.srun
    closest = options is not None and options.has("gpu-bind", "distribution", "mem-bind")
    return wrapped or own or named is not None or closest or job.options.has("gpu-bind")


@rule(
    "no-binding",
    "warning",
    "ranks on whole nodes that are not bound to the cores near to their GPUs",
    why="Slurm gives rank i the i-th cores of the node, which are near to another GPU: each copy "
    "between memory and GPU crosses the node.",
    source="LUMI-AI-Guide, 05-multi-gpu-and-node; LUMI user guide, distribution-binding",
)
def _unbound(job: ScriptJob, site: Site) -> Iterator[Hit]:
    gpus = gpus_of_node(job)
    ranks = job.resources.tasks_per_node
    if gpus != site.node.gpus or ranks != gpus or whole_nodes(job, site) is not True:
        return
    cores = [core for own in site.node.cores_of_gpu for core in sorted(own)]
    if not site.node.gpu_cores or cores == sorted(cores):
        return  # Slurm's own order of cores is that of the GPUs: GPU i has the i-th block
    for step in job.training:
        if step.srun is None or step.launcher not in ("srun", "plain"):
            continue
        option = step.srun.get("cpu-bind")
        value = (option.value or "") if option else ""
        if (option and "none" not in value) or _bound_otherwise(job, step):
            continue
        yield Hit(
            (
                "--cpu-bind=none lets each rank run on any core"
                if option
                else "Rank i gets the i-th cores of the node"
            )
            + f", not those near to its GPU: GPU 0 has the cores {site.node.gpu_cores[0]}.",
            f"Give srun --cpu-bind=mask_cpu: with the masks that `lumitui bind {site.name}` "
            "prints.",
            option.at if option else step.at,
            severity="note" if "node.gpu_cores" in site.unverified else None,
        )
