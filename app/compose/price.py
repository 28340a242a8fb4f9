"""What a job is billed, and the memory it asks for, which the bill depends on. Pure."""

import math
import re

from lumitui.app.compose.placement import Placement
from lumitui.app.job.launch import Layout, Price
from lumitui.remote import walltime

_GIB = {"K": 1 / 1048576, "M": 1 / 1024, "G": 1.0, "T": 1024.0, "": 1 / 1024}


def price_of(place: Placement, layout: Layout) -> Price:
    """Return what the site bills for the job if it runs to its time limit, each one it may take."""
    spec, site = place.spec, place.site
    cores = layout.cpus_per_task * layout.tasks_per_node
    memory = memory_gib(place, layout)
    gpus = layout.gpus_per_node
    if spec.exclusive:
        cores, memory, gpus = len(site.node.usable_cores), site.node.memory_gib, site.node.gpus
    billing = place.partition.billing
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
    hours = spec.chain * walltime.seconds_of(spec.time) / 3600
    return Price(round(per_hour * hours, 3), site.billing_unit, per_hour)


def memory_options(place: Placement, layout: Layout) -> list[str]:
    """Return the job's memory as #SBATCH options; [] where the site decides."""
    spec, site = place.spec, place.site
    if spec.memory:
        return [f"--mem={spec.memory}"]
    if spec.exclusive and site.memory_per_node:
        return [f"--mem={site.memory_per_node}"]
    if layout.tasks_per_node == layout.gpus_per_node and site.memory_per_gpu:
        return [f"--mem-per-gpu={site.memory_per_gpu}"]
    if layout.gpus_per_node == site.node.gpus and site.memory_per_node:
        return [f"--mem={site.memory_per_node}"]
    return [f"--mem-per-gpu={site.memory_per_gpu}"] if site.memory_per_gpu else []


def memory_gib(place: Placement, layout: Layout) -> float:
    """Return the memory per node that `memory_options` asks for, in GiB; 0: the site decides.

    `--mem=0` asks for all memory of a node (sbatch(1)).
    """
    for option in memory_options(place, layout):
        match = re.match(r"^(--mem|--mem-per-gpu)=(\d+)([KMGT]?)$", option)
        if match:
            if int(match[2]) == 0:
                return place.site.node.memory_gib
            share = layout.gpus_per_node if match[1] == "--mem-per-gpu" else 1
            return int(match[2]) * _GIB[match[3]] * share
    return 0.0
