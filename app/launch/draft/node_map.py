"""A map of a node: its cores, the reserved ones, and each rank's cores and GPU. Pure.

The map needs no colours: a digit is the rank of a core. All nodes of a job are alike. Masks that a
user gives are explained the same way (`lumitui bind SITE --explain MASK`).
"""

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from lumitui.app.job.launch import RankLayout
from lumitui.app.knowledge.masks import (
    Bind,
    MaskMistake,
    Starter,
    explained,
    mistakes,
    near_cores,
    physical,
    unexplained,
)
from lumitui.app.launch.layout import rank_bindings
from lumitui.remote.site.core_sets import format_cores, mask, parse_cores
from lumitui.remote.site.node import NodeShape
from lumitui.remote.site.profile import Site

_DIGITS = "0123456789abcdefghijklmnopqrstuvwABCDEFGHIJKLMNOPQRSTUVWXYZ+-"
_LEGEND = {"x": "x reserved  ", ".": ". free  "}
_CORES = re.compile(r"(?:--cpus-per-task=|-c)(\d{1,6})")
_CHOOSES = re.compile(r"--(gpus-per-task|ntasks-per-gpu|gpu[-_]bind)\b(?!=none)")
_BETWEEN = 3  # columns between two rows of cores side by side


@dataclass(frozen=True)
class CoreRow:
    """A row of neighbouring cores."""

    first: int
    last: int
    cells: str
    """A character per core: `x` reserved, `.` free, `*` shared by ranks, else its rank."""
    owners: tuple[int, ...]
    """The ranks with any of these cores."""


@dataclass(frozen=True)
class RankRow:
    """A rank of the node, with its GPU and cores."""

    rank: int
    gpu: str
    """The rank's GPU; "" if it runs on CPU cores only."""
    bus: str
    numa: str
    cores: str
    mask: str


