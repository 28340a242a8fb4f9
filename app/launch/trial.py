"""Turns a job into a short trial on one node, so that a mistake costs little. Pure."""

from typing import Any

from lumitui.app.job import grid
from lumitui.app.job.setting import with_argument
from lumitui.app.job.spec import JobSpec, changed
from lumitui.app.job.stop_lead import lead_of
from lumitui.app.launch.placement import partition_of, placement_of
from lumitui.remote.site import walltime
from lumitui.remote.site.partition import Partition
from lumitui.remote.site.profile import Site

SECONDS = 600
"""The time limit of a trial: a container starts in a minute, a model compiles in a few."""
STEPS = "2"
"""The steps of a bundled trainer: the second has warm caches and a complete exchange."""


def trial_of(spec: JobSpec, site: Site) -> JobSpec:
    """Return a trial of `spec` on one node, in the site's partition for trials if it has one.

    The trial keeps ranks per node, batch per rank, image, data and environment. For a grid, it is a
    trial of the first run.

    Raises:
        InputError: the site has no such partition.
    """
    cell = grid.cells(spec)[0].spec
    name, partition = _partition(cell, site)
    changes: dict[str, Any] = {
        "name": f"{cell.name[:96]}-try",
        "partition": name,
        "nodes": 1,
        "time": _time(cell, partition),
        "chain": 1,
        "relaunch": 0,
        "after": None,
        # Otherwise a shared partition would have no masks, and the proof would not apply.
        "exclusive": cell.exclusive
        or (placement_of(cell, site).whole_nodes and partition.allocation == "shared"),
    }
    if (lead_of(cell) or 0) >= walltime.seconds_of(changes["time"]) / 2:
        changes["signal"] = None  # it would come right at the start
    if cell.trainer:
        changes["args"] = list(with_argument(cell.args, "--steps", STEPS))
    return changed(cell, changes, "the trial")


def _partition(spec: JobSpec, site: Site) -> tuple[str, Partition]:
    """Return the first partition for trials that accepts a node of the job, or the job's own."""
    gpus = spec.gpus_per_node or site.node.gpus
    for name, partition in site.partitions.items():
        most = partition.max_gpus_per_node or gpus
        if (
            partition.trials
            and (partition.min_gpus or 0) <= gpus <= most
            and not partition.too_small(1, gpus)
        ):
            return name, partition
    return spec.partition, partition_of(spec, site)


def _time(spec: JobSpec, partition: Partition) -> str:
    limits = (spec.time, partition.max_time_for(1))
    seconds = min(SECONDS, *map(walltime.seconds_of, limits))
    return f"00:{seconds // 60:02d}:{seconds % 60:02d}"
