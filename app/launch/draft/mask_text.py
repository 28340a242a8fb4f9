"""The output of `lumitui bind SITE --explain MASK`: each task's cores, and mistakes. Pure."""

from dataclasses import dataclass

from lumitui.app.knowledge.masks import (
    Bind,
    MaskMistake,
    Starter,
    explained,
    mistakes,
    near_cores,
    physical,
)
from lumitui.app.launch.draft.node_map import cells_of, has_words
from lumitui.remote.site.core_sets import format_cores, parse_cores
from lumitui.remote.site.node import NodeShape
from lumitui.remote.site.profile import Site


@dataclass(frozen=True)
class TaskGets:
    """The cores and GPUs of one task of a node."""

    task: int
    written: str
    """Its entry in the list of cores; "" without such a list."""
    cores: str
    """As ranges; "": none, or Slurm chooses them."""
    numa: tuple[int, ...]
    """The NUMA domains of the GPUs near its cores."""
    near_gpus: tuple[int, ...]
    """The GPUs nearest to its cores."""
    gpus: tuple[int, ...]
    """The GPUs that it uses: those of `--gpu-bind`, else that of its own number; (): unknown."""
    wrong: tuple[str, ...]
    """The ids of the mistakes that affect it."""


@dataclass(frozen=True)
class Explained:
    """A list of masks on a site's nodes."""

    site: str
    starter: Starter
    tasks: tuple[TaskGets, ...]
    mistakes: tuple[MaskMistake, ...]

    @property
    def fails(self) -> bool:
        """Whether srun would refuse the masks, or ranks would share cores or GPUs."""
        return any(one.severity == "error" for one in self.mistakes)


def explain_masks(site: Site, text: str, *, tasks: int | None, starter: Starter) -> Explained:
    """Return what the lists in `text` give each of `tasks` tasks of a node, and their mistakes.

    `tasks` defaults to one per GPU.

    Raises:
        InputError: `text` contains no list.
    """
    node = site.node
    binds = explained(text)
    cores = next((bind for bind in binds if not bind.of_gpus), None)
    gpus = next((bind for bind in binds if bind.of_gpus), None)
    count = 1 if starter == "torchrun" else tasks or node.gpus
    wrong: list[MaskMistake] = []
    if cores:
        wrong += mistakes(cores, node, tasks=count, starter=starter, gpus=gpus)
    if gpus:
        wrong += mistakes(gpus, node, tasks=count, starter=starter)
    rows = tuple(_task(task, cores, gpus, node, starter, wrong) for task in range(count))
    return Explained(site.name, starter, rows, tuple(wrong))


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
    lines = [f"{site.title}: {node.cores} cores, {has_words(site)} a node", ""]
    if any(planned):
        lines += [
            "cores      . free, x reserved, * several tasks, 0-9 the core's local task",
            *cells_of(site, planned),
            "",
        ]
    lines += _table(masks, node)
    texts = [f"{one.severity}: {one.message}\n  → {one.do}" for one in masks.mistakes]
    return "\n".join([*lines, "", *(texts or [_valid(masks, node)]), *_where(site, masks)])


def _valid(masks: Explained, node: NodeShape) -> str:
    if not any(row.cores for row in masks.tasks):
        return "No mistakes found; it binds no cores."
    if not node.gpu_cores:
        return f"No mistakes found in its form; {node.no_gpu_cores}."
    if masks.starter == "torchrun":
        return "No mistakes found: torchrun's workers have cores near each GPU."
    return "No mistakes found: each task has the cores nearest to its GPU."


def _where(site: Site, masks: Explained) -> list[str]:
    """Return the condition for such masks: the job must have its nodes to itself."""
    shared = [name for name, part in site.partitions.items() if part.allocation == "shared"]
    if not shared or masks.fails:
        return []
    names = f"{', '.join(shared[:4])}{' …' if shared[4:] else ''}"
    return [f"This is correct only if the job has whole nodes; nodes are shared in {names}."]


def _drawn(cores: str, node: NodeShape) -> str:
    """Return those cores of a task that the node has, as ranges."""
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
            numa = format_cores(row.numa) or "?"
            text += f"  {numa:>4}  {near:>8}  {format_cores(row.gpus) or '?':>8}"
        lines.append(f"{text}  {'<- ' + ', '.join(row.wrong) if row.wrong else ''}".rstrip())
    return lines
