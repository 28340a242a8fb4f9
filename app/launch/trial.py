"""Turns a job into a short trial on one node, or into one that only holds nodes. Pure."""

from typing import Any

from lumitui.app.job import grid
from lumitui.app.job.setting import with_argument
from lumitui.app.job.spec import JobSpec, changed
from lumitui.app.job.stop_lead import lead_of
from lumitui.app.launch.placement import partition_of, placement_of
from lumitui.remote.site import walltime
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.partition import Partition
from lumitui.remote.site.profile import Site

SECONDS = 600
"""The time limit of a trial: a container starts in a minute, a model compiles in a few."""
_SHORTEST = 300
"""Minimum seconds of a debug job: a container starts in a minute, and the end takes another."""
STEPS = "2"
"""The steps of a bundled trainer: the second has warm caches and a complete exchange."""


def trial_of(spec: JobSpec, site: Site) -> JobSpec:
    """Return a trial of `spec` on one node, in the site's partition for trials if it has one.

    The trial keeps ranks per node, batch per rank, image, data and environment. For a grid, it is a
    trial of the first run.
    """
    cell = grid.cells(spec)[0].spec
    name, partition = _partition(cell, site)
    changes: dict[str, Any] = _without_extras(cell, site, name, partition) | {
        "name": f"{cell.name[:96]}-try",
        "nodes": 1,
        "time": _time(cell, partition),
    }
    if (lead_of(cell) or 0) >= walltime.seconds_of(changes["time"]) / 2:
        changes["signal"] = None  # the signal would come right at the start
    if cell.trainer:
        changes["args"] = list(with_argument(cell.args, "--steps", STEPS))
    return changed(cell, changes, "the trial")


def debug_of(spec: JobSpec, site: Site, seconds: int, idle: int) -> JobSpec:
    """Return a job that holds the nodes of `spec` for `seconds` and runs nothing.

    It ends earlier after `idle` seconds without a shell. It keeps resources, container, environment
    and code. For several runs, it holds the nodes of the first.

    Raises:
        InputError: the site has no such partition or no queue, or one of the times is too short.
    """
    if site.scheduler != "slurm":
        raise InputError(
            f"{site.name} has no queue, so there are no nodes to hold.", "Run the program itself."
        )
    if seconds < _SHORTEST or idle < 60:
        raise InputError(
            "Give a debug job at least five minutes, and at least one minute without a shell.",
            "Give --time 5m or more, and --idle 1m or more.",
        )
    cell = grid.cells(spec)[0].spec
    name, partition = _partition(cell, site, cell.nodes, seconds)
    changes: dict[str, Any] = _without_extras(cell, site, name, partition) | {
        "name": f"{cell.name[:94]}-debug",
        "time": walltime.text_of(seconds),
        "debug": walltime.text_of(idle),
        "signal": None,
        "hang": None,
    }
    return changed(cell, changes, "the debug job")


def _without_extras(spec: JobSpec, site: Site, name: str, partition: Partition) -> dict[str, Any]:
    """Return the changes that make a short job of `spec` in a partition."""
    # Otherwise a shared partition would have no masks, and the proof would not apply.
    whole = placement_of(spec, site).whole_nodes and partition.allocation == "shared"
    return {
        "partition": name,
        "chain": 1,
        "relaunch": 0,
        "after": None,
        "exclusive": spec.exclusive or whole,
    }


def _partition(
    spec: JobSpec, site: Site, nodes: int = 1, seconds: int = 0
) -> tuple[str, Partition]:
    """Return the first partition for trials that accepts the job on `nodes`, or the job's own."""
    gpus = spec.gpus_per_node or site.node.gpus
    for name, partition in site.partitions.items():
        most = partition.max_gpus_per_node or gpus
        if (
            partition.trials
            and (partition.min_gpus or 0) <= gpus * nodes
            and gpus <= most
            and not partition.too_small(nodes, gpus * nodes)
            and seconds <= walltime.seconds_of(partition.max_time_for(nodes))
        ):
            return name, partition
    return spec.partition, partition_of(spec, site)


def _time(spec: JobSpec, partition: Partition) -> str:
    limits = (spec.time, partition.max_time_for(1))
    seconds = min(SECONDS, *map(walltime.seconds_of, limits))
    return f"00:{seconds // 60:02d}:{seconds % 60:02d}"
