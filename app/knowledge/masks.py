"""The bindings of tasks by `--cpu-bind` and `--gpu-bind`, and their mistakes on a site's node.

Source: srun(1), --cpu-bind and --gpu-bind; slurm/src/common/slurm_resource_info.c,
`slurm_verify_cpu_bind`: the type's list follows `:` or `=`, and `v,` or `q,` may precede the type.
Tested: srun 22.05 and 26.05 also accept `,v` and `,quiet` after a list of cores, and refuse both
after a list of GPUs.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from lumitui.remote.site.core_sets import format_cores
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.finding import Severity
from lumitui.remote.site.node import NodeShape

Kind = Literal["mask_cpu", "map_cpu", "mask_gpu", "map_gpu"]
"""A list of masks or numbers of cores or GPUs, with one entry for each task on a node."""

_TYPE = re.compile(r"(mask_cpu|map_cpu|mask_gpu|map_gpu)[:=](.*)", re.DOTALL)
_LOUD = re.compile(r"(?:(?:q|quiet|v|verbose),)+", re.IGNORECASE)
_LOUD_BEHIND = re.compile(r"(?:,(?:q|quiet|v|verbose))+$", re.IGNORECASE)
_OPTION = re.compile(r"--(?:cpu|gpu)[-_]bind=(.*)", re.DOTALL)
_REPEATED = re.compile(r"(.+)\*([0-9]{1,4})")
_NUMBER = re.compile(r"[0-9]{1,5}|0[xX][0-9a-fA-F]{1,4}")
_MASK = re.compile(r"(?:0[xX])?([0-9a-fA-F]{1,256})")
_MOST = 4096
"""Maximum number of entries; nobody writes a longer list manually."""


@dataclass(frozen=True)
class TaskBinding:
    """One entry of the list: the cores or GPUs of one task on each node."""

    written: str
    numbers: frozenset[int] = frozenset()
    """Cores or GPUs; empty for a mask without bits, or an entry that is not a number."""
    readable: bool = True


@dataclass(frozen=True)
class Bind:
    """A list of masks or numbers, as written."""

    kind: Kind
    entries: tuple[TaskBinding, ...]

    @property
    def of_gpus(self) -> bool:
        """Whether the list is of GPUs, not of cores."""
        return self.kind.endswith("gpu")

    def of_task(self, task: int) -> TaskBinding:
        """Return the entry for task `task` of a node; a list that is too short repeats."""
        return self.entries[task % len(self.entries)]


def read_bind(value: str) -> Bind | None:
    """Return the list in a value of `--cpu-bind` or `--gpu-bind`, like `v,mask_cpu:0xfe,0xfe00`.

    Return None if it has no list, like `cores` or `closest`, or if it contains a variable.
    """
    found = _TYPE.fullmatch(_LOUD.sub("", value.strip(), count=1))
    if not found or "$" in found[2]:
        return None
    cores = found[1].endswith("cpu")
    return _bind(cast(Kind, found[1]), _LOUD_BEHIND.sub("", found[2]) if cores else found[2])


def unexplained(text: str) -> tuple[str, ...]:
    """Return the options in a user's input that list neither masks nor numbers."""
    return tuple(
        word
        for word in shlex.split(text)
        if word.startswith("-")
        and not ((found := _OPTION.fullmatch(word)) and (read_bind(found[1]) or _bare(found[1])))
    )


