"""A map of a node: its cores, which are reserved, and which rank has which cores and GPU. Pure.

It reads without colours: a digit is the rank that has a core. All nodes of a job are alike.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from lumitui.app.job.launch import RankLayout
from lumitui.app.launch.core_binding import rank_bindings
from lumitui.remote.site.core_sets import format_cores, mask, parse_cores
from lumitui.remote.site.profile import Site

_DIGITS = "0123456789abcdefghijklmnopqrstuvwABCDEFGHIJKLMNOPQRSTUVWXYZ+-"
_LEGEND = "x reserved  . free  0-9 its rank"
_MASKS_FROM = 76  # columns


@dataclass(frozen=True)
class CoreRow:
    """Some neighbouring cores."""

    first: int
    last: int
    cells: str
    """A character for each: `x` reserved, `.` free, `*` shared by ranks, else its rank."""
    owners: tuple[int, ...]
    """The ranks that have any of them."""


@dataclass(frozen=True)
class RankRow:
    """A rank of the node, and what it has there."""

    rank: int
    gpu: str
    """Its GPU; "": it runs on its cores alone."""
    bus: str
    numa: str
    cores: str
    mask: str


@dataclass(frozen=True)
class NodeMap:
    """What there is to draw of a job's nodes."""

    title: str
    cores: tuple[CoreRow, ...]
    ranks: tuple[RankRow, ...]
    notes: tuple[str, ...]


def node_map(site: Site, layout: RankLayout) -> NodeMap:
    """Return the map of each node of a job with this layout."""
    node, ranks = site.node, layout.ranks_per_node
    usable = len(node.usable_cores)
    each = f" x{layout.nodes}" if layout.nodes > 1 else ""
    has = f"{usable} of {node.cores} cores"
    title = f"node{each}  {has}, {layout.gpus_per_node} of {node.gpus} {node.device.plural}"
    notes = []
    if layout.unplanned:
        notes.append(f"No cores are promised: {layout.unplanned}.")
    elif not layout.exact:
        notes.append("* shared: torchrun splits a domain's cores among its ranks.")
    if layout.nodes > 1:
        notes.append(
            f"{layout.world_size:,} ranks: rank = node x {ranks} + the digit; all nodes are alike."
        )
    cells = _core_rows(site, layout.planned_cores)
    return NodeMap(title, cells, _rank_rows(site, ranks, layout.planned_cores), tuple(notes))


def _core_rows(site: Site, planned: Sequence[str]) -> tuple[CoreRow, ...]:
    node = site.node
    owners: dict[int, list[int]] = {}
    for rank, cores in enumerate(planned):
        for core in parse_cores(cores):
            owners.setdefault(core, []).append(rank)
    width = 8 if node.cores % 8 == 0 else 10
    rows = []
    for first in range(0, node.cores, width):
        span = range(first, min(first + width, node.cores))
        cells = "".join(
            "x" if core not in node.usable_cores else _cell(owners.get(core, [])) for core in span
        )
        here = {rank for core in span for rank in owners.get(core, [])}
        rows.append(CoreRow(first, span[-1], cells, tuple(sorted(here))))
    return tuple(rows)


def _cell(ranks: Sequence[int]) -> str:
    if len(ranks) > 1:
        return "*"
    return _DIGITS[ranks[0] % len(_DIGITS)] if ranks else "."


def _rank_rows(site: Site, ranks: int, planned: Sequence[str]) -> tuple[RankRow, ...]:
    node, rows = site.node, []
    for rank in range(ranks):
        cores = planned[rank] if planned else ""
        rows.append(
            RankRow(
                rank,
                "" if node.on_cpu else f"{gpu_word(site)}{rank}",
                node.gpu_bus[rank] if rank < len(node.gpu_bus) else "",
                str(node.gpu_numa[rank]) if rank < len(node.gpu_numa) else "",
                cores or "not promised",
                mask(parse_cores(cores), node.cores) if cores else "",
            )
        )
    return tuple(rows)


def gpu_word(site: Site) -> str:
    """Return what the site calls what a rank runs on, in a word: `GCD`."""
    if site.node.on_cpu:
        return site.node.device.noun
    word = site.node.gpu.split()[0] if site.node.gpu.split() else ""
    return word if word.isalnum() and len(word) <= 4 else "GPU"


def node_map_lines(found: NodeMap, width: int, gpu: str = "GPU") -> tuple[str, ...]:
    """Return the map laid out in `width` columns: two rows of cores beside each other if wide."""
    parts = []
    for row in found.cores:
        names = _names(row.owners, gpu)
        parts.append(f"{row.first:>3}-{row.last:<3} {row.cells} {names}"[:width])
    longest = max(map(len, parts), default=0)
    if 2 * longest + 3 <= width and len(parts) > 4:
        half = (len(parts) + 1) // 2
        right = [*parts[half:], ""][:half]
        parts = [f"{a:<{longest}}   {b}".rstrip() for a, b in zip(parts[:half], right, strict=True)]
    has_gpus = any(item.gpu for item in found.ranks)
    head = ["rank  GPU    NUMA  cores" if has_gpus else "rank  cores"]
    wide = width >= _MASKS_FROM
    for item in found.ranks:
        tail = f"{item.cores:<14} {item.mask}".rstrip() if wide else item.cores
        place = f"{item.gpu:<5}  {item.numa or '?':>4}  " if has_gpus else ""
        head.append(f"{item.rank:>4}  {place}{tail}")
    head[0] += f"{'':>10}mask" if wide and any(item.mask for item in found.ranks) else ""
    notes = [part for note in found.notes for part in textwrap.wrap(note, width)]
    return (found.title, _LEGEND, "", *parts, "", *head, "", *notes)


def _names(owners: Sequence[int], gpu: str) -> str:
    return " ".join(f"{gpu}{rank}" for rank in owners[:3]) + (" …" if len(owners) > 3 else "")


def has_words(site: Site) -> str:
    """Return `8 x AMD MI250X GCD`, or `2 ranks on CPU`."""
    node = site.node
    return f"{node.device.some(node.gpus)} on CPU" if node.on_cpu else f"{node.gpus} x {node.gpu}"


def cells_of(site: Site, planned: Sequence[str]) -> list[str]:
    """Return a line for each row of neighbouring cores, with what has each of them."""
    return [
        f"{row.first:3d}-{row.last:<3d}    {' '.join(row.cells)}"
        for row in _core_rows(site, planned)
    ]


def bind_text(site: Site, ranks: int) -> str:
    """Return what `lumitui bind` prints: the cores, a line for each rank, and srun's option.

    Raises:
        InputError: more ranks than GPUs, or the profile does not know the GPUs' cores.
    """
    bound = rank_bindings(site.node, ranks)
    node, planned = site.node, [item.cores for item in bound]
    reserved = format_cores(frozenset(range(node.cores)) - node.usable_cores) or "none"
    text = [
        f"{site.title}: {node.cores} cores, {has_words(site)} a node",
        f"reserved cores: {reserved}",
        "",
        "cores      . free, x reserved, 0-9 the local rank that has it",
    ]
    text += cells_of(site, planned)
    text += ["", f"rank{'' if node.on_cpu else '  GPU  bus  NUMA'}  cores        mask"]
    for item in _rank_rows(site, ranks, planned):
        gpu = f"  {item.rank:3d}  {item.bus or '?':>3}  {item.numa or '?':>4}" if item.gpu else ""
        text.append(f"{item.rank:4d}{gpu}  {item.cores:<11}  {item.mask}")
    masks = ",".join(item.mask for item in bound)
    return "\n".join([*text, "", f"srun --cpu-bind=v,mask_cpu={masks}"])
