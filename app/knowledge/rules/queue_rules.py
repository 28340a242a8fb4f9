"""Rules about where a job goes: account, partition, QOS, and what must come first."""

import re
from collections.abc import Iterator
from datetime import date

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import nearest, one_of, rewrite
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.app.knowledge.site_facts.allocation import asks_for_gpus, qos_of
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import NOWHERE

_PROFILE = "the site's profile, partitions"


@rule(
    "account",
    "error",
    "no account, or one that the site does not have",
    why="sbatch refuses a job without a valid project, with words like `Invalid account or "
    "account/partition combination` or `AssocMaxSubmitJobLimit`.",
    source="sbatch(1) --account; the site's profile, account",
)
def _account(job: ScriptJob, site: Site) -> Iterator[Hit]:
    option, wanted = job.options.get("account"), site.account
    if not wanted.required:
        return
    if option is None:
        yield Hit(
            f"The job names no account, and {site.name} bills every job to one.",
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
    "a site that runs no jobs any more",
    why="The site's compute nodes are shut down; sbatch refuses each job.",
    source="the site's profile, retired",
)
def _retired(job: ScriptJob, site: Site) -> Iterator[Hit]:
    if site.is_closed(date.today()):
        other = site.replaced_by
        option = job.options.get("partition")
        yield Hit(
            f"{site.name} has run no jobs since {site.retired}." + _readable(job, site),
            f"Use {other}, which takes its place." if other else "Choose another site.",
            option.at if option else NOWHERE,
        )


def _readable(job: ScriptJob, site: Site) -> str:
    """Return until when the files of a retired site can be read, for a job that is sent there."""
    if job.origin == "script" or site.readable_until is None:
        return ""
    over = date.today() > date.fromisoformat(site.readable_until)
    return f" Its files {'could' if over else 'can'} be read there until {site.readable_until}."


@rule(
    "partition-missing",
    "warning",
    "no partition",
    why="Without a partition a job goes to the site's default one, which may have no GPUs; "
    "without a default, sbatch refuses it.",
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
        message = (
            f"The job names no partition, and {site.name} has no default one: sbatch refuses it."
        )
    else:
        message = f"The job names no partition: {site.name} puts it into its default one."
    yield Hit(
        message,
        f"Write #SBATCH --partition= with {names}.",
        severity="error" if site.partition_required else "note",
    )


@rule(
    "partition-unknown",
    "error",
    "a partition that the site does not have, or one without the GPUs that the job asks for",
    why="sbatch refuses it: `invalid partition specified`, or `Requested node configuration is "
    "not available` where its nodes have no GPUs.",
    source=_PROFILE,
)
def _partition_unknown(job: ScriptJob, site: Site) -> Iterator[Hit]:
    option = job.options.get("partition")
    if option is None or not option.value or "$" in option.value or site.scheduler != "slurm":
        return
    own = {each.slurm_partition or name for name, each in site.partitions.items()}
    for name in option.value.split(","):
        if name in own or (job.origin == "job file" and name in site.partitions):
            continue
        if name in site.other_partitions:
            if asks_for_gpus(job):
                yield Hit(
                    f"{name} of {site.name} does not have the nodes with {site.node.gpu}, and the "
                    "job asks for GPUs.",
                    f"Write --partition= with {one_of(sorted(own))}.",
                    option.at,
                )
            continue
        entry = site.partitions.get(name)
        if entry and (qos := qos_of(entry)):
            yield Hit(
                f"{name} is a QOS at {site.name}, and no partition.",
                f"Write --qos={qos}, and leave out the partition.",
                option.at,
                rewrite(option, f"--qos={qos}"),
                severity="warning",
            )
            continue
        meant = nearest(name, own)
        sure = bool(site.other_partitions) or meant is not None
        yield Hit(
            f"{site.name} has no partition {name!r}: for GPUs it has {one_of(sorted(own))}."
            if sure
            else f"The profile of {site.name} knows no partition {name!r}, but does not list all.",
            f"Write --partition={meant}." if meant else f"Write {one_of(sorted(own))}.",
            option.at,
            rewrite(option, f"--partition={meant}") if meant else None,
            severity=None if sure else "warning",
        )


@rule(
    "qos-missing",
    "warning",
    "no QOS where every job needs one",
    why="sbatch refuses the job, or the site's default QOS has other limits.",
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
            f"The job names no QOS, and {site.name} takes each job by one.",
            f"Write #SBATCH --qos= with {one_of(names)}.",
            at.at if (at := job.options.get("partition")) else NOWHERE,
        )


@rule(
    "reservation",
    "note",
    "a reservation, which may have ended",
    why="sbatch refuses a job in a reservation that is over or that excludes the account: "
    "`Requested reservation is invalid`.",
    source="sbatch(1) --reservation",
)
def _reservation(job: ScriptJob, site: Site) -> Iterator[Hit]:
    option = job.options.get("reservation")
    if option is not None:
        yield Hit(
            f"The job runs in the reservation {option.value}, and not at all once that is over.",
            "Remove --reservation once the course or the agreed time has ended.",
            option.at,
        )
