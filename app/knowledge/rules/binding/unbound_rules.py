"""Rules about ranks that nothing binds to the cores near to their GPUs, or twice."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.model.job import Job
from lumitui.app.knowledge.model.steps import Step
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.app.knowledge.site_facts.allocation import gpus_of_node, whole_nodes
from lumitui.app.knowledge.site_facts.process_counts import starts_one_rank_each
from lumitui.app.knowledge.site_facts.site_places import generation_of
from lumitui.remote.site.container import Container
from lumitui.remote.site.node import NodeShape
from lumitui.remote.site.profile import Site

_BINDS_ITSELF = re.compile(r"cpu_affinity|sched_setaffinity|numa_bind|\bpsutil\b.*affinity")
_BINDERS = ("numactl", "taskset", "hwloc-bind")


def _in_order(node: NodeShape) -> bool:
    """Return whether Slurm's own order of cores is that of the GPUs: GPU i has the i-th block."""
    cores = [core for own in node.cores_of_gpu for core in sorted(own)]
    return cores == sorted(cores)


def _bound_otherwise(job: Job, step: Step) -> bool:
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
def _unbound(job: Job, site: Site) -> Iterator[Hit]:
    gpus = gpus_of_node(job)
    ranks = job.resources.tasks_per_node
    if gpus != site.node.gpus or ranks != gpus or whole_nodes(job, site) is not True:
        return
    if not site.node.gpu_cores or _in_order(site.node):
        return
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


@rule(
    "bind-by-rank",
    "warning",
    "--cpu-bind=rank",
    why="It is obsolete: srun of Slurm 25.05 says `Rank binding is obsolete`, ignores it, and the "
    "ranks get the cores of the site's own order.",
    source="Slurm 25.05, src/common/slurm_resource_info.c",
)
def _by_rank(job: Job, site: Site) -> Iterator[Hit]:
    for step in job.steps:
        option = step.srun.get("cpu-bind") if step.srun else None
        if option is not None and "rank" in (option.value or "").split(","):
            yield Hit(
                f"--cpu-bind={option.value} binds no rank: srun ignores it from Slurm 25.05 on.",
                "Leave it out, or name the cores with mask_cpu: or map_cpu:.",
                option.at,
            )


@rule(
    "torchrun-unbound",
    "note",
    "ranks of torchrun that are not bound to cores",
    why="All workers of a node run on any of its cores, also on those far from their GPU.",
    source="pytorch, torch/numa/binding.py: --numa-binding; LUMI-AI-Guide, 05-multi-gpu-and-node",
)
def _workers(job: Job, site: Site) -> Iterator[Hit]:
    if gpus_of_node(job) != site.node.gpus or whole_nodes(job, site) is not True:
        return
    for step in job.training:
        if step.launcher != "torchrun" or step.launcher_options.has("numa-binding"):
            continue
        if starts_one_rank_each(job, step):
            continue  # srun binds the ranks, as its tasks
        home = _home(job, site)
        if home is None or home.torchrun_binding != "numa" or _bound_otherwise(job, step):
            continue
        yield Hit(
            "torchrun binds its workers to no cores here.",
            "Add --numa-binding=exclusive to torchrun.",
            step.at,
        )


def _home(job: Job, site: Site) -> Container | None:
    """Return the generation that the job's images belong to; None: not known."""
    homes = [found[1] for image in job.images if (found := generation_of(image, site))]
    return homes[0] if homes else None


@rule(
    "numa-binding-shared",
    "error",
    "--numa-binding on shared nodes",
    why="torchrun ends with `Must bind to a non-empty set of CPU indices` where the job has no "
    "core "
    "near to one of its GPUs.",
    source="pytorch, torch/numa/binding.py",
)
def _numa_shared(job: Job, site: Site) -> Iterator[Hit]:
    if whole_nodes(job, site) is not False:
        return
    for step in job.steps:
        option = step.launcher_options.get("numa-binding")
        if option is not None:
            yield Hit(
                "--numa-binding needs cores near to each GPU, and on shared nodes Slurm gives "
                "the job "
                "any cores.",
                "Leave out --numa-binding, or take whole nodes.",
                option.at,
            )


@rule(
    "numa-binding-image",
    "error",
    "--numa-binding in an image whose torchrun does not know it",
    why="torchrun ends at once: `unrecognized arguments: --numa-binding`. It came with torch 2.9.",
    source="pytorch, torch/distributed/run.py; the site's profile, containers",
)
def _numa_image(job: Job, site: Site) -> Iterator[Hit]:
    home = _home(job, site)
    if home is None or home.torchrun_binding != "script":
        return
    for step in job.steps:
        option = step.launcher_options.get("numa-binding")
        if option is not None:
            yield Hit(
                "torchrun of this image is older than torch 2.9 and knows no --numa-binding.",
                "Leave it out, or take a later image.",
                option.at,
            )


RULES: tuple[Rule, ...] = (_unbound, _by_rank, _workers, _numa_shared, _numa_image)
"""Ranks without their cores."""
