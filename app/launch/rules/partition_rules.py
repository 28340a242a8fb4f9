"""The adviser's rules about the limits of a partition: time, nodes, GPUs, and who may use it."""

import math
from collections.abc import Iterator

from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import MOST_LIMITS, JobSpec
from lumitui.app.launch.placement import Placement
from lumitui.app.launch.rules.finding import Finding, Fix, Rule, Severity
from lumitui.remote.site import walltime

_SOURCE = "the site's profile, partitions"


def _time(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec, partition = launch.spec, place.partition
    most = partition.max_time_for(spec.nodes)
    if walltime.seconds_of(spec.time) > walltime.seconds_of(most):
        size = "" if most == partition.max_time else f" a job of {_nodes(spec.nodes)}"
        other = _longer(launch, place)
        clock = most if ":" in most else walltime.text_of(walltime.seconds_of(most))
        yield Finding(
            "time-limit",
            "error",
            f"{spec.time} is more than {spec.partition} allows{size} ({clock}).",
            f"Use {other}, which allows it." if other else _in_parts(spec, most, clock),
            _SOURCE,
            field="partition" if other else "time",
            fix=Fix(f"use {other}", "partition", other)
            if other
            else Fix(f"ask for {clock}", "time", clock),
        )
    elif partition.doubtful_time and walltime.seconds_of(spec.time) > walltime.seconds_of(
        partition.doubtful_time
    ):
        yield Finding(
            "doubtful-time",
            "warning",
            f"{spec.partition} may end jobs at {partition.doubtful_time}: its documents differ.",
            f"Ask for {partition.doubtful_time}, or see `lumitui doctor {place.site.name}`.",
            _SOURCE,
            field="time",
            fix=Fix(f"ask for {partition.doubtful_time}", "time", partition.doubtful_time),
        )


def _longer(launch: Launch, place: Placement) -> str:
    """Return the partition that the job grows to and that allows its time; "": there is none."""
    spec, gpus = launch.spec, _all_gpus(launch)
    for name, partition in place.site.partitions_from(spec.partition):
        limit = walltime.seconds_of(partition.max_time_for(spec.nodes))
        if limit >= walltime.seconds_of(spec.time) and not partition.too_small(spec.nodes, gpus):
            return name
    return ""


def _in_parts(spec: JobSpec, most: str, clock: str) -> str:
    """Return how a training gets its time in several limits."""
    limits = math.ceil(walltime.seconds_of(spec.time) / walltime.seconds_of(most))
    if limits > MOST_LIMITS:
        return f"Ask for {clock} at most."
    return (
        f"Ask for {clock} at most; `chain: {limits}` gives a program that saves and continues as "
        "much in all."
    )


def _most_nodes(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec, partition = launch.spec, place.partition
    if spec.nodes <= partition.max_nodes:
        return
    other = f" or use {partition.grows_to}" if partition.grows_to else ""
    most = partition.max_nodes
    yield Finding(
        "nodes",
        "error",
        f"{spec.nodes} nodes are more than {spec.partition} has ({most}).",
        f"Ask for fewer{other}.",
        _SOURCE,
        field="nodes",
        fix=_room(launch, place) or Fix(f"ask for {most}", "nodes", str(most)),
    )


def _gpus_of_a_node(launch: Launch, place: Placement) -> Iterator[Finding]:
    most = place.partition.max_gpus_per_node
    if most is not None and launch.layout.gpus_per_node > most:
        yield Finding(
            "gpus",
            "error",
            f"{launch.layout.device.some(launch.layout.gpus_per_node)} per node are more than "
            f"{launch.spec.partition} gives.",
            f"Ask for {most}.",
            _SOURCE,
            field="gpus_per_node",
            fix=Fix(f"ask for {most}", "gpus_per_node", str(most)),
        )


def _gpus_of_the_job(launch: Launch, place: Placement) -> Iterator[Finding]:
    spec, partition, layout = launch.spec, place.partition, launch.layout
    gpus = _all_gpus(launch)
    if partition.max_gpus is not None and gpus > partition.max_gpus:
        room = _room(launch, place)
        each = partition.max_gpus // spec.nodes
        yield Finding(
            "job-gpus",
            _severity(place, "max_gpus"),
            f"{layout.device.some(gpus)} are more than a job may have on {spec.partition} "
            f"({partition.max_gpus}).",
            f"Use {room.value}." if room else f"Ask for {partition.max_gpus} in all.",
            _SOURCE,
            field="partition" if room else "gpus_per_node",
            fix=room or (Fix(f"ask for {each}", "gpus_per_node", str(each)) if each else None),
        )
    if partition.min_gpus is not None and gpus < partition.min_gpus:
        yield Finding(
            "few-gpus",
            _severity(place, "min_gpus"),
            f"{spec.partition} is for jobs of {partition.min_gpus} GPUs and more, and this one "
            f"has {gpus}.",
            "Use a partition for smaller jobs, or ask for more GPUs.",
            _SOURCE,
            field="partition",
        )


def _access(launch: Launch, place: Placement) -> Iterator[Finding]:
    if place.partition.needs:
        yield Finding(
            "access",
            "note",
            f"Not everybody may use {launch.spec.partition}: {place.partition.needs}",
            f"If you may not, sbatch refuses the job; see `lumitui doctor {place.site.name}`.",
            _SOURCE,
            field="partition",
        )


def _all_gpus(launch: Launch) -> int:
    return launch.layout.nodes * launch.layout.gpus_per_node


def _severity(place: Placement, limit: str) -> Severity:
    """Return how sure the profile is of a limit: what nobody has checked is a warning."""
    key = f"partitions.{place.spec.partition}.{limit}"
    return "warning" if key in place.site.unverified else "error"


def _room(launch: Launch, place: Placement) -> Fix | None:
    """Return the partition that the job grows to and fits in; None: there is none."""
    nodes, gpus = launch.spec.nodes, _all_gpus(launch)
    for name, partition in place.site.partitions_from(launch.spec.partition):
        if not partition.too_small(nodes, gpus):
            return Fix(f"use {name}", "partition", name)
    return None


def _nodes(number: int) -> str:
    return f"{number} node{'' if number == 1 else 's'}"


RULES: tuple[Rule, ...] = (
    _time,
    _most_nodes,
    _gpus_of_a_node,
    _gpus_of_the_job,
    _access,
)