def explained(text: str) -> tuple[Bind, ...]:
    """Return the lists in a user's input: a value, a bare list, or options of `srun`.

    A bare list contains masks if an entry begins with `0x`, is longer than three characters or
    contains a letter; otherwise it contains cores.

    Raises:
        InputError: the input contains no list.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise _no_list(text) from error
    options = [found[1] for word in words if (found := _OPTION.fullmatch(word))]
    binds = [read_bind(value) or _bare(value) for value in options or words]
    known = tuple(bind for bind in binds if bind is not None)
    if not known or (len(known) < len(binds) and not options):
        raise _no_list(text)
    return known


def _bare(text: str) -> Bind | None:
    """Return a list that has no type, or None if the text is not a list."""
    listed = _LOUD_BEHIND.sub("", _LOUD.sub("", text.strip(), count=1))
    parts = [part.strip() for part in listed.split(",")]
    if any(part.lower().startswith("0x") for part in parts) and "$" not in text:
        return _bind("mask_cpu", listed)
    if not all(re.fullmatch(r"[0-9a-fA-F]+(\*[0-9]+)?", part) for part in parts):
        return None
    masks = any(len(part) > 3 or re.search("[a-fA-F]", part) for part in parts)
    return _bind("mask_cpu" if masks else "map_cpu", listed)


def _bind(kind: Kind, text: str) -> Bind:
    entries: list[TaskBinding] = []
    for part in text.split(","):
        repeated = _REPEATED.fullmatch(part.strip())
        word, times = (repeated[1], int(repeated[2])) if repeated else (part.strip(), 1)
        entries += [_entry(kind, word)] * min(max(times, 1), _MOST)
        if len(entries) >= _MOST:
            break
    return Bind(kind, tuple(entries[:_MOST]))


def _entry(kind: Kind, word: str) -> TaskBinding:
    if kind.startswith("map"):
        fits = _NUMBER.fullmatch(word)
        base = 16 if word[:2].lower() == "0x" else 10
        return (
            TaskBinding(word, frozenset({int(word, base)}))
            if fits
            else TaskBinding(word, readable=False)
        )
    found = _MASK.fullmatch(word)
    if not found:
        return TaskBinding(word, readable=False)
    bits = int(found[1], 16)
    return TaskBinding(word, frozenset(at for at in range(bits.bit_length()) if bits >> at & 1))


def _no_list(text: str) -> InputError:
    return InputError(
        f"{text[:80]!r} is not a list of masks, cores or GPUs.",
        "Write it in srun's form: `mask_cpu:0xfe,0xfe00`, `map_cpu:1,9` or `map_gpu:4,5`; quote "
        "a whole `--cpu-bind=…`, and replace variables with their values.",
    )


Starter = Literal["srun", "torchrun"]
"""The creator of the ranks: Slurm, with one task per GPU; or one torchrun per node, whose workers
all stay inside the mask of that one task."""


@dataclass(frozen=True)
class MaskMistake:
    """A mistake in a list."""

    id: str
    severity: Severity
    message: str
    do: str
    tasks: tuple[int, ...] = ()
    """The affected local tasks; () for the whole list."""


def mistakes(
    bind: Bind,
    node: NodeShape,
    *,
    tasks: int,
    starter: Starter = "srun",
    gpus: Bind | None = None,
    cores: int | None = None,
) -> tuple[MaskMistake, ...]:
    """Return the mistakes in `bind` for `tasks` tasks on a node.

    `gpus` is the list of `--gpu-bind` that accompanies a list of cores; without it, task i uses GPU
    i. `cores` is the job's `--cpus-per-task`, if known.
    """
    tasks = 1 if starter == "torchrun" else tasks
    broken = tuple(_unreadable(bind))
    if broken:
        return broken
    if bind.of_gpus:
        return (*_gpus(bind, node, tasks), *_count(bind, tasks))
    found = [
        *_empty(bind, tasks),
        *_outside(bind, node, tasks),
        *_reserved(bind, node, tasks, gpus),
    ]
    if starter == "torchrun":
        return (*found, *_torchrun(bind, node))
    found += _count(bind, tasks)
    found += _overlap(bind, node, tasks)
    found += _few(bind, node, tasks, cores)
    if not any(one.id == "mask-outside" for one in found):
        found += _order(bind, node, tasks, gpus)
    return tuple(found)


def near_cores(cores: frozenset[int], node: NodeShape) -> tuple[int, ...]:
    """Return the GPUs to which any of `cores` is nearest; () if none, or unknown."""
    own = physical(cores, node)
    return tuple(gpu for gpu, near in enumerate(node.cores_of_gpu) if own & near)


def physical(cores: frozenset[int], node: NodeShape) -> frozenset[int]:
    """Return the cores of hardware threads: thread 64 of a node with 64 cores is on core 0."""
    whole = node.cores * node.threads_per_core
    return frozenset(core % node.cores for core in cores if core < whole)


def _unreadable(bind: Bind) -> Iterator[MaskMistake]:
    for task, entry in enumerate(bind.entries):
        if not entry.readable:
            kind = "a core number" if bind.kind == "map_cpu" else "a GPU number"
            meant = "a hexadecimal mask" if bind.kind.startswith("mask") else kind
            yield MaskMistake(
                "mask-unreadable",
                "error",
                f"{entry.written!r} is not {meant}, so srun refuses the step.",
                f"Write {meant} for each task on a node, separated by commas, without spaces.",
                (task,),
            )


def _empty(bind: Bind, tasks: int) -> Iterator[MaskMistake]:
    empty = tuple(task for task in range(tasks) if not bind.of_task(task).numbers)
    if empty:
        yield MaskMistake(
            "mask-empty",
            "error",
            f"The mask of {_some(empty)} contains no core, so srun refuses the step.",
            "Give each task the cores nearest to its GPU, which `lumitui bind SITE` prints.",
            empty,
        )


def _outside(bind: Bind, node: NodeShape, tasks: int) -> Iterator[MaskMistake]:
    whole = node.cores * node.threads_per_core
    wrong = _tasks_from(bind, tasks, whole)
    if wrong:
        highest = max(max(bind.of_task(task).numbers) for task in wrong)
        yield MaskMistake(
            "mask-outside",
            "error",
            f"{_some(wrong).capitalize()} would get core {highest}, but a node here has "
            f"{node.cores} cores: the list is for a different kind of node.",
            "Use the list for this site's nodes, which `lumitui bind SITE` prints.",
            wrong,
        )


def _reserved(bind: Bind, node: NodeShape, tasks: int, gpus: Bind | None) -> Iterator[MaskMistake]:
    closed = frozenset(range(node.cores)) - node.usable_cores
    own = {task: physical(bind.of_task(task).numbers, node) for task in range(tasks)}
    wrong = tuple(task for task, cores in own.items() if cores & closed)
    if wrong:
        cores = _cores(format_cores(core for task in wrong for core in own[task] & closed))
        gpu = _gpu_of(wrong[0], gpus) if tasks == node.gpus else None
        near = node.gpu_cores[gpu] if gpu is not None and gpu < len(node.gpu_cores) else ""
        rest = near or format_cores(own[wrong[0]] - closed or node.usable_cores)
        yield MaskMistake(
            "mask-reserved",
            "error",
            f"{_some(wrong).capitalize()} would get {cores}, which the system reserves, "
            "so srun refuses the step.",
            f"Omit {cores}: give {_listed(wrong, rest)}.",
            wrong,
        )


def _listed(wrong: Sequence[int], cores: str) -> str:
    """Return `task 1 the cores 57-63`, and where to find the masks of all tasks."""
    rest = ", and so on" * bool(wrong[1:])
    return f"task {wrong[0]} the {_cores(cores)}{rest}; `lumitui bind SITE` prints each GPU's mask"


def _count(bind: Bind, tasks: int) -> Iterator[MaskMistake]:
    count, kind = len(bind.entries), "GPUs" if bind.of_gpus else "cores"
    if count < tasks:
        yield MaskMistake(
            "mask-count",
            "warning",
            f"The list of {kind} has {_entries(count)} for {tasks} tasks on a node, so srun starts "
            f"again at the first one: task {count} gets the same entry as task 0.",
            f"Write {tasks} entries, one for each task on a node.",
            tuple(range(count, tasks)),
        )
    elif count > tasks:
        yield MaskMistake(
            "mask-count",
            "note",
            f"The list of {kind} has {_entries(count)} for {tasks} tasks on a node; the last "
            f"{count - tasks} have no effect.",
            f"Write {tasks} entries, one for each task on a node.",
        )


def _torchrun(bind: Bind, node: NodeShape) -> Iterator[MaskMistake]:
    """Yield the mistake that a node's torchrun is bound to the cores of only some workers."""
    first, count = bind.entries[0].numbers, len(bind.entries)
    if not first or len(near_cores(first, node)) == len(node.cores_of_gpu):
        return
    cores = f"{len(first)} core{'s' if len(first) > 1 else ''}"
    ignored = f" srun starts one torchrun on each node, so the other {count - 1} have no effect."
    yield MaskMistake(
        "mask-torchrun",
        "error",
        f"All {node.gpus} workers of torchrun would share the {cores} of the first entry."
        + (ignored if count > 1 else ""),
        "Omit the list, and have torchrun bind its workers with `--numa-binding=exclusive` if "
        "it has that option; or start the ranks with srun.",
        (0,),
    )


