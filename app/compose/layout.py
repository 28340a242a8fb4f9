"""How a job's ranks lie on nodes, GPUs and cores: from the job file and the profile. Pure."""

from dataclasses import replace

from lumitui.app.compose.binding import numa_cores, rank_bindings
from lumitui.app.compose.container import container_of
from lumitui.app.compose.launchers import Launcher, launcher_of
from lumitui.app.job.launch import Layout
from lumitui.app.job.spec import JobSpec
from lumitui.app.job.strategies import STRATEGIES
from lumitui.remote.cores import format_cores
from lumitui.remote.errors import InputError
from lumitui.remote.site.partition import Partition
from lumitui.remote.site.profile import Site


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


def layout_of(spec: JobSpec, site: Site) -> Layout:
    """Return how the job's ranks lie on nodes, GPUs and cores.

    Raises:
        InputError: more GPUs than a node has, more ranks than the launcher or the strategy can
            start, or masks where they would be wrong.
    """
    whole, launcher = _has_whole_nodes(spec, site), launcher_of(spec)
    gpus = _gpus_per_node(spec, site, launcher)
    _check_masks(spec, launcher, whole)
    tasks = gpus if launcher.tasks == "rank" else 1
    cpus = spec.cpus_per_task or needed_cores(spec, site, gpus) // tasks
    return _with_cores(Layout(spec.nodes, gpus, tasks, cpus, gpus, whole), spec, site)


def needed_cores(spec: JobSpec, site: Site, ranks: int) -> int:
    """Return how many cores of a node its `ranks` need.

    A launcher that is one task a node gets all cores of a whole node: with fewer, its step has
    the job's first cores, and torchrun finds none beside GPUs whose cores are others.
    """
    if _has_whole_nodes(spec, site) and launcher_of(spec).tasks == "node":
        return len(site.node.usable_cores)
    return site.cores_per_gpu * ranks


def torchrun_binding(spec: JobSpec, site: Site) -> str:
    """Return how torchrun's workers get their cores in this job: `numa`, `script` or `none`."""
    if spec.binding == "none" or not _has_whole_nodes(spec, site):
        return "none"
    container = container_of(spec, site)
    return container.torchrun_binding if container else site.torchrun_binding


def _has_whole_nodes(spec: JobSpec, site: Site) -> bool:
    return partition_of(spec, site).allocation == "node" or spec.exclusive


def _gpus_per_node(spec: JobSpec, site: Site, launcher: Launcher) -> int:
    """Return the GPUs that the job uses on each node: one for each rank there."""
    single = STRATEGIES[spec.strategy].single_rank
    gpus = spec.gpus_per_node or (1 if single or launcher.tasks == "one" else site.node.gpus)
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
    if spec.nodes * gpus > 1 and (single or launcher.tasks == "one"):
        raise InputError(
            f"One rank cannot use {spec.nodes} nodes x {gpus} GPUs.",
            "Set `gpus_per_node: 1` and `nodes: 1`, or another strategy and launcher.",
        )
    return gpus


def _check_masks(spec: JobSpec, launcher: Launcher, whole: bool) -> None:
    if spec.binding != "masks":
        return
    if not whole:
        raise InputError(
            f"Masks on {spec.partition} would be wrong: on shared nodes Slurm chooses the cores.",
            "Use a partition of whole nodes, `exclusive: true`, or `binding: auto`.",
        )
    if launcher.binding != "masks":
        raise InputError(
            f"The launcher {launcher.name} cannot use masks: they would hold all its ranks "
            "on the first one's cores.",
            "Use `launcher: srun`, or `binding: auto`.",
        )


def _with_cores(layout: Layout, spec: JobSpec, site: Site) -> Layout:
    """Return `layout` with the cores that are planned for each rank, or why none are."""
    launcher, node, ranks = launcher_of(spec), site.node, layout.ranks_per_node
    unplanned = _unplanned(layout, spec, site, launcher)
    if unplanned:
        return replace(layout, unplanned=unplanned)
    if launcher.binding == "masks":
        bound = rank_bindings(node, ranks)
        masks = tuple(item.mask for item in bound)
        return replace(layout, masks=masks, planned_cores=tuple(item.cores for item in bound))
    if torchrun_binding(spec, site) == "numa":
        return replace(layout, planned_cores=numa_cores(node, ranks), exact=False)
    return replace(layout, planned_cores=(format_cores(node.usable_cores),) * ranks)


def _unplanned(layout: Layout, spec: JobSpec, site: Site, launcher: Launcher) -> str:
    """Return why no cores are promised to any rank; "" where they can be."""
    if spec.binding == "none":
        return "the job file says `binding: none`"
    if not site.node.gpu_cores:
        return "the profile does not know which cores are nearest to each GPU"
    if not layout.whole_nodes:
        return "nodes are shared, and Slurm chooses the cores"
    if launcher.binding == "none":
        return f"the launcher {launcher.name} binds nothing"
    if launcher.binding == "torchrun":
        binding = torchrun_binding(spec, site)
        if binding == "script":
            return "the training script chooses its cores itself, after the probe"
        if binding == "none" and layout.cpus_per_task != len(site.node.usable_cores):
            return "torchrun binds no rank here, and Slurm chooses the cores of each node"
    return ""
