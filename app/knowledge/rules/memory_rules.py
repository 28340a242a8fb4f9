"""Rules about memory: how much a node has, in which unit, and how it is requested."""

import re
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import removal, rewrite, some
from lumitui.app.knowledge.script_job import Option, ScriptJob
from lumitui.app.knowledge.site_facts.allocation import gpus_of_node, is_exclusive, queue_of
from lumitui.remote.site.finding import Cure
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import NOWHERE

MEMORY = ("mem", "mem-per-gpu", "mem-per-cpu")
"""The options that ask for memory."""
_SIZE = re.compile(r"(\d+)(?:([KMGTkmgt])[Bb]?)?")
"""What Slurm reads. Tried with sbatch of Slurm 24.11: it takes `480G`, `480g` and `480GB`, and
refuses `480Gi`, `480MiB` and `1.5G`."""


def memory_option(job: ScriptJob) -> Option | None:
    """Return the option that asks for memory; None: the job leaves it to the site."""
    return job.options.get(*MEMORY)


def asked_gib(job: ScriptJob, site: Site) -> float | None:
    """Return the GiB of each node that the job asks for; None: not asked, or not known.

    `--mem=0` asks for all of a node (sbatch(1)).
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
        f"Write {right} or less." if fits else f"Ask for {most} GiB per node at most.",
        option.at,
        rewrite(option, right) if fits else None,
        cure=Cure(option.name, right.partition("=")[2]),
    )


@rule(
    "memory-option",
    "error",
    "a memory request that the site refuses",
    why="The site gives memory with the cores or with whole nodes, and its submit plugin refuses "
    "jobs that ask for it.",
    source="the site's profile, memory_option",
)
def _refused(job: ScriptJob, site: Site) -> Iterator[Hit]:
    queue, option = queue_of(job, site), memory_option(job)
    if site.memory_option or option is None:
        return
    entries = [queue.partition] if queue else [*site.partitions.values()]
    whole = all(each.allocation == "node" for each in entries)
    yield Hit(
        f"A job at {site.name} does not ask for memory: it comes with "
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
    why="The job gets a few hundred megabytes, and is killed as soon as Python has loaded torch: "
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
            f"--{name}={text} asks for {text} MB: without a unit Slurm reads megabytes.",
            f"Write --{name}={text}G.",
            option.at,
            rewrite(option, f"--{name}={text}G"),
            severity="warning" if name == "mem-per-cpu" and int(text) >= 128 else None,
        )


@rule(
    "memory-format",
    "error",
    "memory that Slurm cannot read",
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
            f"Slurm cannot read {text!r}: it takes whole numbers with K, M, G or T.",
            f"Write {right}." if right else f"Write it like --{name}=60G.",
            option.at,
            rewrite(option, right) if right else None,
        )


@rule(
    "memory-missing",
    "warning",
    "no memory requested on shared nodes",
    why="The default is small where nodes are shared, so that the job is killed when its data "
    "loaders start: `oom_kill event`.",
    source="the site's profile, memory_per_gpu; csc-user-guide, ml-multi.md",
)
def _missing(job: ScriptJob, site: Site) -> Iterator[Hit]:
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
        f"The job asks for no memory, and {queue.name} then gives it a small default.",
        f"Write #SBATCH {right}, the share of {some(gpus, 'GPU')}.",
        option.at if option else NOWHERE,
    )


@rule(
    "memory-zero",
    "note",
    "--mem=0, which takes any node",
    why="It requests all memory of a node, even of a node where some memory is missing. With a "
    "number, Slurm skips such a node.",
    source="LUMI-training-materials 2day-20260422/201-Slurm",
)
def _zero(job: ScriptJob, site: Site) -> Iterator[Hit]:
    option = job.options.get("mem")
    if option is not None and option.value == "0" and site.memory_per_node and site.memory_option:
        right = f"--mem={site.memory_per_node}"
        yield Hit(
            "--mem=0 also takes a node that has lost a part of its memory.",
            f"Write {right}.",
            option.at,
            rewrite(option, right),
        )
