"""A site's profile as sections of text, for CLI and TUI. Pure."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import compress

from lumitui.app.explain.words import count
from lumitui.remote.site.core_sets import format_cores
from lumitui.remote.site.partition import Partition
from lumitui.remote.site.profile import Site

WIDE = 80
"""Width of the page in columns."""
_DOUBT = "?"


@dataclass(frozen=True)
class Section:
    """A section of the page: a table or sentences."""

    heading: str
    rows: tuple[tuple[str, ...], ...] = ()
    sentences: tuple[str, ...] = field(default=())


def sections(site: Site, today: date) -> tuple[Section, ...]:
    """Return the non-empty sections of a site's page."""
    notes = (f"{name}: {item.note}" for name, item in site.containers.items() if item.note)
    unverified = (f"Unverified on the site: {', '.join(site.unverified)}",)
    parts = (
        Section("", sentences=tuple(_head(site, today))),
        Section("Where", tuple(_where(site))),
        Section("Partitions", tuple(_partitions(site)), tuple(_purposes(site))),
        Section("A node", tuple(_node(site)), tuple(_node_words(site))),
        Section("Containers", tuple(_containers(site)), tuple(notes)),
        Section("A job", tuple(_job(site))),
        Section("Commands", tuple(site.commands.items())),
        Section("Notes", sentences=site.notes),
        Section("Unverified", sentences=unverified if site.unverified else ()),
    )
    return tuple(part for part in parts if part.rows or part.sentences)


def page(site: Site, today: date, columns: int = WIDE) -> str:
    """Return the page as lines of at most `columns`; longer words extend beyond."""
    blocks = []
    for part in sections(site, today):
        rows = [part.heading] if part.heading else []
        rows += _table(part.rows, columns)
        for sentence in part.sentences:
            first = "  - " if part.heading else ""
            rows += textwrap.wrap(sentence, columns, initial_indent=first,
                                  subsequent_indent=" " * len(first), break_long_words=False,
                                  break_on_hyphens=False)  # fmt: skip
        blocks.append("\n".join(rows))
    return "\n\n".join(blocks)


