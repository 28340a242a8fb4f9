"""Places a job's ranks on nodes, GPUs and cores, which become masks. Pure."""

from dataclasses import dataclass, replace

from lumitui.app.explain.words import count
from lumitui.app.job.launch import SHARED, RankLayout
from lumitui.app.job.strategies import STRATEGIES
from lumitui.app.launch.placement import Placement
from lumitui.remote.site.core_sets import format_cores, mask
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.node import NodeShape


@dataclass(frozen=True)
class RankBinding:
    """One rank of a node: its GPU, NUMA domain and cores."""

    local_rank: int
    numa: int | None
    cores: str
    """As ranges."""
    mask: str
    """In the form of srun's `--cpu-bind=mask_cpu`."""
    bus: str = ""


def rank_bindings(node: NodeShape, ranks: int) -> tuple[RankBinding, ...]:
    """Return the binding of local ranks 0 to `ranks`-1: rank i gets the cores nearest to GPU i.

    Raises:
        InputError: there are more ranks than GPUs, or the profile lacks the GPUs' cores.
    """
    if not 1 <= ranks <= node.gpus:
        raise InputError(
            f"{ranks} ranks do not fit on a node with {node.device.some(node.gpus)}.",
            f"Use 1 to {node.gpus}{'' if node.on_cpu else ': one rank per GPU'}.",
        )
    if not node.gpu_cores:
        raise InputError(
            "The profile does not list the cores nearest to each GPU.",
            "Set `node.gpu_cores` (`lstopo` in a job shows them), or use `binding: none`.",
        )
    return tuple(
        RankBinding(
            local_rank=rank,
            numa=node.gpu_numa[rank] if node.gpu_numa else None,
            cores=format_cores(cores),
            mask=mask(cores, node.cores),
            bus=node.gpu_bus[rank] if node.gpu_bus else "",
        )
        for rank, cores in enumerate(node.cores_of_gpu[:ranks])
    )


def numa_cores(node: NodeShape, ranks: int) -> tuple[str, ...]:
    """Return, for each local rank, those cores of its GPU's NUMA domain that belong to a GPU.

    torchrun's `--numa-binding=exclusive` splits a domain among its GPUs, so a rank's cores are
    among these (docs.pytorch.org, elastic/numa).
    """
    if not node.gpu_numa or not node.gpu_cores:
        return ()
    whole = {
        domain: frozenset().union(
            *(c for c, d in zip(node.cores_of_gpu, node.gpu_numa, strict=True) if d == domain)
        )
        for domain in set(node.gpu_numa)
    }
    return tuple(format_cores(whole[domain]) for domain in node.gpu_numa[:ranks])


def taskset_list(cores: str) -> str:
    """Return ranges of cores in the form of `taskset -c`: two neighbours are `0,1`, not `0-1`.

    Source: util-linux, lib/cpuset.c, `cpulist_create`.
    """
    parts = []
    for part in cores.split(","):
        first, _, last = part.partition("-")
        parts.append(f"{first},{last}" if last and int(last) == int(first) + 1 else part)
    return ",".join(parts)


def layout_of(place: Placement) -> RankLayout:
    """Return the placement of the job's ranks on nodes, GPUs and cores.

    Raises:
        InputError: the job requests more GPUs than a node has, more ranks than the launcher or the
            strategy can start, or masks that would be wrong.
    """
    spec, gpus = place.spec, _gpus_per_node(place)
    _check_masks(place)
    tasks = gpus if place.launcher.tasks in ("rank", "slot") else 1
    cpus = spec.cpus_per_task or needed_cores(place, gpus) // tasks
    layout = RankLayout(spec.nodes, gpus, tasks, cpus, gpus, place.whole_nodes)
    node = place.site.node
    bus = node.gpu_bus[:gpus] if place.whole_nodes and not node.on_cpu else ()
    return _with_cores(replace(layout, on_cpu=node.on_cpu, gpu_bus=bus), place)


def needed_cores(place: Placement, ranks: int) -> int:
    """Return how many cores of a node its `ranks` need.

    A launcher with one task per node gets all cores of a whole node. With fewer, its step would
    have the job's first cores, and torchrun would find no cores near other GPUs.
    """
    site = place.site
    if place.whole_nodes and place.launcher.tasks == "node" and not site.cores_fixed:
        return len(site.node.usable_cores)
    return site.cores_per_gpu * ranks


