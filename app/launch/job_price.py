"""A job's price, and its request for memory, GPUs and disk, on which the price depends. Pure."""

import math
import re

from lumitui.app.job.launch import Price, RankLayout
from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.placement import Placement, placement_of
from lumitui.remote.site import walltime
from lumitui.remote.site.partition import Billing
from lumitui.remote.site.profile import Site

_GIB = {"K": 1 / 1048576, "M": 1 / 1024, "G": 1.0, "T": 1024.0, "": 1 / 1024}


def price_of(place: Placement, layout: RankLayout) -> Price:
    """Return the price if the job runs to its time limit, or a chain through all its limits."""
    spec, site, billing = place.spec, place.site, place.partition.billing
    node = site.node
    if billing.kind == "sum" and spec.nodes >= (billing.whole_nodes_from or math.inf):
        cores, memory, gpus = len(node.usable_cores), float(node.memory_gib), node.gpus
    elif place.whole_nodes:
        # AllocTRES of such a job, whatever it requests, has all cores and GPUs of its nodes.
        cores, gpus = len(node.usable_cores), node.gpus
        memory = memory_gib(place, layout, gpus) or node.memory_gib
    else:
        cores, gpus = layout.cpus_per_task * layout.tasks_per_node, layout.gpus_per_node
        memory = memory_gib(place, layout)
    per_hour = spec.nodes * node_rate(billing, cores, memory, gpus, spec.local_disk or 0)
    minutes = math.ceil(walltime.seconds_of(spec.time) / 60)  # Slurm rounds up (sbatch(1), -t)
    hours = spec.chain * minutes / 60
    # Upwards, because it is a limit; without the factor, 0.1 x 3 would be 0.301.
    amount = math.ceil(per_hour * hours * 1000 * (1 - 1e-12)) / 1000
    return Price(amount, site.billing_unit, per_hour)


def node_rate(billing: Billing, cores: int, memory: float, gpus: int, disk: int = 0) -> float:
    """Return the hourly price of this much of a node; `memory` and `disk` in GiB."""
    if billing.kind == "node":
        return billing.per_node_hour
    if billing.kind == "slice":
        slices = max(
            math.ceil(cores / billing.cores),
            math.ceil(memory / billing.memory_gib),
            math.ceil(gpus / billing.gpus),
        )
        return slices * billing.per_slice_hour
    return (
        cores * billing.per_core_hour
        + memory * billing.per_gib_hour
        + gpus * billing.per_gpu_hour
        + disk * billing.per_disk_gib_hour
    )


def held_gpus(spec: JobSpec, site: Site, layout: RankLayout) -> int:
    """Return how many GPUs a job blocks through its GPUs, cores or memory.

    A whole node counts with all GPUs. A site without GPUs counts ranks on CPU cores instead.

    Raises:
        InputError: the site has no such partition or launcher.
    """
    place, node = placement_of(spec, site), site.node
    shares = [layout.gpus_per_node / node.gpus]
    if spec.cpus_per_task:
        cores = layout.cpus_per_task * layout.tasks_per_node
        shares.append(cores / len(node.usable_cores))
    if spec.memory:
        shares.append(memory_gib(place, layout) / node.memory_gib)
    share = 1.0 if layout.whole_nodes else min(1.0, max(shares))
    return layout.nodes * math.ceil(round(share * node.gpus, 6))


def device_options(place: Placement, layout: RankLayout) -> list[str]:
    """Return the job's GPUs and its part of each node's disk as #SBATCH options.

    If the site requests GPUs with `--gres`, both are in one option, since a second `--gres` would
    replace the first (slurm, src/common/slurm_opt.c, `arg_set_gres`).
    """
    site, gib = place.site, place.spec.local_disk
    request = place.partition.gpu_request or site.gpu_request
    options = [request.format(gpus=layout.gpus_per_node)] if request else []
    if gib is None or site.local_disk is None:
        return options
    disk = site.local_disk.request.format(gib=gib)
    if options and options[0].startswith("--gres="):
        return [f"{options[0]},{disk}"]
    return [*options, f"--gres={disk}"]


def memory_options(place: Placement, layout: RankLayout) -> list[str]:
    """Return the job's memory as #SBATCH options; [] if the site decides."""
    spec, site = place.spec, place.site
    if not site.memory_option:
        return []
    if spec.memory:
        return [f"--mem={spec.memory}"]
    if spec.exclusive and site.memory_per_node:
        return [f"--mem={site.memory_per_node}"]
    if layout.tasks_per_node == layout.gpus_per_node and site.memory_per_gpu:
        return [f"--mem-per-gpu={site.memory_per_gpu}"]
    if layout.gpus_per_node == site.node.gpus and site.memory_per_node:
        return [f"--mem={site.memory_per_node}"]
    return [f"--mem-per-gpu={site.memory_per_gpu}"] if site.memory_per_gpu else []


def memory_gib(place: Placement, layout: RankLayout, gpus: int | None = None) -> float:
    """Return the memory per node that `memory_options` requests, in GiB; 0: the site decides.

    `--mem=0` requests all memory of a node (sbatch(1)). `gpus`: the GPUs per node that
    `--mem-per-gpu` counts. [default: those of the layout]
    """
    for option in memory_options(place, layout):
        match = re.match(r"^(--mem|--mem-per-gpu)=(\d+)([KMGT]?)$", option)
        if match:
            if int(match[2]) == 0:
                return place.site.node.memory_gib
            each = layout.gpus_per_node if gpus is None else gpus
            share = each if match[1] == "--mem-per-gpu" else 1
            return int(match[2]) * _GIB[match[3]] * share
    return 0.0
