"""Rules about the cores of ranks: lists of masks at srun, and ranks that nothing binds."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.masks import Bind, MaskMistake, Starter, mistakes, read_bind
from lumitui.app.knowledge.rule import Hit, Rule, rule
from lumitui.app.knowledge.rules.phrases import removal
from lumitui.app.knowledge.script_job import JobStep, Option, ScriptJob
from lumitui.app.knowledge.site_facts.allocation import gpus_of_node, whole_nodes
from lumitui.remote.site.finding import Severity
from lumitui.remote.site.profile import Site

_WORKERS = ("torchrun", "accelerate", "deepspeed")
"""Launchers whose one task starts all ranks of a node."""
_SOURCE = "srun(1) --cpu-bind; the site's profile, node.gpu_cores"


def _binds(job: ScriptJob, name: str = "cpu-bind") -> Iterator[tuple[JobStep, Option, Bind]]:
    """Yield each list of masks or cores at srun that can be read."""
    for step in job.steps:
        option = step.srun.get(name) if step.srun else None
        bind = read_bind(option.value or "") if option else None
        if option is not None and bind is not None:
            yield step, option, bind


def _tasks(job: ScriptJob, step: JobStep) -> int:
    """Return the tasks of a node that a step starts."""
    options = step.srun
    total = options.number("ntasks") if options else None
    each = options.number("ntasks-per-node") if options else None
    if total is not None:
        return -(-total // job.nodes)
    return each or job.tasks_per_node


def _judged(job: ScriptJob, site: Site) -> Iterator[tuple[Option, MaskMistake]]:
    for name in ("cpu-bind", "gpu-bind"):
        for step, option, bind in _binds(job, name):
            tasks, workers = _tasks(job, step), step.launcher in _WORKERS
            if workers and tasks > 1:
                continue
            starter: Starter = "torchrun" if workers else "srun"
            found = mistakes(bind, site.node, tasks=tasks, starter=starter)
            ordered = tasks == gpus_of_node(job) and all(one.id != "mask-empty" for one in found)
            for mistake in found:
                if ordered or mistake.id != "mask-order":
                    yield option, mistake


def _mistake(name: str, severity: Severity, title: str, why: str, source: str = _SOURCE) -> Rule:
    """Return the rule about one kind of mistake in a list."""

    def check(job: ScriptJob, site: Site) -> Iterator[Hit]:
        for option, mistake in _judged(job, site):
            if mistake.id == name:
                yield Hit(mistake.message, mistake.do, option.at, severity=mistake.severity)

    return Rule(name, severity, title, why, source, check=check)


@rule(
    "mask-shared",
    "error",
    "masks on shared nodes",
    why="srun refuses the step if the masks name cores that the job does not have: `CPU binding "
    "outside of job step allocation`.",
    source="LUMI user guide, distribution-binding; lumi-apptainer-bench, GATES_20260807_RESULTS",
)
def _shared(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if whole_nodes(job, site) is not False:
        return
    for _, option, bind in _binds(job):
        if not bind.of_gpus:
            whole = [name for name, one in site.partitions.items() if one.allocation == "node"]
            memory = f" and --mem={site.memory_per_node}" if site.memory_per_node else ""
            yield Hit(
                "The masks name cores by their numbers, and on shared nodes Slurm gives the job "
                "any cores.",
                f"Leave out --cpu-bind, or take whole nodes: {whole[0] + ', or ' if whole else ''}"
                f"--exclusive{memory}.",
                option.at,
                removal(job, option),
            )


mask_unreadable = _mistake(
    "mask-unreadable",
    "error",
    "a mask that is not a hexadecimal number",
    "srun refuses the step: `Failed to validate number`.",
    "srun(1) --cpu-bind; tried with srun of Slurm 24.11",
)
mask_empty = _mistake(
    "mask-empty",
    "error",
    "a mask without a core",
    "srun refuses the step, as the task would have no core to run on.",
)
mask_outside = _mistake(
    "mask-outside",
    "error",
    "a mask for another kind of node",
    "srun refuses the step: the cores do not exist on these nodes.",
)
mask_reserved = _mistake(
    "mask-reserved",
    "error",
    "a mask with cores that the system keeps for itself",
    "srun refuses the step: `CPU binding outside of job step allocation`. On LUMI, masks from "
    "before August 2023 have such cores: `ff` has become `fe`.",
    "LUMI-training-materials User-Updates/Update-202308, lumig-lownoise",
)
mask_count = _mistake(
    "mask-count",
    "warning",
    "a different number of masks than tasks on a node",
    "Slurm starts again at the first mask, so that tasks share cores.",
    "srun(1) --cpu-bind; LUMI user guide, distribution-binding",
)
mask_overlap = _mistake(
    "mask-overlap",
    "warning",
    "masks that share cores",
    "Two ranks take turns on the same cores, and all others wait for them in each step.",
)
mask_order = _mistake(
    "mask-order",
    "warning",
    "masks in a different order from the GPUs",
    "Rank i uses GPU i, but its cores are near another one: each copy between memory and GPU "
    "crosses the node.",
    "LUMI user guide, lumig-job and distribution-binding",
)
mask_torchrun = _mistake(
    "mask-torchrun",
    "error",
    "masks for ranks that torchrun starts",
    "srun starts one torchrun on each node, and binds it to the first mask: all its workers share "
    "those cores.",
    "derived from srun(1) --cpu-bind; pytorch, torch/numa/binding.py",
)
gpu_outside = _mistake(
    "gpu-outside",
    "error",
    "a GPU that the node does not have",
    "srun refuses the step.",
    "srun(1) --gpu-bind; the site's profile, node.gpus",
)
gpu_overlap = _mistake(
    "gpu-overlap",
    "warning",
    "one GPU for several tasks",
    "The ranks share the GPU's memory and time, and NCCL refuses two ranks on one GPU: "
    "`Duplicate GPU detected`.",
    "srun(1) --gpu-bind; NVIDIA/nccl, src/init.cc",
)


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
    "ranks on whole nodes that are not bound to the cores near their GPUs",
    why="Slurm gives rank i the i-th cores of the node, which are near another GPU: each copy "
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