def _gpus_per_node(place: Placement) -> int:
    """Return the number of GPUs, and so of ranks, per node."""
    spec, site, launcher = place.spec, place.site, place.launcher
    single, gpus = STRATEGIES[spec.strategy].single_rank, place.gpus_per_node
    if gpus > site.node.gpus:
        raise InputError(
            f"gpus_per_node: {gpus} is more than the "
            f"{site.node.device.some(site.node.gpus)} per node at {site.name}.",
            f"Use 1 to {site.node.gpus} per node, and more nodes.",
            field="gpus_per_node",
        )
    if spec.nodes > 1 and not launcher.multi_node:
        raise InputError(
            f"The launcher {launcher.name} starts ranks only on one node, not on {spec.nodes}.",
            "Use `launcher: srun`.",
            field="launcher",
        )
    if spec.nodes * gpus > 1 and (single or launcher.tasks == "one"):
        what = f"strategy {spec.strategy}" if single else f"launcher {launcher.name}"
        raise InputError(
            f"The {what} starts one rank, which cannot use {count(spec.nodes, 'node')} with "
            f"{site.node.device.some(gpus)}{' each' if spec.nodes > 1 else ''}.",
            _a_rank_each(place, single=single),
            field="launcher" if launcher.tasks == "one" else "strategy",
        )
    return gpus


def _a_rank_each(place: Placement, *, single: bool) -> str:
    """Return the hint: how to start a rank per GPU, or how to request one GPU."""
    one = "`gpus_per_node: 1`" + (" and `nodes: 1`" if place.spec.nodes > 1 else "")
    keys = ["`strategy: ddp`"] if single else []
    if place.launcher.tasks == "one":
        keys.insert(0, f"`launcher: {place.site.launchers[0]}`")
    return f"Set {' and '.join(keys)} for a rank on each GPU, or {one} for one rank."


def _check_masks(place: Placement) -> None:
    spec, launcher = place.spec, place.launcher
    if spec.binding != "masks":
        return
    if not place.whole_nodes:
        raise InputError(
            f"Masks on {spec.partition} would be wrong: on shared nodes Slurm chooses the cores.",
            "Use a partition of whole nodes, `exclusive: true`, or `binding: auto`.",
            field="binding",
        )
    if launcher.binding not in ("masks", "wrapper"):
        raise InputError(
            f"The launcher {launcher.name} cannot use masks.",
            "Use `launcher: srun`, or `binding: auto`.",
            field="launcher",
        )


def _with_cores(layout: RankLayout, place: Placement) -> RankLayout:
    """Return `layout` with the planned cores of each rank, or why there are none."""
    node, ranks = place.site.node, layout.ranks_per_node
    unplanned = _unplanned(layout, place)
    if unplanned:
        return replace(layout, unplanned=unplanned)
    if place.launcher.binding in ("masks", "wrapper"):
        bound = rank_bindings(node, ranks)
        masks = tuple(item.mask for item in bound)
        return replace(layout, masks=masks, planned_cores=tuple(item.cores for item in bound))
    if place.torchrun_binding == "numa":
        return replace(layout, planned_cores=numa_cores(node, ranks), exact=False)
    return replace(layout, planned_cores=(format_cores(node.usable_cores),) * ranks)


def _unplanned(layout: RankLayout, place: Placement) -> str:
    """Return why no cores are promised to ranks; "" if they can be."""
    spec, site, launcher = place.spec, place.site, place.launcher
    if spec.binding == "none":
        return "the job file has `binding: none`"
    if not site.node.gpu_cores:
        return site.node.no_gpu_cores
    if not layout.whole_nodes:
        return SHARED
    if launcher.binding == "none":
        return f"the launcher {launcher.name} binds nothing"
    if launcher.binding == "torchrun":
        if place.torchrun_binding == "script":
            return "the training script chooses its cores itself, after the probe"
        all_cores = layout.cpus_per_task == len(site.node.usable_cores)
        if place.torchrun_binding == "none" and not all_cores:
            return "torchrun does not bind ranks here, and Slurm chooses the cores of each node"
    return ""
