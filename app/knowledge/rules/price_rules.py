"""Rules about unused resources that are billed, or blocked for other jobs."""

import math
from collections.abc import Iterator

from lumitui.app.knowledge.rule import Hit, rule
from lumitui.app.knowledge.rules.phrases import rewrite, some
from lumitui.app.knowledge.rules.request_rules import asked_gib, memory_option
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.app.knowledge.site_facts.allocation import (
    NamedPartition,
    cores_of_node,
    gpu_option,
    gpus_of_node,
    is_exclusive,
    queue_of,
    threads_of_core,
    whole_nodes,
)
from lumitui.app.knowledge.site_facts.process_counts import PER_NODE_LAUNCHERS
from lumitui.remote.site.finding import Cure
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import NOWHERE

_ROUNDING = 1.07
"""Tolerated factor above the share: one site's own documents give 60 GB per GPU in one place and 64
GB in another (LUMI user guide, billing; LUMI AI Factory, chapter 7)."""


def _part(job: ScriptJob, site: Site) -> tuple[NamedPartition, int] | None:
    """Return the shared partition and the GPUs per node of a job that shares its nodes."""
    queue, gpus = queue_of(job, site), gpus_of_node(job)
    if queue is None or not gpus or queue.partition.allocation != "shared":
        return None
    return None if whole_nodes(job, site) else (queue, gpus)


def _billed(queue: NamedPartition, amount: float, share: str) -> str:
    """Return the end of a sentence on how a share above that of the GPUs is billed."""
    billing = queue.partition.billing
    if billing.kind != "slice":
        left = "too few cores remain" if share == "cores" else "too little memory remains"
        return f"; {left} for the node's other GPUs"
    each = billing.cores if share == "cores" else billing.memory_gib
    return f", and is billed as {some(math.ceil(amount / each), 'GPU')}"


@rule(
    "share-cores",
    "warning",
    "more cores than the GPUs' share",
    why="Some sites bill the larger share (cores or GPUs). At other sites, too few cores remain "
    "for the node's other GPUs.",
    source="LUMI-training-materials User-Updates/Update-202308, responsible-use; csc-user-guide, "
    "ml-multi.md",
)
def _cores(job: ScriptJob, site: Site) -> Iterator[Hit]:
    part, asked, threads = _part(job, site), cores_of_node(job, site), threads_of_core(job)
    if part is None or asked is None or site.cores_fixed or threads > site.node.threads_per_core:
        return
    queue, gpus = part
    asked = math.ceil(asked / threads)
    share = site.cores_per_gpu * gpus
    if share < asked <= len(site.node.usable_cores):
        option = job.options.get("cpus-per-task")
        tasks = job.tasks_per_node
        right = f"--cpus-per-task={share * threads // tasks}"
        if job.options.has("cpus-per-gpu"):
            option = job.options.get("cpus-per-gpu")
            right = f"--cpus-per-gpu={site.cores_per_gpu * threads}"
        yield Hit(
            f"The job takes {asked} cores of each node for {some(gpus, 'GPU')}, whose share is "
            f"{share}{_billed(queue, asked, 'cores')}.",
            f"Write {right}." if share >= tasks else f"Request {share} cores, or more GPUs.",
            option.at if option else (at.at if (at := gpu_option(job)) else NOWHERE),
            rewrite(option, right) if option and share >= tasks else None,
        )


@rule(
    "share-memory",
    "warning",
    "more memory than the GPUs' share",
    why="Some sites bill the larger share (memory or GPUs). At other sites, too little memory "
    "remains for the node's other GPUs.",
    source="LUMI user guide, runjobs/lumi_env/billing; csc-user-guide, gpu-ml.md",
)
def _memory(job: ScriptJob, site: Site) -> Iterator[Hit]:
    part, asked, option = _part(job, site), asked_gib(job, site), memory_option(job)
    if part is None or asked is None or option is None or not site.memory_option:
        return
    queue, gpus = part
    share = site.node.memory_gib * gpus / site.node.gpus
    if share * _ROUNDING < asked <= site.node.memory_gib:
        right = f"--mem-per-gpu={site.memory_per_gpu or f'{share / gpus:.0f}G'}"
        yield Hit(
            f"The job takes {asked:,.0f} GiB of each node for {some(gpus, 'GPU')}, whose share is "
            f"{share:,.0f}{_billed(queue, asked, 'memory')}.",
            f"Write {right}, or request more GPUs.",
            option.at,
            rewrite(option, right),
            cure=Cure(option.name, right.partition("=")[2]),
        )


