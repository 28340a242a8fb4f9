"""Rules about account, partition, QOS and their limits."""

import posixpath
import re
from collections.abc import Iterator
from datetime import date

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.file_rules import logs_of
from lumitui.app.knowledge.rules.phrases import nearest, one_of, rewrite, some
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.app.knowledge.site_facts.allocation import (
    NamedPartition,
    asks_for_gpus,
    gpu_option,
    gpus_of_node,
    qos_of,
    queue_of,
)
from lumitui.remote.site import walltime
from lumitui.remote.site.finding import Cure, Severity
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import NOWHERE

_PROFILE = "the site's profile, partitions"


@rule(
    "account",
    "error",
    "no account, or one that does not exist at the site",
    why="sbatch refuses the job: `Invalid account or account/partition combination` or "
    "`AssocMaxSubmitJobLimit`. In a script, a missing account is a warning, because SBATCH_ACCOUNT "
    "or your default account may replace it.",
    source="sbatch(1) --account; the site's profile, account",
)
def _account(job: ScriptJob, site: Site) -> Iterator[Hit]:
    option, wanted = job.options.get("account"), site.account
    if not wanted.required:
        return
    if option is None:
        yield Hit(
            f"The job names no account, but {site.name} bills every job to one.",
            f"Write #SBATCH --account={wanted.example}, with your own project.",
            severity="warning" if job.origin == "script" else None,
        )
        return
    name = option.value or ""
    if job.origin == "job file" and name == wanted.example:
        yield Hit(
            f"{name!r} is only an example of an account at {site.name}.",
            "Write your own project.",
            option.at,
        )
    elif name == "none" or ("$" not in name and not re.match(wanted.pattern, name, re.IGNORECASE)):
        like = f", like --account={wanted.example}" if wanted.example else ""
        yield Hit(
            f"{name!r} is not an account at {site.name}, so sbatch refuses the job.",
            f"Write your own project{like}.",
            option.at,
        )