def _table(rows: Sequence[Sequence[str]], columns: int) -> Iterator[str]:
    """Yield rows with aligned columns; the last column wraps."""
    if not rows:
        return
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]) - 1)]
    widths = [min(width, columns // 3) for width in widths]
    indent = 2 + sum(width + 2 for width in widths)
    for row in rows:
        *cells, last = row
        head = "".join(f"{cell:<{width}}  " for cell, width in zip(cells, widths, strict=True))
        wrapped = textwrap.wrap(last, max(14, columns - indent), break_on_hyphens=False) or [""]
        yield f"  {head}{wrapped[0]}".rstrip()
        yield from (f"{' ' * indent}{line}" for line in wrapped[1:])


# -- the parts


def _head(site: Site, today: date) -> Iterator[str]:
    yield f"{site.title} ({site.name})"
    if site.retired:
        verb = "has run no jobs since" if site.is_closed(today) else "stops running jobs on"
        instead = f"; use {site.replaced_by}" if site.replaced_by else ""
        yield f"It {verb} {site.retired}{instead}."
    if site.readable_until:
        yield f"Its files can be read until {site.readable_until}."
    if site.unverified:
        yield f"{_DOUBT}: unverified on the site."


def _where(site: Site) -> Iterator[tuple[str, str]]:
    hosts = site.hosts
    if site.scheduler == "slurm":
        port = f", port {hosts.port}" if hosts.port else ""
        yield _row(site, "login", "hosts.login", f"{hosts.login or 'this machine'}{port}")
        yield _row(site, "Slurm", "slurm_version", site.slurm_version or "version unknown")
    if hosts.transfer:
        yield _row(site, "files", "hosts.transfer", hosts.transfer)
    if hosts.renew:
        yield _row(site, "renew", "hosts.renew", hosts.renew)
    if site.account.required:
        default = site.account.default and f", by default {site.account.default}"
        example = site.account.example and f", such as {site.account.example}"
        yield _row(site, "account", "account", f"required{default or example}")
    yield _row(site, "runs", "work_root", site.work_root)
    items = site.folders.items()
    if items:
        each = (f"${name} {path}{_doubt(site, f'folders.{name}')}" for name, path in items)
        yield "folders", ", ".join(each)
    yield _row(site, "polled", "poll_seconds", f"every {site.poll_seconds:g} s")


def _partitions(site: Site) -> Iterator[tuple[str, ...]]:
    """Yield titles and rows, without columns in which nothing is written."""
    rows = [("name", "nodes", "GPUs", "jobs get", "longest", "billed"), *_partition_rows(site)]
    kept = [any(row[at] for row in rows[1:]) for at in range(len(rows[0]))]
    yield from (tuple(compress(row, kept)) for row in rows)


def _partition_rows(site: Site) -> Iterator[tuple[str, ...]]:
    for name, item in site.partitions.items():
        key = f"partitions.{name}"
        yield (
            name + (f" {_DOUBT}" if key in site.unverified else ""),
            f"{item.max_nodes:,}" + _doubt(site, f"{key}.max_nodes"),
            _gpus(item),
            "whole nodes" if item.allocation == "node" else "parts",
            item.max_time + _doubt(site, f"{key}.max_time"),
            bill(site, item) + _doubt(site, f"{key}.billing"),
        )


def partition_facts(site: Site, slurm_name: str) -> list[tuple[str, str]]:
    """Return the limits and the price of a partition as (label, words)."""
    item = site.slurm_partition(slurm_name)
    if item is None:
        return [("profile", f"{site.name} does not describe this partition")]
    facts = (
        ("job", f"at most {count(item.max_nodes, 'node')} for {item.max_time}"),
        ("", limits(item)),
        ("GPUs", _gpus(item)),
        ("gets", "whole nodes" if item.allocation == "node" else "what it requests"),
        ("an hour", f"{bill(site, item)}, in {site.billing_unit}"),
        ("grows to", item.grows_to or ""),
        ("purpose", item.purpose),
        ("needs", item.needs),
    )
    return [(label, words) for label, words in facts if words]


def _gpus(item: Partition) -> str:
    least, most = item.min_gpus, item.max_gpus
    if least and most:
        return f"{least}-{most}"
    return f"{least} up" if least else f"to {most}" if most else ""


def limits(item: Partition) -> str:
    """Return how the time limit depends on the job's size; "" if it does not."""
    parts = [f"at most {one.max_time} on up to {one.nodes:,} nodes" for one in item.max_time_of]
    if item.max_node_minutes:
        parts.append(f"at most {item.max_node_minutes:,} node-minutes")
    return ", ".join(parts)


def bill(site: Site, item: Partition) -> str:
    """Return the price of an hour in a partition, in the site's unit."""
    billing = item.billing
    if billing.kind == "node":
        return f"{billing.per_node_hour:g} per node"
    if billing.kind == "slice":
        shares = []
        for amount, noun in (
            (billing.cores, "cores" if billing.cores != 1 else "core"),
            (billing.memory_gib, "GiB"),
            (billing.gpus, site.node.device.plural if billing.gpus != 1 else site.node.device.noun),
        ):
            if amount < 1e6:
                shares.append(f"{amount:g} {noun}")
        return f"{billing.per_slice_hour:g} for each {', '.join(shares)}"
    rates = (
        (billing.per_gpu_hour, f"per {site.node.device.noun}"),
        (billing.per_core_hour, "per core"),
        (billing.per_gib_hour, "per GiB"),
        (billing.per_disk_gib_hour, "per GiB of disk"),
    )
    return " + ".join(f"{rate:g} {noun}" for rate, noun in rates if rate) or "nothing"


def _purposes(site: Site) -> Iterator[str]:
    yield " ".join([f"Price per hour, in {site.billing_unit}.", site.billing_note]).rstrip()
    for name, item in site.partitions.items():
        parts = [item.purpose] if item.purpose else []
        parts += [words for words in (limits(item), item.needs.rstrip(".")) if words]
        parts += [f"larger jobs go to {item.grows_to}"] if item.grows_to else []
        parts += [f"at most {count(item.max_jobs, 'job')} at a time"] if item.max_jobs else []
        if item.slurm_partition or item.arguments:
            options = [f"--partition={item.slurm_partition}"] if item.slurm_partition else []
            parts.append(" ".join([*options, *item.arguments]))
        if parts:
            yield f"{name}: {'; '.join(parts)}"


def _node(site: Site) -> Iterator[tuple[str, ...]]:
    node = site.node
    if not node.gpu_cores:
        return
    yield node.device.noun, "bus", "domain", "cores"
    for rank, cores in enumerate(node.gpu_cores):
        bus = node.gpu_bus[rank] if node.gpu_bus else ""
        domain = str(node.gpu_numa[rank]) if node.gpu_numa else ""
        yield str(rank), bus, domain, cores + _doubt(site, "node.gpu_cores")


def _node_words(site: Site) -> Iterator[str]:
    node = site.node
    some = f"{node.gpus} x {node.gpu}" + _doubt(site, "node.gpu")
    if not node.on_cpu:
        some += f" with {node.gpu_memory_gib} GiB each" + _doubt(site, "node.gpu_memory_gib")
    threads = f" of {node.threads_per_core} threads" if node.threads_per_core > 1 else ""
    cores = f"{node.cores} cores{threads} ({node.architecture})"
    yield f"{some}; {cores}; {node.memory_gib} GiB for jobs"
    if node.reserved_cores:
        kept = len(node.usable_cores)
        yield f"cores {node.reserved_cores} are reserved, so jobs have {kept}"
    if node.gpu_cores:
        left = node.usable_cores - frozenset[int]().union(*node.cores_of_gpu)
        if left:
            yield f"cores {format_cores(left)} are not near any {node.device.noun}"
    elif not node.on_cpu:
        yield node.no_gpu_cores
    if node.local_disk:
        yield f"disk: {node.local_disk}" + _doubt(site, "node.local_disk")
    if site.local_disk:
        most, name = site.local_disk.max_gib, site.local_disk.variable
        yield f"with `local_disk: N`, a job gets N GiB of it, at most {most:,}, in ${name}"
    if node.links:
        ways = (
            f"{node.links.in_node:g} GB/s within a node, {node.links.between_nodes:g} between nodes"
        )
        yield f"an all-reduce reaches {ways}" + _doubt(site, "node.links")
    reach = "reach" if site.internet_on_compute_nodes else "cannot reach"
    yield f"nodes {reach} the internet" + _doubt(site, "internet_on_compute_nodes")
    if site.python_on_compute_nodes is False:
        yield f"nodes have no {site.python}" + _doubt(site, "python_on_compute_nodes")


def _containers(site: Site) -> Iterator[tuple[str, str]]:
    for name, item in site.containers.items():
        default = " (default)" if name == site.default_container else ""
        yield name + default, (item.image or "no image") + _doubt(site, f"containers.{name}")


def _job(site: Site) -> Iterator[tuple[str, str]]:
    yield _row(site, "launchers", "launchers", ", ".join(site.launchers))
    if site.gpu_request:
        yield _row(site, "GPUs", "gpu_request", site.gpu_request.format(gpus="N"))
    fixed = ", exactly" if site.cores_fixed else ""
    yield _row(site, "cores", "cores_per_gpu", f"{site.cores_per_gpu} for each rank{fixed}")
    if not site.memory_option:
        yield _row(site, "memory", "memory_option", "must not be requested")
    elif site.memory_per_gpu:
        yield _row(site, "memory", "memory_per_gpu", f"{site.memory_per_gpu} for each GPU")
    if site.sbatch_arguments:
        yield _row(site, "sbatch", "sbatch_arguments", " ".join(site.sbatch_arguments))
    for line in site.modules:
        yield _row(site, "modules", "modules", line)
    if site.environment:
        yield _row(site, "sets", "environment", ", ".join(site.environment))
    if site.rules:
        many = count(len(site.rules), "rule")
        yield "checked", f"{many} for this site: known failures and slow settings"


def _row(site: Site, name: str, key: str, value: str) -> tuple[str, str]:
    return name, value + _doubt(site, key)


def _doubt(site: Site, key: str) -> str:
    """Return the mark of an unverified value: of its key, or of one above or below it."""
    pairs = [(f"{key}.", f"{one}.") for one in site.unverified]
    doubted = any(own.startswith(one) or one.startswith(own) for own, one in pairs)
    return f" {_DOUBT}" if doubted else ""