def _overlap(bind: Bind, node: NodeShape, tasks: int) -> Iterator[MaskMistake]:
    owners: dict[int, list[int]] = {}
    for task in range(min(tasks, len(bind.entries))):
        for core in physical(bind.of_task(task).numbers, node):
            owners.setdefault(core, []).append(task)
    shared = {core: found for core, found in owners.items() if len(found) > 1}
    if shared:
        wrong = tuple(sorted({task for found in shared.values() for task in found}))
        yield MaskMistake(
            "mask-overlap",
            "warning",
            f"{_some(wrong).capitalize()} share {_cores(format_cores(shared))}, and slow each "
            "other down.",
            "Give each task its own cores, which `lumitui bind SITE` prints.",
            wrong,
        )


def _few(bind: Bind, node: NodeShape, tasks: int, cores: int | None) -> Iterator[MaskMistake]:
    """Yield the mistake that tasks have one core, or fewer than half of those the job requests."""
    most = max(len(physical(bind.of_task(task).numbers, node)) for task in range(tasks))
    share = len(node.usable_cores) // tasks
    if not 0 < most < share or (most > 1 if cores is None else most * 2 >= cores):
        return
    has = f"Each task is bound to {most} core{'s' if most > 1 else ''}"
    if cores is None:
        message = f"{has}, but its share of a node is {share}: its threads and data loaders take "
        message += "turns on that core."
    else:
        message = f"{has}, but the job requests {cores} for it: the others are idle."
    yield MaskMistake(
        "mask-few",
        "note" if cores is None else "warning",
        message,
        "Write the masks that `lumitui bind SITE` prints, with all cores near each GPU.",
    )