@rule(
    "retired",
    "error",
    "a site that no longer runs jobs",
    why="sbatch refuses every job.",
    source="the site's profile, retired",
)
def _retired(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if site.is_closed(date.today()):
        other = site.replaced_by
        option = job.options.get("partition")
        yield Hit(
            f"{site.name} has run no jobs since {site.retired}." + _readable(job, site),
            f"Use {other}, which replaces it." if other else "Choose another site.",
            option.at if option else NOWHERE,
        )


def _readable(job: ScriptJob, site: Site) -> str:
    """Return a sentence on how long the files of a retired site stay readable, or ""."""
    if job.origin == "script" or site.readable_until is None:
        return ""
    over = date.today() > date.fromisoformat(site.readable_until)
    return f" Its files {'could' if over else 'can'} be read there until {site.readable_until}."


@rule(
    "partition-missing",
    "warning",
    "no partition",
    why="The job goes to the site's default partition, which may have no GPUs, or sbatch "
    "refuses it.",
    source="sbatch(1) --partition; LUMI-training-materials 2day-20260422/201-Slurm",
)
def _partition_missing(job: ScriptJob, site: Site) -> Iterator[Hit]:
    by_qos = all(qos_of(each) for each in site.partitions.values())
    if site.scheduler != "slurm" or job.options.has("partition") or by_qos:
        return
    if site.default_partition in site.partitions:
        return
    names = one_of(site.partitions)
    if site.partition_required:
        message = f"The job names no partition, but {site.name} has no default: sbatch refuses it."
    else:
        message = f"The job names no partition: {site.name} uses its default."
    yield Hit(
        message,
        f"Write #SBATCH --partition= with {names}.",
        severity="error" if site.partition_required else "note",
    )


@rule(
    "partition-unknown",
    "error",
    "a partition that does not exist at the site, or lacks the requested GPUs",
    why="sbatch refuses the job: `invalid partition specified`, or `Requested node configuration "
    "is not available` if the nodes have no GPUs.",
    source=_PROFILE,
)
def _partition_unknown(job: ScriptJob, site: Site) -> Iterator[Hit]:
    option = job.options.get("partition")
    if option is None or not option.value or "$" in option.value or site.scheduler != "slurm":
        return
    own = {each.slurm_partition or name for name, each in site.partitions.items()}
    on_gpus = asks_for_gpus(job) or not site.gpu_request
    for name in option.value.split(","):
        if name in own or (job.origin == "job file" and name in site.partitions):
            continue
        if name in (site.other_partitions or ()):
            if asks_for_gpus(job):
                yield Hit(
                    f"{name} at {site.name} has no nodes with {site.node.gpu}, but the job "
                    "requests GPUs.",
                    f"Write --partition= with {one_of(sorted(own))}.",
                    option.at,
                )
            continue
        entry = site.partitions.get(name)
        if entry and (qos := qos_of(entry)):
            yield Hit(
                f"{name} is a QOS at {site.name}, not a partition.",
                f"Write --qos={qos}, and omit the partition.",
                option.at,
                rewrite(option, f"--qos={qos}"),
                severity="warning",
            )
            continue
        # A job that requests no GPUs must not move to a partition whose GPUs are billed.
        meant = nearest(name, own if on_gpus else site.other_partitions or ())
        sure = site.other_partitions is not None or meant is not None
        near = one_of(sorted(own)) if on_gpus else "a partition that `sinfo` lists"
        yield Hit(
            f"{site.name} has no partition {name!r}: for GPUs it has {one_of(sorted(own))}."
            if sure
            else f"The profile of {site.name} lists only some partitions, and not {name!r}.",
            f"Write --partition={meant}." if meant else f"Write {near}.",
            option.at,
            rewrite(option, f"--partition={meant}") if meant else None,
            severity=None if sure else "warning" if on_gpus else "note",
        )


@rule(
    "qos-missing",
    "warning",
    "no QOS at a site that requires one",
    why="sbatch refuses the job, or the site's default QOS has different limits.",
    source="the site's profile, partitions.*.arguments",
)
def _qos_missing(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if job.options.has("qos") or site.scheduler != "slurm":
        return
    name = job.resources.partition
    entries = [
        each for key, each in site.partitions.items() if name in (None, key, each.slurm_partition)
    ]
    names = [qos for each in entries if (qos := qos_of(each))]
    if names and len(names) == len(entries):
        yield Hit(
            f"The job names no QOS, but {site.name} requires one.",
            f"Write #SBATCH --qos= with {one_of(names)}.",
            at.at if (at := job.options.get("partition")) else NOWHERE,
        )


@rule(
    "reservation",
    "note",
    "a reservation, which may have ended",
    why="If it is over or excludes the account, sbatch refuses the job: `Requested "
    "reservation is invalid`.",
    source="sbatch(1) --reservation",
)
def _reservation(job: ScriptJob, site: Site) -> Iterator[Hit]:
    option = job.options.get("reservation")
    if option is not None:
        yield Hit(
            f"The job can run only in the reservation {option.value}, and never after its end.",
            "Remove --reservation once the course or the agreed time has ended.",
            option.at,
        )


def _limit(queue: NamedPartition, job: ScriptJob) -> int:
    return walltime.seconds_of(queue.partition.max_time_for(job.nodes))


def _severity(site: Site, queue: NamedPartition, key: str) -> Severity | None:
    """Return `warning` for an unverified limit."""
    return "warning" if f"partitions.{queue.name}.{key}" in site.unverified else None


@rule(
    "time-limit",
    "error",
    "a time limit above the partition's",
    why="sbatch refuses the job, or it waits forever with the reason PartitionTimeLimit.",
    source=_PROFILE,
)
def _time(job: ScriptJob, site: Site) -> Iterator[Hit]:
    queue, option, asked = queue_of(job, site), job.options.get("time"), job.resources.seconds
    if queue is None or option is None or asked is None or asked <= _limit(queue, job):
        return
    most = queue.partition.max_time_for(job.nodes)
    size = "" if most == queue.partition.max_time else f" a job of {some(job.nodes, 'node')}"
    yield Hit(
        f"{option.value} is longer than {queue.name} allows{size} ({most}).",
        f"Write --time={most} or less, and resume from a checkpoint in the next job.",
        option.at,  # no edit: the user may prefer a shorter limit or another partition
        severity=_severity(site, queue, "max_time"),
        cure=_room(job, site, queue, asked) or Cure("time", most),
    )


def _room(job: ScriptJob, site: Site, queue: NamedPartition, seconds: int = 0) -> Cure | None:
    """Return the change to a larger partition that fits the job, or None."""
    gpus = (gpus_of_node(job) or 0) * job.nodes
    for name, partition in site.partitions_from(queue.name):
        longest = walltime.seconds_of(partition.max_time_for(job.nodes))
        if longest >= seconds and not partition.too_small(job.nodes, gpus):
            return Cure("partition", name)
    return None


@rule(
    "time-missing",
    "warning",
    "no time limit",
    why="The partition's default applies: the job ends too early, or waits longer than a short "
    "job would.",
    source="sbatch(1) --time",
)
def _no_time(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if site.scheduler == "slurm" and not job.options.has("time"):
        queue = queue_of(job, site)
        most = f", at most {queue.partition.max_time_for(job.nodes)}" if queue else ""
        where = queue.name if queue else "the partition"
        yield Hit(
            f"The job sets no time limit, so it gets the default of {where}.",
            f"Write #SBATCH --time= with hours:minutes:seconds{most}.",
        )


@rule(
    "time-format",
    "error",
    "a time that Slurm cannot parse",
    why="sbatch refuses the job: `Invalid --time specification`.",
    source="sbatch(1) --time",
)
def _format(job: ScriptJob, site: Site) -> Iterator[Hit]:
    option = job.options.get("time")
    if option is None or option.value is None or "$" in option.value:
        return
    if option.value.lower() in ("unlimited", "infinite", "-1"):
        return
    try:
        walltime.seconds_of(option.value)
    except ValueError:
        right = _meant(option.value)
        yield Hit(
            f"Slurm cannot parse the time {option.value!r}.",
            f"Write it as hours:minutes:seconds or days-hours, like --time={right or '08:00:00'}.",
            option.at,
            rewrite(option, f"--time={right}") if right else None,
        )


def _meant(text: str) -> str | None:
    """Return `8h`, `30 min` or `2d` in Slurm's form; None if unreadable."""
    found = re.fullmatch(r"(\d{1,3})\s*(h|hours?|hrs?|m|mins?|minutes?|d|days?)", text.lower())
    if not found:
        return None
    number, unit = int(found[1]), found[2][0]
    return walltime.text_of(number * {"h": 3600, "m": 60, "d": 86_400}[unit])


@rule(
    "nodes",
    "error",
    "more nodes than the partition allows for a job",
    why="sbatch refuses the job, or it waits forever with the reason PartitionNodeLimit.",
    source=_PROFILE,
)
def _nodes(job: ScriptJob, site: Site) -> Iterator[Hit]:
    queue, option = queue_of(job, site), job.options.get("nodes", "ntasks")
    if queue is None or job.nodes <= queue.partition.max_nodes:
        return
    most, other = queue.partition.max_nodes, queue.partition.grows_to
    yield Hit(
        f"{some(job.nodes, 'node')} are more than {queue.name} allows for a job ({most}).",
        f"Request at most {most}{f', or use {other}' if other else ''}.",
        option.at if option else NOWHERE,
        severity=_severity(site, queue, "max_nodes"),
        cure=_room(job, site, queue) or Cure("nodes", str(most)),
    )


@rule(
    "gpus",
    "error",
    "more GPUs per node than the node has, or the partition allows",
    why="sbatch refuses the job: `Requested node configuration is not available`.",
    source="the site's profile, node.gpus and partitions",
)
def _gpus(job: ScriptJob, site: Site) -> Iterator[Hit]:
    queue, asked, option = queue_of(job, site), gpus_of_node(job), gpu_option(job)
    most = queue.partition.max_gpus_per_node if queue else None
    most = most or site.node.gpus
    if asked is None or asked <= most or (queue is None and job.resources.partition):
        return
    nodes, do = -(-asked * job.nodes // most), f"Request at most {most} per node."
    if queue and nodes > queue.partition.max_nodes:
        do = f"{do} {queue.name} allows {some(queue.partition.max_nodes, 'node')} for a job."
    elif asked * job.nodes == most * nodes:
        do = f"Write --nodes={nodes}, and request {some(most, 'GPU')} per node."
    yield Hit(
        f"The job requests {asked} GPUs per node, but may have at most {most}.",
        do,
        option.at if option else NOWHERE,
        cure=Cure("gpus-per-node", str(most)),
    )


@rule(
    "job-gpus",
    "error",
    "more GPUs than the partition allows for a job",
    why="sbatch refuses the job, or it waits forever with the reason QOSMaxGRESPerJob.",
    source=_PROFILE,
)
def _gpus_of_job(job: ScriptJob, site: Site) -> Iterator[Hit]:
    queue, each, option = queue_of(job, site), gpus_of_node(job), gpu_option(job)
    if queue is None or each is None or queue.partition.max_gpus is None:
        return
    gpus, most = each * job.nodes, queue.partition.max_gpus
    if each * (nodes := min(job.nodes, queue.partition.max_nodes)) > most:
        room, fits = _room(job, site, queue), most // nodes
        yield Hit(
            f"{some(gpus, 'GPU')} are more than a job may have on {queue.name} ({most}).",
            f"Use {room.value}." if room else f"Request at most {most} in all.",
            option.at if option else NOWHERE,
            severity=_severity(site, queue, "max_gpus"),
            cure=room or (Cure("gpus-per-node", str(fits)) if fits else None),
        )


@rule(
    "array-output",
    "warning",
    "one log for all jobs of an array",
    why="Each job of the array erases what the others wrote.",
    source="sbatch(1) --output, filename pattern",
)
def _array_output(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if not job.options.has("array"):
        return
    for option, text in logs_of(job):
        name = option.name
        if text != "/dev/null" and not re.search(r"%\d*[ajJ]", text):
            stem, ending = posixpath.splitext(text)
            right = f"{stem}-%A_%a{ending or '.out'}".replace("%A-", "")
            yield Hit(
                f"All jobs of the array write to {text}.",
                f"Include %A_%a in the name, like --{name}={right}.",
                option.at,
                rewrite(option, f"--{name}={right}"),
            )