@dataclass(frozen=True)
class NodeMap:
    """The map of a job's nodes."""

    title: str
    cores: tuple[CoreRow, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class MapPart:
    """A part of a line in one colour."""

    text: str
    rank: int | None = None
    """The rank that sets the colour."""


MapLine = tuple[MapPart, ...]


def node_map(site: Site, layout: RankLayout) -> NodeMap:
    """Return the map of each node of a job with this layout."""
    node, ranks = site.node, layout.ranks_per_node
    usable = len(node.usable_cores)
    each = f" x{layout.nodes}" if layout.nodes > 1 else ""
    has = f"{usable} of {node.cores} cores"
    title = f"node{each}  {has}, {layout.gpus_per_node} of {node.gpus} {node.device.plural}"
    notes = []
    if layout.unplanned:
        notes.append(f"The cores are not planned: {layout.unplanned}.")
    elif not layout.exact:
        notes.append("* shared: torchrun splits a NUMA domain's cores among its ranks.")
    if layout.nodes > 1:
        notes.append(
            f"{layout.world_size:,} ranks: rank = node x {ranks} + the digit; all nodes look the "
            "same."
        )
    return NodeMap(title, _core_rows(site, layout.planned_cores), tuple(notes))


def measured_map(site: Site, host: str, cores_of: Mapping[int, str]) -> NodeMap:
    """Return the map of one node with the measured cores of each of its local ranks."""
    cores = [cores_of.get(rank, "") for rank in range(max(cores_of, default=-1) + 1)]
    return NodeMap(f"{host}, as measured", _core_rows(site, cores), ())


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
    """Return the site's short word for a rank's device, such as `GCD`."""
    if site.node.on_cpu:
        return site.node.device.noun
    word = site.node.gpu.split()[0] if site.node.gpu.split() else ""
    return word if word.isalpha() and len(word) <= 4 else "GPU"  # `a1000` is another GPU


def node_map_lines(drawing: NodeMap, width: int, gpu: str = "GPU") -> tuple[MapLine, ...]:
    """Return the map in `width` columns, with as many rows of cores side by side as fit."""
    rows = [_core_parts(row, gpu) for row in drawing.cores]
    longest = max((sum(len(part.text) for part in row) for row in rows), default=0)
    across = max(1, (width + _BETWEEN) // (longest + _BETWEEN)) if len(rows) > 4 else 1
    down = -(-len(rows) // across)
    lines: list[MapLine] = []
    for row in range(down):
        line: list[MapPart] = []
        for parts in rows[row::down]:
            begun = sum(len(part.text) for part in line)
            column = -(-begun // (longest + _BETWEEN)) * (longest + _BETWEEN)
            line += [MapPart(" " * (column - begun)), *parts]
        lines.append(tuple(line))
    notes = [part for note in drawing.notes for part in textwrap.wrap(note, width)]
    cells = "".join(row.cells for row in drawing.cores)
    legend = "".join(words for cell, words in _LEGEND.items() if cell in cells) + "0-9 its rank"
    head = [(MapPart(text),) for text in (drawing.title, legend, "")]
    return (*head, *lines, *((MapPart(text),) for text in ("", *notes)))


def rank_lines(site: Site, layout: RankLayout, width: int) -> tuple[MapLine, ...]:
    """Return a heading and a line for each rank of a node: its GPU, its cores and their mask.

    Empty if the cores are not planned; without masks if they do not fit in `width` columns.
    """
    if not layout.planned_cores:
        return ()
    gpu = "" if site.node.on_cpu else f"{gpu_word(site):<6} NUMA  "
    rows = _rank_rows(site, layout.ranks_per_node, layout.planned_cores)
    head = f"rank  {gpu}{'cores':<11}  "
    has_room = len(head) + max(len(row.mask) for row in rows) <= width
    lines: list[MapLine] = [(MapPart(head + "mask" * has_room),)]
    for row in rows:
        device = f"{row.gpu:<6} {row.numa or '?':>4}  " if gpu else ""
        cores = MapPart(f"{row.cores:<11}", row.rank)
        rank = MapPart(f"{row.rank:>4}  {device}", row.rank)
        lines.append((rank, cores, MapPart(f"  {row.mask}" * has_room)))
    return tuple(lines)


def _core_parts(row: CoreRow, gpu: str) -> list[MapPart]:
    """Return a row of cores: their numbers, a part per rank, and the ranks' GPUs."""
    parts = [MapPart(f"{row.first:>3}-{row.last:<3} ")]
    for cell, cells in groupby(row.cells):
        rank = None if cell in "x.*" else _DIGITS.index(cell)
        parts.append(MapPart("".join(cells), rank))
    for rank in row.owners[:3]:
        parts.append(MapPart(f" {gpu}{rank}", rank))
    return [*parts, MapPart(" …")] if len(row.owners) > 3 else parts


def has_words(site: Site) -> str:
    """Return `8 x AMD MI250X GCD`, or `2 ranks on CPU`."""
    node = site.node
    return f"{node.device.some(node.gpus)} on CPU" if node.on_cpu else f"{node.gpus} x {node.gpu}"


def cells_of(site: Site, planned: Sequence[str]) -> list[str]:
    """Return a line for each row of neighbouring cores, with the rank of each."""
    return [
        f"{row.first:3d}-{row.last:<3d}    {' '.join(row.cells)}"
        for row in _core_rows(site, planned)
    ]


def bind_text(site: Site, ranks: int) -> str:
    """Return the output of `lumitui bind`: the cores, one line per rank, and srun's option."""
    bound = rank_bindings(site.node, ranks)
    node, planned = site.node, [item.cores for item in bound]
    reserved = format_cores(frozenset(range(node.cores)) - node.usable_cores) or "none"
    text = [
        f"{site.title}: {node.cores} cores, {has_words(site)} per node",
        f"reserved cores: {reserved}",
        "",
        "cores      . free, x reserved, 0-9 the core's local rank",
    ]
    text += cells_of(site, planned)
    text += ["", f"rank{'' if node.on_cpu else '  GPU  bus  NUMA'}  cores        mask"]
    for item in _rank_rows(site, ranks, planned):
        gpu = f"  {item.rank:3d}  {item.bus or '?':>3}  {item.numa or '?':>4}" if item.gpu else ""
        text.append(f"{item.rank:4d}{gpu}  {item.cores:<11}  {item.mask}")
    masks = ",".join(item.mask for item in bound)
    return "\n".join([*text, "", f"srun --cpu-bind=v,mask_cpu={masks}"])


@dataclass(frozen=True)
class TaskGets:
    """The cores and GPUs of one task of a node."""

    task: int
    written: str
    """The task's entry in the list of cores; "" without such a list."""
    cores: str
    """The cores as ranges; "" if there are none or Slurm chooses them."""
    numa: tuple[int, ...]
    """The NUMA domains of the GPUs near its cores."""
    near_gpus: tuple[int, ...]
    """The GPUs nearest to its cores."""
    gpus: tuple[int, ...]
    """The GPUs it uses: those of `--gpu-bind`, else the one with its number; () if unknown."""
    wrong: tuple[str, ...]
    """The ids of the mistakes that affect it."""


@dataclass(frozen=True)
class Explained:
    """A list of masks on a site's nodes."""

    site: str
    starter: Starter
    tasks: tuple[TaskGets, ...]
    mistakes: tuple[MaskMistake, ...]
    unread: tuple[str, ...] = ()
    """The options without a list, whose effect only Slurm knows."""

    @property
    def fails(self) -> bool:
        """Whether srun would refuse the masks, or ranks would share cores or GPUs."""
        return any(
            one.severity == "error"
            or one.id in ("mask-overlap", "gpu-overlap")
            or (one.id == "mask-count" and one.tasks)  # the list starts again
            for one in self.mistakes
        )

    @property
    def slurm_chooses(self) -> tuple[str, ...]:
        """The options by which Slurm chooses the GPUs of each task."""
        return tuple(option for option in self.unread if _CHOOSES.match(option))


_APART = MaskMistake(
    "gpu-cgroup",
    "error",
    "--gpu-bind hides the other GPUs from each task: ranks cannot copy from GPU to GPU, and "
    "cuda:LOCAL_RANK fails with `invalid device ordinal`.",
    "Omit --gpu-bind: ranks select their GPUs by LOCAL_RANK.",
)
"""A list of GPUs where the profile says that such options separate the GPUs of tasks."""


def explain_masks(site: Site, text: str, *, tasks: int | None, starter: Starter) -> Explained:
    """Return what the lists in `text` give each of a node's `tasks` tasks, and their mistakes.

    `tasks` defaults to one per GPU. Without a list in `text`, it raises InputError.
    """
    node = site.node
    binds = explained(text)
    cores = next((bind for bind in binds if not bind.of_gpus), None)
    gpus = next((bind for bind in binds if bind.of_gpus), None)
    options = unexplained(text)
    asked = next((int(found[1]) for each in options if (found := _CORES.fullmatch(each))), None)
    unread = tuple(each for each in options if not _CORES.fullmatch(each))
    chosen = gpus is None and any(map(_CHOOSES.match, unread))
    count = 1 if starter == "torchrun" else tasks or node.gpus
    wrong: list[MaskMistake] = []
    if cores:
        wrong += mistakes(cores, node, tasks=count, starter=starter, gpus=gpus, cores=asked)
    if gpus:
        wrong += mistakes(gpus, node, tasks=count, starter=starter)
        if site.task_gpus_apart and count > 1:
            wrong.append(_APART)
    wrong = [replace(one, do=one.do.replace("bind SITE", f"bind {site.name}"))
             for one in wrong if not (chosen and one.id == "mask-order")]  # fmt: skip
    rows = tuple(_task(task, cores, gpus, node, starter, wrong) for task in range(count))
    rows = tuple(replace(row, gpus=()) for row in rows) if chosen else rows
    return Explained(site.name, starter, rows, tuple(wrong), unread)


def _task(
    task: int,
    cores: Bind | None,
    gpus: Bind | None,
    node: NodeShape,
    starter: Starter,
    wrong: list[MaskMistake],
) -> TaskGets:
    entry = cores.of_task(task) if cores else None
    numbers = entry.numbers if entry else frozenset[int]()
    near = near_cores(numbers, node)
    own = (task,) if task < node.gpus else ()
    uses = tuple(sorted(gpus.of_task(task).numbers)) if gpus else own
    domains = sorted({node.gpu_numa[gpu] for gpu in near}) if node.gpu_numa else []
    return TaskGets(
        task=task,
        written=entry.written if entry else "",
        cores=format_cores(numbers),
        numa=tuple(domains),
        near_gpus=near,
        gpus=tuple(range(node.gpus)) if starter == "torchrun" else uses,
        wrong=tuple(dict.fromkeys(one.id for one in wrong if task in one.tasks)),
    )


def masks_text(site: Site, masks: Explained) -> str:
    """Return the explanation as text: the cores, one line per task, and the mistakes."""
    node = site.node
    planned = [_drawn(row.cores, node) for row in masks.tasks]
    lines = [f"{site.title}: {node.cores} cores, {has_words(site)} per node", ""]
    if any(planned):
        lines += [
            "cores      . free, x reserved, * several tasks, 0-9 the core's local task",
            *cells_of(site, planned),
            "",
        ]
    lines += _table(masks, node)
    texts = [f"{one.severity}: {one.message}\n  → {one.do}" for one in masks.mistakes]
    said = [*(texts or [_valid(masks, node)]), *_unread(masks), *_where(site, masks)]
    return "\n".join([*lines, "", *said])


def _unread(masks: Explained) -> list[str]:
    """Return the note on unexplained options and their unknown effect."""
    if not masks.unread:
        return []
    given = ", ".join(masks.unread)
    if masks.slurm_chooses and not any(row.gpus for row in masks.tasks):
        return [f"Not explained: {given}. Slurm chooses the GPUs, so lumitui cannot tell which GPU "
                "each task uses."]  # fmt: skip
    return [f"Not explained: {given}."]


def _valid(masks: Explained, node: NodeShape) -> str:
    if masks.slurm_chooses and not any(row.gpus for row in masks.tasks):
        return "No mistakes found in the list of cores."
    if not any(row.cores for row in masks.tasks):
        return "No mistakes found; it binds no cores."
    if not node.gpu_cores:
        return f"No mistakes found in its syntax; {node.no_gpu_cores}."
    if masks.starter == "torchrun":
        return "No mistakes found: torchrun's workers have cores near each GPU."
    return "No mistakes found: each task has the cores nearest to its GPU."


def _where(site: Site, masks: Explained) -> list[str]:
    """Return the condition for such masks: whole nodes."""
    shared = [name for name, part in site.partitions.items() if part.allocation == "shared"]
    if not shared or masks.fails:
        return []
    names = f"{', '.join(shared[:4])}{' …' if shared[4:] else ''}"
    return [f"This is correct only if the job has whole nodes; nodes are shared in {names}."]


def _drawn(cores: str, node: NodeShape) -> str:
    """Return the task's cores that exist on the node, as ranges."""
    return format_cores(physical(frozenset(parse_cores(cores)), node))


def _table(masks: Explained, node: NodeShape) -> list[str]:
    wide = max([len(row.cores) for row in masks.tasks] + [6])
    head = f"task  {'cores':<{wide}}"
    if not node.on_cpu:
        head += "  NUMA  near GPU  uses GPU"
    lines = [head.rstrip()]
    for row in masks.tasks:
        text = f"{row.task:4d}  {row.cores or 'any':<{wide}}"
        if not node.on_cpu:
            near = format_cores(row.near_gpus) or ("none" if node.gpu_cores and row.cores else "?")
            numa = format_cores(row.numa) or ("-" if node.gpu_numa and row.cores else "?")
            text += f"  {numa:>4}  {near:>8}  {format_cores(row.gpus) or '?':>8}"
        lines.append(f"{text}  {'<- ' + ', '.join(row.wrong) if row.wrong else ''}".rstrip())
    return lines
