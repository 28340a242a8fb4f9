"""What `lumitui bind SITE --explain MASK` says: what each task gets, and what is wrong. Pure."""

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
    """What one task of a node gets."""

    task: int
    written: str
    """Its entry of the list of cores; "": there is no such list."""
    cores: str
    """As ranges; "": none, or any that Slurm chooses."""
    numa: tuple[int, ...]
    """The NUMA domains of the GPUs that are near to its cores."""
    near_gpus: tuple[int, ...]
    """The GPUs that are nearest to its cores."""
    gpus: tuple[int, ...]
    """The GPUs that it uses: those of `--gpu-bind`, else that of its own number; (): not known."""
    wrong: tuple[str, ...]
    """The ids of the mistakes that it has part in."""


@dataclass(frozen=True)
class Explained:
    """A list of masks on a site's nodes."""

    site: str
    starter: Starter
    tasks: tuple[TaskGets, ...]
    mistakes: tuple[MaskMistake, ...]

    @property
    def fails(self) -> bool:
        """Return whether srun would refuse it, or the ranks would share what they must not."""
        return any(one.severity == "error" for one in self.mistakes)


def explain_masks(site: Site, text: str, *, tasks: int | None, starter: Starter) -> Explained:
    """Return what the lists in `text` give each of `tasks` tasks of a node, and their mistakes.

    `tasks` None: one for each GPU.

    Raises:
        InputError: there is no list in `text`.
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


def masks_text(site: Site, found: Explained) -> str:
    """Return what is printed: the cores, a line for each task, what is wrong."""
    node = site.node
    planned = [_drawn(row.cores, node) for row in found.tasks]
    lines = [f"{site.title}: {node.cores} cores, {has_words(site)} a node", ""]
    if any(planned):
        lines += [
            "cores      . free, x reserved, * several tasks, 0-9 the local task that has it",
            *cells_of(site, planned),
            "",
        ]
    lines += _table(found, node)
    texts = [f"{one.severity}: {one.message}\n  → {one.do}" for one in found.mistakes]
    return "\n".join([*lines, "", *(texts or [_nothing_wrong(found, node)]), *_where(site, found)])


def _nothing_wrong(found: Explained, node: NodeShape) -> str:
    if not any(row.cores for row in found.tasks):
        return "Nothing is wrong with it; it binds no cores."
    if not node.gpu_cores:
        return f"Nothing is wrong with its form; {node.no_gpu_cores}."
    if found.starter == "torchrun":
        return "Nothing is wrong with it: torchrun's workers have cores near to each GPU."
    return "Nothing is wrong with it: each task has the cores nearest to its GPU."


def _where(site: Site, found: Explained) -> list[str]:
    """Return where such a list is right: only on nodes that the job has to itself."""
    shared = [name for name, part in site.partitions.items() if part.allocation == "shared"]
    if not shared or found.fails:
        return []
    names = f"{', '.join(shared[:4])}{' …' if shared[4:] else ''}"
    return [f"It is right only if the job has the whole node; nodes are shared in {names}."]


def _drawn(cores: str, node: NodeShape) -> str:
    """Return the cores of a task that a node has, so that they can be drawn."""
    return format_cores(physical(frozenset(parse_cores(cores)), node))


def _table(found: Explained, node: NodeShape) -> list[str]:
    wide = max([len(row.cores) for row in found.tasks] + [6])
    head = f"task  {'cores':<{wide}}"
    if not node.on_cpu:
        head += "  NUMA  near GPU  uses GPU"
    lines = [head.rstrip()]
    for row in found.tasks:
        text = f"{row.task:4d}  {row.cores or 'any':<{wide}}"
        if not node.on_cpu:
            near = format_cores(row.near_gpus) or ("none" if node.gpu_cores and row.cores else "?")
            numa = format_cores(row.numa) or "?"
            text += f"  {numa:>4}  {near:>8}  {format_cores(row.gpus) or '?':>8}"
        lines.append(f"{text}  {'<- ' + ', '.join(row.wrong) if row.wrong else ''}".rstrip())
    return lines
