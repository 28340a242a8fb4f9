"""How a job's ranks lie on nodes, GPUs and cores, and what that costs: from the profile. Pure."""

import math
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from lumitui.app.compose.binding import numa_cores, rank_bindings
from lumitui.app.job.launch import Layout, Price
from lumitui.app.job.spec import JobSpec
from lumitui.app.job.strategies import STRATEGIES
from lumitui.remote import walltime
from lumitui.remote.cores import format_cores
from lumitui.remote.errors import InputError
from lumitui.remote.site.container import Container
from lumitui.remote.site.partition import Partition
from lumitui.remote.site.profile import Site

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
_GIB = {"K": 1 / 1048576, "M": 1 / 1024, "G": 1.0, "T": 1024.0, "": 1 / 1024}


@dataclass(frozen=True)
class Launcher:
    """What a launcher's template says of itself in its head comment."""

    name: str
    summary: str
    tasks: str
    """`rank`: a Slurm task a rank; `node`: one a node, which starts the ranks; `one`: in all."""
    binding: str
    """`masks`: by srun; `torchrun`: by its workers; `none`."""
    multi_node: bool


@cache
def launchers() -> dict[str, Launcher]:
    """Return the launchers by name: one for each template in `templates/launchers/`."""
    found = {}
    for path in sorted((TEMPLATES / "launchers").glob("*.sh.j2")):
        head = re.match(r"\{#(.*?)#\}", path.read_text(encoding="utf-8"), re.DOTALL)
        name = path.name.removesuffix(".sh.j2")
        found[name] = Launcher(name, **yaml.safe_load(head[1] if head else "{}"))
    return found


def partition_of(spec: JobSpec, site: Site) -> Partition:
    """Return the partition the job asks for.

    Raises:
        InputError: the site has none of that name.
    """
    if spec.partition not in site.partitions:
        raise InputError(
            f"{site.name} has no partition {spec.partition!r}.",
            f"It has {', '.join(site.partitions)}.",
        )
    return site.partitions[spec.partition]


def launcher_of(spec: JobSpec) -> Launcher:
    """Return the job's launcher.

    Raises:
        InputError: there is none of that name.
    """
    if spec.launcher not in launchers():
        raise InputError(
            f"There is no launcher {spec.launcher!r}.", f"Known are {', '.join(launchers())}."
        )
    return launchers()[spec.launcher]


def container_of(spec: JobSpec, site: Site) -> Container | None:
    """Return the container generation the job runs in, as it is for the job's image.

    None for no container.

    Raises:
        InputError: the site has no such generation.
    """
    name = spec.container.generation or site.default_container
    wanted = spec.container.image or spec.container.binds or spec.container.venv
    if name is None and wanted and not spec.container.none:
        raise InputError(
            f"{site.name} has no containers, so that `container:` would be left out.",
            "Remove it, or give the profile a container generation.",
        )
    if spec.container.none or name is None:
        return None
    if name not in site.containers:
        known = ", ".join(site.containers) or "none"
        raise InputError(f"{site.name} has no container generation {name!r}.", f"It has {known}.")
    container = site.containers[name]
    for variant in container.variants:
        if re.search(variant.matches, spec.container.image or container.image):
            update = variant.model_dump(exclude={"matches"}, exclude_none=True)
            return container.model_copy(update=update)
    return container


def layout_of(spec: JobSpec, site: Site) -> Layout:
    """Return how the job's ranks lie on nodes, GPUs and cores.

    Raises:
        InputError: more GPUs than a node has, or masks asked for on shared nodes.
    """
    partition, launcher = partition_of(spec, site), launcher_of(spec)
    gpus = spec.gpus_per_node or (1 if launcher.tasks == "one" else site.node.gpus)
    if STRATEGIES[spec.strategy].single_rank and spec.gpus_per_node is None:
        gpus = 1
    if gpus > site.node.gpus:
        raise InputError(
            f"gpus_per_node: {gpus} is more than the {site.node.gpus} of a node of {site.name}.",
            f"Ask for 1 to {site.node.gpus}, and for more nodes.",
        )
    if spec.nodes > 1 and not launcher.multi_node:
        raise InputError(
            f"The launcher {launcher.name} starts ranks on one node only, not on {spec.nodes}.",
            "Use `launcher: srun`.",
        )
    if spec.nodes * gpus > 1 and (STRATEGIES[spec.strategy].single_rank or launcher.tasks == "one"):
        raise InputError(
            f"One rank cannot use {spec.nodes} nodes x {gpus} GPUs.",
            "Set `gpus_per_node: 1` and `nodes: 1`, or another strategy and launcher.",
        )
    whole = partition.allocation == "node" or spec.exclusive
    if spec.binding == "masks" and not whole:
        raise InputError(
            f"Masks on {spec.partition} would be wrong: on shared nodes Slurm chooses the cores.",
            "Use a partition of whole nodes, `exclusive: true`, or `binding: auto`.",
        )
    if spec.binding == "masks" and launcher.binding != "masks":
        raise InputError(
            f"The launcher {launcher.name} cannot use masks: they would hold all its ranks "
            "on the first one's cores.",
            "Use `launcher: srun`, or `binding: auto`.",
        )
    ranks = gpus
    tasks = ranks if launcher.tasks == "rank" else 1
    cpus = spec.cpus_per_task or needed_cores(spec, site, ranks) // tasks
    masks: tuple[str, ...] = ()
    cores: tuple[str, ...] = ()
    exact = True
    unplanned = _unplanned(spec, site, launcher, whole)
    if not unplanned and launcher.binding == "masks":
        bound = rank_bindings(site.node, ranks)
        masks = tuple(item.mask for item in bound)
        cores = tuple(item.cores for item in bound)
    elif not unplanned:
        if torchrun_binding(spec, site) == "numa":
            cores, exact = numa_cores(site.node, ranks), False
        elif cpus == len(site.node.usable_cores):
            cores = (format_cores(site.node.usable_cores),) * ranks
        else:
            unplanned = "torchrun binds no rank here, and Slurm chooses the cores of each node"
    return Layout(spec.nodes, ranks, tasks, cpus, gpus, whole, masks, cores, exact, unplanned)


