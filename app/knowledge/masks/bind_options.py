"""Read `--cpu-bind` and `--gpu-bind` as srun does: which cores and GPUs each task is given.

Source: srun(1), --cpu-bind and --gpu-bind; slurm/src/common/slurm_resource_info.c,
`slurm_verify_cpu_bind`: the type's list follows `:` or `=`, and `v,` or `q,` may be before it.
"""

import re
import shlex
from dataclasses import dataclass
from typing import Literal

from lumitui.remote.site.errors import InputError

Kind = Literal["mask_cpu", "map_cpu", "mask_gpu", "map_gpu"]
"""A list of masks or of numbers, of cores or of GPUs; one entry for each task of a node."""

_TYPE = re.compile(r"(mask_cpu|map_cpu|mask_gpu|map_gpu)[:=](.*)", re.DOTALL)
_LOUD = re.compile(r"(?:(?:q|quiet|v|verbose),)+")
_OPTION = re.compile(r"--(?:cpu|gpu)[-_]bind=(.*)", re.DOTALL)
_REPEATED = re.compile(r"(.+)\*([0-9]{1,4})")
_NUMBER = re.compile(r"[0-9]{1,5}|0[xX][0-9a-fA-F]{1,4}")
_MASK = re.compile(r"(?:0[xX])?([0-9a-fA-F]{1,256})")
_MOST = 4096
"""Entries of a list; more is not a list that a user wrote."""


@dataclass(frozen=True)
class TaskBinding:
    """One entry of the list: what one task of each node is given."""

    written: str
    numbers: frozenset[int] = frozenset()
    """Cores or GPUs; empty: a mask without a bit, or no number at all."""
    readable: bool = True


@dataclass(frozen=True)
class Bind:
    """A list of masks or of numbers as it was written."""

    kind: Kind
    entries: tuple[TaskBinding, ...]

    @property
    def of_gpus(self) -> bool:
        """Return whether it is about GPUs, and not about cores."""
        return self.kind.endswith("gpu")

    def of_task(self, task: int) -> TaskBinding:
        """Return what task `task` of a node is given: the list starts again where it ends."""
        return self.entries[task % len(self.entries)]


def read_bind(value: str) -> Bind | None:
    """Return what the value of `--cpu-bind` or `--gpu-bind` lists, like `v,mask_cpu:0xfe,0xfe00`.

    None: it has no list, as `cores` and `closest` have none, or a variable is in it.
    """
    found = _TYPE.fullmatch(_LOUD.sub("", value.strip(), count=1))
    if not found or "$" in found[2]:
        return None
    return _bind(_kind(found[1]), found[2])


def explained(text: str) -> tuple[Bind, ...]:
    """Return the lists in what a user typed: a value, a bare list, or options of `srun`.

    A bare list is of masks where one entry begins with `0x` or is longer than three characters,
    else of cores.

    Raises:
        InputError: there is no list in it.
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


def _kind(word: str) -> Kind:
    kinds: dict[str, Kind] = {
        "mask_cpu": "mask_cpu", "map_cpu": "map_cpu", "mask_gpu": "mask_gpu", "map_gpu": "map_gpu",
    }  # fmt: skip
    return kinds[word]


def _bare(text: str) -> Bind | None:
    """Return a list without its type; None: it is none."""
    listed = _LOUD.sub("", text.strip(), count=1)
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
        f"There is no list of masks, cores or GPUs in {text[:80]!r}.",
        "Write it as srun takes it: `mask_cpu:0xfe,0xfe00`, `map_cpu:1,9` or `map_gpu:4,5`; "
        "put a whole `--cpu-bind=…` into quotes, with the variables' values.",
    )
