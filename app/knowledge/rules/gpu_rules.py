"""Rules about how GPUs and a node's disk are requested."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.bash.resource_options import count_of, gres_gpus
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import one_of, rewrite
from lumitui.app.knowledge.script_job import Option, ScriptJob
from lumitui.app.knowledge.site_facts.allocation import (
    asks_for_gpus,
    gpu_option,
    is_exclusive,
    queue_of,
)
from lumitui.remote.site.finding import Cure
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import NOWHERE, Position

_DISKS = ("nvme", "lscratch", "localtmp", "ssd")
"""Names of a node's disk in `--gres` that sites use."""


@rule(
    "gpus-missing",
    "error",
    "a job on GPU nodes that asks for no GPU",
    why="On shared nodes, the job gets only cores: torch finds no GPU. On whole nodes, Slurm "
    "does not set SLURM_GPUS_PER_NODE, which launch lines use.",
    source="LUMI-training-materials 2day-20260422/201-Slurm; User-Updates/Update-202308",
)
def _missing(job: ScriptJob, site: Site) -> Iterator[Hit]:
    queue, option = queue_of(job, site), job.options.get("partition", "qos")
    if queue is None or asks_for_gpus(job) or is_exclusive(job) or site.node.on_cpu:
        return
    request = queue.partition.gpu_request or site.gpu_request
    if not request:
        return
    right, at = request.format(gpus=site.node.gpus), option.at if option else NOWHERE
    if queue.partition.allocation == "shared":
        yield Hit(
            f"The job asks for no GPU, and {queue.name} gives only what is requested.",
            f"Write #SBATCH {right}, or fewer.",
            at,
        )
    elif found := re.search(r"SLURM_GPUS(_PER_NODE|_ON_NODE)?\b", job.text):
        yield Hit(
            f"The job uses ${found[0]}, which Slurm sets only if GPUs are requested.",
            f"Write #SBATCH {right}.",
            at,
            severity="warning",
        )


def _count(option: Option | None) -> int | None:
    """Return the number in `mi250:8`, `8` or `a100:2,v100:1`; None: there is none."""
    counted = count_of((option.value or "") if option else "")
    return counted[1] if counted else None


def _gres_count(option: Option) -> int | None:
    """Return the GPUs that a `--gres` asks for; None: it is another option, or asks for none."""
    gpus = gres_gpus(option.value) if option.name == "gres" else None
    return gpus[1] if gpus else None


def _type(option: Option) -> str:
    """Return the type of GPU in an option, as in `gpu:v100:4` or `mi250:8`; "": none."""
    if option.name == "gres":
        gpus = gres_gpus(option.value)
        return gpus[0] if gpus else ""
    kind, colon, _ = (option.value or "").partition(":")
    return kind if colon else ""


@rule(
    "gres-type",
    "error",
    "a type of GPU that the site does not have",
    why="sbatch refuses the job: `Requested node configuration is not available` or `Invalid "
    "generic resource (gres) specification`.",
    source="the site's profile, node.gres_types; csc-user-guide, ml-multi.md",
)
def _wrong_type(job: ScriptJob, site: Site) -> Iterator[Hit]:
    option = gpu_option(job)
    kind, types = (_type(option).lower() if option else ""), site.node.gres_types
    if option is None or not kind or site.node.on_cpu:
        return
    if kind not in (types or site.node.gpu.lower()):
        queue = queue_of(job, site)
        request = (queue.partition.gpu_request if queue else None) or site.gpu_request
        right = request.format(gpus=_count(option) or _gres_count(option) or 1)
        yield Hit(
            f"{site.name} has no GPUs of the type {kind}: its nodes have {site.node.gpu}.",
            f"Write {right}." if right else f"Write {one_of(types)}.",
            option.at,
            rewrite(option, right) if right and "," not in (option.value or "") else None,
            severity=None if types else "warning",
        )


def _disk(option: Option) -> tuple[str, int | None] | None:
    """Return the name and size of a disk that a `--gres` asks for; None: it asks for none."""
    for part in (option.value or "").split(",") if option.name == "gres" else ():
        name, _, size = part.partition(":")
        if name in _DISKS:
            return name, int(size) if size.isdecimal() else None
    return None


@rule(
    "local-disk",
    "error",
    "a request for a disk that the site's nodes do not have",
    why="sbatch refuses the job: `Invalid generic resource (gres) specification`.",
    source="the site's profile, local_disk; csc-user-guide, creating-job-scripts",
)
def _no_disk(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for option in job.options.all:
        disk = _disk(option)
        if disk is None or site.scheduler != "slurm":
            continue
        if site.local_disk and site.local_disk.request.partition(":")[0] == disk[0]:
            continue
        has = f" Its nodes have: {site.node.local_disk}." if site.node.local_disk else ""
        rest = [part for part in (option.value or "").split(",") if not part.startswith(disk[0])]
        yield Hit(
            f"{site.name} takes no request for {disk[0]}.{has}",
            f"Remove {disk[0]} from --gres.",
            option.at,
            rewrite(option, f"--gres={','.join(rest)}") if rest else None,
        )


@rule(
    "local-disk-missing",
    "error",
    "a node's disk that is used but not requested",
    why="The variable is empty then, so that a path like $LOCAL_SCRATCH/data is /data, which "
    "nobody may write.",
    source="the site's profile, local_disk.variable; csc-user-guide, creating-job-scripts",
)
def _disk_unasked(job: ScriptJob, site: Site) -> Iterator[Hit]:
    disk = site.local_disk
    if disk is None or any(_disk(option) for option in job.options.all):
        return
    used = re.compile(rf"\$(?:{disk.variable}\b|\{{{disk.variable}\}})")
    for number, line in enumerate(job.text.split("\n"), 1):
        found = used.search(line)
        if found and not line.lstrip().startswith("#"):
            yield Hit(
                f"The job uses ${disk.variable}, but asks for no disk of the node: it is empty.",
                f"Add {disk.request.format(gib=200)} to --gres, with the GiB that it needs.",
                Position(number, found.start() + 1, number, found.end() + 1),
                cure=Cure("local-disk", "200"),
            )
            return