@rule(
    "idle-gpus",
    "warning",
    "fewer GPUs than the nodes have, although whole nodes are billed",
    why="You pay for the idle GPUs.",
    source="the site's profile, partitions.*.allocation; LUMI user guide, billing",
)
def _idle(job: ScriptJob, site: Site) -> Iterator[Hit]:
    queue, gpus, option = queue_of(job, site), gpus_of_node(job), gpu_option(job)
    if queue is None or not gpus or option is None or queue.partition.allocation != "node":
        return
    if gpus < site.node.gpus and not site.node.on_cpu:
        request = queue.partition.gpu_request or site.gpu_request or "--gpus-per-node={gpus}"
        right = request.format(gpus=site.node.gpus)
        shared = [name for name, one in site.partitions.items() if one.allocation == "shared"]
        yield Hit(
            f"{queue.name} allocates and bills whole nodes: {some(site.node.gpus - gpus, 'GPU')} "
            "of each node would be idle.",
            f"Write {right}" + (f", or use {shared[0]}." if shared else "."),
            option.at,
            rewrite(option, right),
        )


@rule(
    "scattered",
    "warning",
    "only some of the GPUs on each of several nodes",
    why="Traffic between nodes is slower than within one, and lumitui cannot bind ranks.",
    source="csc-user-guide, ml-multi.md; LUMI AI course of June 2026, extra_08",
)
def _scattered(job: ScriptJob, site: Site) -> Iterator[Hit]:
    queue, gpus, option = queue_of(job, site), gpus_of_node(job), gpu_option(job)
    if queue is None or not gpus or queue.partition.allocation != "shared" or job.nodes < 2:
        return
    if gpus >= site.node.gpus or is_exclusive(job):
        return
    total, whole = gpus * job.nodes, site.node.gpus
    least = -(-total // whole)
    if least == job.nodes:
        return
    billing = queue.partition.billing
    paid = billing.kind == "sum" and job.nodes >= (billing.whole_nodes_from or math.inf)
    each = total // least if total % least == 0 else whole
    ranks = ""
    launched = any(step.launcher in PER_NODE_LAUNCHERS for step in job.training)
    if job.tasks_per_node == gpus and not launched:
        ranks = f" and {each} tasks"
    elif job.tasks_per_node == 1 and job.options.has("cpus-per-task"):
        ranks = f" and {each * site.cores_per_gpu} cores"
    yield Hit(
        f"The job takes {gpus} of {whole} GPUs on each of {job.nodes} nodes, but "
        f"{some(total, 'GPU')} fit on {some(least, 'node')}."
        + (f" {site.name} bills {job.nodes} whole nodes for it." if paid else ""),
        f"Write --nodes={least}, and request {each} GPUs{ranks} per node.",
        option.at if option else NOWHERE,
        cure=Cure("gpus-per-node", str(whole)),
    )


@rule(
    "exclusive-part",
    "warning",
    "a whole node for only some of its GPUs",
    why="The site bills the whole node.",
    source="sbatch(1) --exclusive; LUMI user guide, billing",
)
def _exclusive(job: ScriptJob, site: Site) -> Iterator[Hit]:
    queue, gpus, option = queue_of(job, site), gpus_of_node(job), job.options.get("exclusive")
    if queue is None or not gpus or option is None or queue.partition.allocation != "shared":
        return
    if gpus < site.node.gpus:
        own = job.origin == "job file" and site.node.gpu_cores  # it may be there for the proof
        yield Hit(
            f"--exclusive takes whole nodes, but the job uses only {gpus} of the "
            f"{site.node.gpus} GPUs per node.",
            f"Remove --exclusive{' (the proof is then `not measured`)' if own else ''}, or request "
            "all GPUs.",
            option.at,
            severity="note" if own else None,
        )


@rule(
    "shared-cores",
    "note",
    "all GPUs of shared nodes",
    why="Slurm chooses the cores, so masks are impossible.",
    source="slurm.conf(5), OverSubscribe; LUMI user guide, distribution-binding",
)
def _shared(job: ScriptJob, site: Site) -> Iterator[Hit]:
    part, own = _part(job, site), job.origin == "job file"
    least = 2 if own else site.node.gpus  # a job file loses its proof with any number of ranks
    if part and part[1] >= least and site.node.gpu_cores and not site.cores_fixed:
        queue, option = part[0], job.options.get("partition", "qos")
        whole = [name for name, one in site.partitions.items() if one.allocation == "node"]
        because = f"Nodes of {queue.name} are shared: Slurm chooses the cores, so "
        if own:
            because += "lumitui cannot prove the binding."
            do = f"For a proof, {f'use {whole[0]}, or ' if whole else ''}set `exclusive: true`; "
            do += f"the site then bills all {site.node.gpus} GPUs of each node"
            do += f", not {part[1]}." if part[1] < site.node.gpus else "."
        else:
            because += "masks are impossible."
            do = f"Use {whole[0]} for whole nodes, " if whole else "Request all cores of the node, "
            memory = f" and --mem={site.memory_per_node}" if site.memory_per_node else ""
            do += f"or write --exclusive{memory}."
        at = option.at if option else NOWHERE
        yield Hit(because, do, at, cure=Cure("exclusive", "true"))
