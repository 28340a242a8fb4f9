"""Which cores each rank gets: masks derived from a site's core lists."""

from dataclasses import dataclass

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
            f"{ranks} ranks do not fit a node with {node.device.some(node.gpus)}.",
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

    torchrun's `--numa-binding=exclusive` splits a domain among its GPUs, so a rank's cores are in
    this list (docs.pytorch.org, elastic/numa).
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
