"""Rules about requests for nodes, tasks, GPUs, memory and node-local disks."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.bash.resource_options import count_of, gres_gpus
from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import one_of, removal, rewrite, some
from lumitui.app.knowledge.script_job import Option, ScriptJob
from lumitui.app.knowledge.site_facts.allocation import (
    asks_for_gpus,
    gpu_option,
    gpus_of_node,
    is_exclusive,
    queue_of,
)
from lumitui.remote.site.finding import Cure
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import NOWHERE, Position

_MAY_REPEAT = ("export", "mail-type", "comment", "exclude", "nodelist")


@rule(
    "option-twice",
    "warning",
    "one option with two values",
    why="sbatch silently uses the last one.",
    source="sbatch(1); slurm, src/common/slurm_opt.c",
)
def _twice(job: ScriptJob, site: Site) -> Iterator[Hit]:
    seen: dict[str, Option] = {}
    for option in job.options.all:
        before = seen.get(option.name)
        seen[option.name] = option
        if before is None or option.name in _MAY_REPEAT or before.value == option.value:
            continue
        if option.name == "gres" and _parts(before) <= _parts(option):
            continue
        both = option.name == "gres" and _kinds(before).isdisjoint(_kinds(option))
        yield Hit(
            f"--{option.name} appears twice: sbatch uses {option.value} and ignores "
            f"{before.value}" + (", so the job does not get it." if both else "."),
            f"Write --gres={before.value},{option.value} in one option."
            if both
            else f"Remove --{option.name}={before.value}, or the other one.",
            option.at if both else before.at,
            rewrite(option, f"--gres={before.value},{option.value}")
            if both
            else removal(job, before),
        )


def _parts(option: Option) -> set[str]:
    return set((option.value or "").split(","))


def _kinds(option: Option) -> set[str]:
    return {part.partition(":")[0] for part in _parts(option)}


@rule(
    "tasks-conflict",
    "warning",
    "numbers of tasks that contradict each other",
    why="sbatch warns that it `can't honor --ntasks-per-node`, and starts a different number of "
    "ranks.",
    source="sbatch(1) --ntasks-per-node; slurm, src/common/slurm_opt.c",
)
def _conflict(job: ScriptJob, site: Site) -> Iterator[Hit]:
    total, each = job.options.number("ntasks"), job.options.number("ntasks-per-node")
    nodes, option = job.options.number("nodes"), job.options.get("ntasks")
    if None in (total, each, nodes) or option is None:
        return
    assert total is not None and each is not None and nodes is not None
    if total != each * nodes:
        yield Hit(
            f"--ntasks={total} does not match {some(nodes, 'node')} with {some(each, 'task')} "
            f"each, which makes {each * nodes}.",
            "Remove --ntasks: nodes and tasks per node suffice.",
            option.at,
            removal(job, option),
        )


@rule(
    "tasks-total",
    "note",
    "a total number of tasks that does not change with the nodes",
    why="On more nodes, the total number of ranks stays the same.",
    source="LUMI-training-materials 2day-20260422/201-Slurm; "
    "PrincetonUniversity/multi_gpu_training",
)
def _total(job: ScriptJob, site: Site) -> Iterator[Hit]:
    option, total = job.options.get("ntasks"), job.options.number("ntasks")
    if option is None or total is None or job.options.has("ntasks-per-node"):
        return
    nodes = job.options.number("nodes")
    if nodes is None and not job.options.has("nodes") and total > 1 and asks_for_gpus(job):
        yield Hit(
            f"--ntasks={total} without --nodes: Slurm may distribute the tasks over any number "
            "of nodes, each with its own GPUs.",
            "Write --nodes and --ntasks-per-node.",
            option.at,
            severity="warning",
        )
    elif nodes is not None and nodes > 1 and total % nodes == 0:
        right = f"--ntasks-per-node={total // nodes}"
        yield Hit(
            f"--ntasks={total} does not change with the number of nodes.",
            f"Write {right} instead.",
            option.at,
            rewrite(option, right),
        )


_DISKS = ("nvme", "lscratch", "localtmp", "ssd")
"""Names of node-local disks in `--gres` at various sites."""


@rule(
    "gpus-missing",
    "error",
    "a job on GPU nodes that requests no GPU",
    why="On shared nodes, torch finds no GPU. On whole nodes, Slurm does not set "
    "SLURM_GPUS_PER_NODE, which many launch lines use.",
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
            f"The job requests no GPU, and {queue.name} allocates only what a job requests.",
            f"Write #SBATCH {right}, or fewer.",
            at,
        )
    elif found := re.search(r"SLURM_GPUS(_PER_NODE|_ON_NODE)?\b", job.text):
        yield Hit(
            f"The job uses ${found[0]}, which Slurm sets only if the job requests GPUs.",
            f"Write #SBATCH {right}.",
            at,
            severity="warning",
        )


def _count(option: Option | None) -> int | None:
    """Return the number of GPUs in `mi250:8`, `8` or `a100:2,v100:1`, or None."""
    counted = count_of((option.value or "") if option else "")
    return counted[1] if counted else None


def _gres_count(option: Option) -> int | None:
    """Return the GPUs requested by a `--gres`; None for another option, or no GPUs."""
    gpus = gres_gpus(option.value) if option.name == "gres" else None
    return gpus[1] if gpus else None


def _type(option: Option) -> str:
    """Return the type of GPU in an option, as in `gpu:v100:4` or `mi250:8`, or ""."""
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
    if kind not in (site.node.gpu.lower() if types is None else types):
        queue = queue_of(job, site)
        request = (queue.partition.gpu_request if queue else None) or site.gpu_request
        right = request.format(gpus=_count(option) or _gres_count(option) or 1)
        has = f"its nodes have {site.node.gpu}" if types != () else "Slurm knows no types there"
        yield Hit(
            f"{site.name} has no GPUs of the type {kind}: {has}.",
            f"Write {right or one_of(types or ())}." if right or types else "Omit the type.",
            option.at,
            rewrite(option, right) if right and "," not in (option.value or "") else None,
            severity="warning" if types is None else None,
        )


def _disk(option: Option) -> tuple[str, int | None] | None:
    """Return the name and size of a disk requested by a `--gres`, or None."""
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
            f"{site.name} does not accept requests for {disk[0]}.{has}",
            f"Remove {disk[0]} from --gres.",
            option.at,
            rewrite(option, f"--gres={','.join(rest)}") if rest else None,
        )


@rule(
    "local-disk-missing",
    "error",
    "a local disk that the job uses but does not request",
    why="The variable is then empty, so a path like $LOCAL_SCRATCH/data becomes /data, which is "
    "not writable.",
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
                f"The job uses ${disk.variable}, but requests no local disk: the variable is "
                "empty.",
                f"Add {disk.request.format(gib=200)} to --gres, with the GiB you need.",
                Position(number, found.start() + 1, number, found.end() + 1),
                cure=Cure("local-disk", "200"),
            )
            return


MEMORY = ("mem", "mem-per-gpu", "mem-per-cpu")
"""Options that request memory."""
_SIZE = re.compile(r"(\d+)(?:([KMGTkmgt])[Bb]?)?")
"""Sizes that Slurm accepts. Tested with sbatch of Slurm 24.11: it accepts `480G`, `480g` and
`480GB`, and refuses `480Gi`, `480MiB` and `1.5G`."""


def memory_option(job: ScriptJob) -> Option | None:
    """Return the option that requests memory; None if the job uses the default."""
    return job.options.get(*MEMORY)


def asked_gib(job: ScriptJob, site: Site) -> float | None:
    """Return the requested GiB per node; None if not requested, or unknown.

    `--mem=0` requests all memory of a node (sbatch(1)).
    """
    option = memory_option(job)
    if option is None:
        return None
    if option.name == "mem" and option.value in ("0", "0G", "0M"):
        return site.node.memory_gib
    return job.resources.memory_gib


@rule(
    "memory",
    "error",
    "more memory than a node has for jobs",
    why="sbatch refuses the job: `Memory specification can not be satisfied`.",
    source="the site's profile, node.memory_gib",
)
def _too_much(job: ScriptJob, site: Site) -> Iterator[Hit]:
    memory, most, option = asked_gib(job, site), site.node.memory_gib, memory_option(job)
    if memory is None or option is None or memory <= most or site.scheduler != "slurm":
        return
    if job.resources.partition and queue_of(job, site) is None:
        return
    gpus = gpus_of_node(job)
    each = (
        f" ({option.value} for each of {some(gpus, 'GPU')})"
        if option.name != "mem" and gpus
        else ""
    )
    right = f"--mem={most}G" if option.name == "mem" else f"--mem-per-gpu={most // (gpus or 1)}G"
    fits = option.name == "mem" or (option.name == "mem-per-gpu" and bool(gpus))
    yield Hit(
        f"{memory:,.0f} GiB on each node{each} are more than the {most} that a job may have.",
        f"Write {right} or less." if fits else f"Request at most {most} GiB per node.",
        option.at,
        rewrite(option, right) if fits else None,
        cure=Cure(option.name, right.partition("=")[2]),
    )


@rule(
    "memory-option",
    "error",
    "a memory request that the site refuses",
    why="The site allocates memory with the cores or the nodes.",
    source="the site's profile, memory_option",
)
def _refused(job: ScriptJob, site: Site) -> Iterator[Hit]:
    queue, option = queue_of(job, site), memory_option(job)
    if site.memory_option or option is None:
        return
    entries = [queue.partition] if queue else [*site.partitions.values()]
    whole = all(each.allocation == "node" for each in entries)
    yield Hit(
        f"A job at {site.name} must not request memory: it comes with "
        f"{'the whole node' if whole else 'the cores'}.",
        f"Remove --{option.name}.",
        option.at,
        removal(job, option),
        severity="note" if whole else None,
    )


@rule(
    "memory-unit",
    "error",
    "memory without a unit, which Slurm reads as megabytes",
    why="The job gets a few hundred megabytes, and Slurm kills it when Python loads torch: "
    "`oom_kill event`.",
    source="sbatch(1) --mem: the default unit is megabytes",
)
def _unit(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for name in MEMORY:
        option = job.options.get(name)
        text = (option.value or "") if option else ""
        if option is None or not text.isdecimal() or not 0 < int(text) < 1024:
            continue
        yield Hit(
            f"--{name}={text} requests {text} MB: without a unit, Slurm assumes megabytes.",
            f"Write --{name}={text}G.",
            option.at,
            rewrite(option, f"--{name}={text}G"),
            severity="warning" if name == "mem-per-cpu" and int(text) >= 128 else None,
        )


@rule(
    "memory-format",
    "error",
    "a memory size that Slurm cannot parse",
    why="sbatch refuses the job: `Invalid --mem specification`.",
    source="sbatch(1) --mem; tried with sbatch of Slurm 24.11",
)
def _format(job: ScriptJob, site: Site) -> Iterator[Hit]:
    for name in MEMORY:
        option = job.options.get(name)
        text = (option.value or "") if option else ""
        if option is None or not text or "$" in text or _SIZE.fullmatch(text):
            continue
        found = re.match(r"(\d+)(?:\.\d+)?\s*([KMGTkmgt])", text)
        right = f"--{name}={found[1]}{found[2].upper()}" if found else None
        yield Hit(
            f"Slurm cannot parse {text!r}: it accepts whole numbers with K, M, G or T.",
            f"Write {right}." if right else f"Write it like --{name}=60G.",
            option.at,
            rewrite(option, right) if right else None,
        )


@rule(
    "memory-missing",
    "warning",
    "no memory requested on shared nodes",
    why="The default is small, so Slurm kills the job when its data loaders start: `oom_kill "
    "event`.",
    source="the site's profile, memory_per_gpu; csc-user-guide, ml-multi.md",
)
def _memory_missing(job: ScriptJob, site: Site) -> Iterator[Hit]:
    queue, gpus = queue_of(job, site), gpus_of_node(job)
    if queue is None or not gpus or queue.partition.allocation != "shared":
        return
    if not site.memory_option or not site.memory_per_gpu or memory_option(job):
        return
    full = gpus == site.node.gpus and site.memory_per_node
    right = f"--mem={site.memory_per_node}" if full else f"--mem-per-gpu={site.memory_per_gpu}"
    option = job.options.get("partition", "qos")
    if is_exclusive(job):
        yield Hit(
            "--exclusive gives the job all cores and GPUs of its nodes, but only the default "
            "memory.",
            f"Write #SBATCH --mem={site.memory_per_node or '0'}.",
            at.at if (at := job.options.get("exclusive")) else NOWHERE,
        )
        return
    yield Hit(
        f"The job requests no memory, so {queue.name} gives it a small default.",
        f"Write #SBATCH {right}, the share of {some(gpus, 'GPU')}.",
        option.at if option else NOWHERE,
    )


@rule(
    "memory-zero",
    "note",
    "--mem=0, which accepts nodes with faulty memory",
    why="Slurm may choose a node that has lost memory; with a number, it skips such a node.",
    source="LUMI-training-materials 2day-20260422/201-Slurm",
)
def _zero(job: ScriptJob, site: Site) -> Iterator[Hit]:
    option = job.options.get("mem")
    if option is not None and option.value == "0" and site.memory_per_node and site.memory_option:
        right = f"--mem={site.memory_per_node}"
        yield Hit(
            "--mem=0 also accepts a node that has lost part of its memory.",
            f"Write {right}.",
            option.at,
            rewrite(option, right),
        )