def needed_cores(spec: JobSpec, site: Site, ranks: int) -> int:
    """Return how many cores of a node its `ranks` need.

    A launcher that is one task a node gets all of a whole node: with fewer its step has the job's
    first cores, and torchrun finds none beside GPUs whose cores are others.
    """
    whole = partition_of(spec, site).allocation == "node" or spec.exclusive
    if whole and launcher_of(spec).tasks == "node":
        return len(site.node.usable_cores)
    return site.cores_per_gpu * ranks


def _unplanned(spec: JobSpec, site: Site, launcher: Launcher, whole: bool) -> str:
    """Return why no rank is promised any cores; "" where they can be."""
    if spec.binding == "none":
        return "the job file says `binding: none`"
    if not site.node.gpu_cores:
        return "the profile does not know which cores are nearest to each GPU"
    if not whole:
        return "nodes are shared, and Slurm chooses the cores"
    if launcher.binding == "none":
        return f"the launcher {launcher.name} binds nothing"
    if launcher.binding == "torchrun" and torchrun_binding(spec, site) == "script":
        return "the training script chooses its cores itself, after the probe"
    return ""


def price_of(spec: JobSpec, site: Site) -> Price:
    """Return what the site bills for the job if it runs to its time limit."""
    partition, layout = partition_of(spec, site), layout_of(spec, site)
    cores = layout.cpus_per_task * layout.tasks_per_node
    memory = memory_gib(spec, site, layout)
    gpus = layout.gpus_per_node
    if spec.exclusive:
        cores, memory, gpus = len(site.node.usable_cores), site.node.memory_gib, site.node.gpus
    billing = partition.billing
    if billing.kind == "node":
        rate = billing.per_node_hour
    elif billing.kind == "slice":
        slices = max(
            math.ceil(cores / billing.cores),
            math.ceil(memory / billing.memory_gib),
            math.ceil(gpus / billing.gpus),
        )
        rate = slices * billing.per_slice_hour
    else:
        rate = (
            cores * billing.per_core_hour
            + memory * billing.per_gib_hour
            + gpus * billing.per_gpu_hour
        )
    per_hour = rate * spec.nodes
    hours = walltime.seconds_of(spec.time) / 3600
    return Price(round(per_hour * hours, 3), site.billing_unit, per_hour)


def torchrun_binding(spec: JobSpec, site: Site) -> str:
    """Return how torchrun's workers get their cores in this job: `numa`, `script` or `none`."""
    container = container_of(spec, site)
    way = container.torchrun_binding if container else site.torchrun_binding
    whole = site.partitions[spec.partition].allocation == "node" or spec.exclusive
    return way if whole and spec.binding != "none" else "none"


def stop_signal(spec: JobSpec, site: Site, wanted: str | None) -> str | None:
    """Return sbatch's `--signal` of this job: `wanted`, or SIGTERM in its place.

    A torchrun that cannot be told which signals to pass on dies of SIGUSR1; SIGTERM it passes on
    in every version.
    """
    launcher = launcher_of(spec)
    if launcher.tasks == "one":
        return None  # Slurm signals steps, and there is none
    if wanted is None or launcher.binding != "torchrun":
        return wanted
    container = container_of(spec, site)
    if container.torchrun_signals if container else site.torchrun_signals:
        return wanted
    return f"TERM@{wanted.partition('@')[2]}"


def memory_options(spec: JobSpec, site: Site, layout: Layout) -> list[str]:
    """Return the job's memory as #SBATCH options; [] where the site decides."""
    if spec.memory:
        return [f"--mem={spec.memory}"]
    if spec.exclusive and site.memory_per_node:
        return [f"--mem={site.memory_per_node}"]
    if layout.tasks_per_node == layout.gpus_per_node and site.memory_per_gpu:
        return [f"--mem-per-gpu={site.memory_per_gpu}"]
    if layout.gpus_per_node == site.node.gpus and site.memory_per_node:
        return [f"--mem={site.memory_per_node}"]
    return [f"--mem-per-gpu={site.memory_per_gpu}"] if site.memory_per_gpu else []


def memory_gib(spec: JobSpec, site: Site, layout: Layout) -> float:
    """Return the memory a node that `memory_options` asks for, in GiB; 0 where the site decides.

    `--mem=0` is all memory of a node (sbatch(1)).
    """
    for option in memory_options(spec, site, layout):
        match = re.match(r"^(--mem|--mem-per-gpu)=(\d+)([KMGT]?)$", option)
        if match:
            if int(match[2]) == 0:
                return site.node.memory_gib
            share = layout.gpus_per_node if match[1] == "--mem-per-gpu" else 1
            return int(match[2]) * _GIB[match[3]] * share
    return 0.0