def _order(bind: Bind, node: NodeShape, tasks: int, gpus: Bind | None) -> Iterator[MaskMistake]:
    """Yield the mistake that tasks have cores nearest to other GPUs than their own."""
    far: dict[int, tuple[int, tuple[int, ...]]] = {}
    wide: dict[int, tuple[int, tuple[int, ...]]] = {}
    for task in range(min(tasks, len(bind.entries))):
        gpu = _gpu_of(task, gpus)
        near = near_cores(bind.of_task(task).numbers, node)
        if gpu is not None and gpu < len(node.cores_of_gpu) and near != (gpu,):
            (wide if gpu in near else far)[task] = (gpu, near)
    if wide and not far and tasks > 1:
        yield from _wide(wide)
    if not far or not node.gpu_cores:
        return
    wrong = tuple(far)
    gpu, near = far[wrong[0]]
    has = f"near GPU {', '.join(map(str, near))}" if near else "near no GPU"
    same = all(_same_domain(node, *each) for each in far.values())
    follows = ", in the same NUMA domain." if same else "; each copy crosses the node."
    yield MaskMistake(
        "mask-order",
        "note" if same else "warning",
        f"{_some(wrong).capitalize()} {'have' if wrong[1:] else 'has'} cores that are not the "
        f"nearest to {'their' if wrong[1:] else 'its'} GPU: task {wrong[0]} uses GPU {gpu}, but "
        f"its cores are {has}{follows}",
        f"Give {_listed(wrong, node.gpu_cores[gpu])}.",
        wrong,
    )


def _wide(wide: Mapping[int, tuple[int, tuple[int, ...]]]) -> Iterator[MaskMistake]:
    """Yield the mistake that tasks also have cores near GPUs other than their own."""
    task, (gpu, near) = next(iter(wide.items()))
    others = ", ".join(str(one) for one in near if one != gpu)
    yield MaskMistake(
        "mask-order",
        "warning",
        f"{_some(tuple(wide)).capitalize()} may also run on cores near other GPUs: task {task} "
        f"uses GPU {gpu}, but some of its cores are near GPU {others}.",
        "Give each task only the cores nearest to its GPU, which `lumitui bind SITE` prints.",
        tuple(wide),
    )


def _gpu_of(task: int, gpus: Bind | None) -> int | None:
    """Return the GPU that a task uses; None if several, or unknown."""
    if gpus is None:
        return task
    numbers = gpus.of_task(task).numbers
    return next(iter(numbers)) if len(numbers) == 1 else None


def _same_domain(node: NodeShape, gpu: int, near: Sequence[int]) -> bool:
    domain = node.gpu_numa
    return bool(domain and near) and {domain[one] for one in near} == {domain[gpu]}


def _gpus(bind: Bind, node: NodeShape, tasks: int) -> Iterator[MaskMistake]:
    outside = _tasks_from(bind, tasks, node.gpus)
    if outside:
        highest = max(max(bind.of_task(task).numbers) for task in outside)
        yield MaskMistake(
            "gpu-outside",
            "error",
            f"{_some(outside).capitalize()} would get GPU {highest}, but a node here has "
            f"{node.gpus} GPUs, 0 to {node.gpus - 1}.",
            f"Write numbers from 0 to {node.gpus - 1}.",
            outside,
        )
    seen: dict[frozenset[int], list[int]] = {}
    for task in range(min(tasks, len(bind.entries))):
        seen.setdefault(bind.of_task(task).numbers, []).append(task)
    for numbers, owners in seen.items():
        if len(owners) > 1 and len(numbers) == 1:
            yield MaskMistake(
                "gpu-overlap",
                "warning",
                f"{_some(owners).capitalize()} share GPU {min(numbers)}.",
                "Give each task its own GPU.",
                tuple(owners),
            )


def _tasks_from(bind: Bind, tasks: int, first: int) -> tuple[int, ...]:
    """Return the tasks whose entries contain a number of at least `first`."""
    return tuple(
        task for task in range(tasks) if max(bind.of_task(task).numbers, default=0) >= first
    )


def _some(tasks: Sequence[int]) -> str:
    """Return `task 3`, or `tasks 0-2,5`."""
    return f"task{'s' if len(tasks) > 1 else ''} {format_cores(tasks)}"


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _cores(text: str) -> str:
    return f"core{'s' if not text.isdecimal() else ''} {text}"
