"""The shape of a GPU node: its cores, its GPUs, and which cores are near to which GPU."""

import os
from collections.abc import Collection
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from lumitui.remote.site.core_sets import format_cores, parse_cores
from lumitui.remote.site.device import Device, device
from lumitui.remote.site.facts import Cores, Count, Facts, OneWord

NO_AFFINITY = "on this machine, a process cannot choose its cores"
TOO_FEW = "this machine has fewer cores than a node has ranks"


def allowed_cores() -> frozenset[int]:
    """Return the cores that this process may use; empty if they are unknown (macOS)."""
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()


def shape_here(allowed: Collection[int], ranks: int) -> dict[str, object]:
    """Return the fields of a node's shape for these cores, shared out among `ranks` in blocks.

    Cores that stay over belong to no rank, so that all ranks have as many. Each "node" of such a
    site is this machine: rank 0 of one node has the cores of rank 0 of every other.
    """
    cores = sorted(allowed)
    each = len(cores) // ranks if ranks > 0 else 0
    if not each:
        return {"gpu_cores": (), "no_gpu_cores": TOO_FEW if cores else NO_AFFINITY}
    parts = [cores[each * rank : each * (rank + 1)] for rank in range(ranks)]
    return {
        "cores": cores[-1] + 1,
        "reserved_cores": format_cores(set(range(cores[-1] + 1)) - set(cores)),
        "gpu_cores": tuple(format_cores(part) for part in parts),
    }


Bandwidth = Annotated[float, Field(gt=0, le=1e5)]
"""GB/s that every rank of an all-reduce sends: its bus bandwidth."""
Latency = Annotated[float, Field(ge=0, le=1e5)]
"""Microseconds that each doubling of the ranks adds to a small all-reduce."""
Precision = Literal["bf16", "fp16"]
"""A format of numbers smaller than fp32, for which GPUs may have matrix units."""


class Links(Facts):
    """How fast ranks exchange gradients: measured by an all-reduce, not the nominal speed."""

    in_node: Bandwidth
    """GB/s of each rank's all-reduce in one node, e.g. `120`."""
    between_nodes: Bandwidth
    """Bandwidth of a node, over all its network cards."""
    latency_in_node: Latency
    """Microseconds in one node, e.g. `10`."""
    latency_between_nodes: Latency
    """Microseconds between nodes, e.g. `25`."""


_BUS = r"^([0-9a-f]{4}:)?[0-9a-f]{2}(:[0-9a-f]{2}\.[0-7])?$"


def _bus(value: object) -> object:
    # YAML reads a bus like 01 or 98 as a number.
    return f"{value:02d}" if type(value) is int and value < 100 else value


class NodeShape(Facts):
    """One GPU node. Cores are numbered as Slurm's masks number them (hardware thread 0)."""

    cores: Count
    """All cores of the node, also the reserved ones, e.g. `64`; not hardware threads."""
    threads_per_core: Count = 1
    """Hardware threads of each core, e.g. `2`."""
    architecture: Literal["x86_64", "aarch64"] = "x86_64"
    """Its processor architecture, as printed by `uname -m`."""
    reserved_cores: Cores = ""
    """Cores no job may use."""
    memory_gib: Count
    """Memory that a job may request."""
    gpus: Annotated[int, Field(ge=1, le=64)]
    """GPUs as Slurm counts them, e.g. `8` for four MI250X, which have two dies each."""
    gpu: str
    """The site's name for one GPU."""
    gpu_vendor: Literal["amd", "nvidia", ""] = ""
    """The GPUs' vendor; "": no GPUs, or unknown."""
    gres_types: tuple[OneWord, ...] | None = None
    """Slurm's names of the GPUs' type, as in `--gres=gpu:TYPE:4`; `[]`: sbatch refuses any type, as
    Slurm counts the GPUs without one. None: unknown."""
    on_cpu: bool = False
    """The node has no GPUs: each of its `gpus` is a rank on CPU cores."""
    this_machine: bool = False
    """The node is this machine: lumitui reads its cores, and divides them among the ranks."""
    gpu_memory_gib: Count
    """Memory of one GPU, for the adviser."""
    gpu_cores: tuple[Cores, ...] = ()
    """The cores nearest to each GPU, in local-rank order: they become its mask. Empty: unknown."""
    no_gpu_cores: str = "the profile does not list the cores nearest to each GPU"
    """Why `gpu_cores` is empty."""
    links: Links | None = None
    """For predicting other sizes from one, and for the preflight's expectations; None: no such
    predictions, and the preflight compares ranks and nodes only with each other."""
    gemm_tflops: Annotated[float, Field(gt=0, le=1e5)] | None = None
    """TFLOP/s of a large bf16 matrix product on one GPU; None: not measured."""
    gpu_numa: tuple[Annotated[int, Field(ge=0, le=100_000)], ...] = ()
    """NUMA domain of each GPU, in local-rank order."""
    gpu_bus: tuple[Annotated[str, BeforeValidator(_bus), Field(pattern=_BUS)], ...] = ()
    """PCI bus of each GPU (`c1`) or its address (`0000:c1:00.0`), in local-rank order. The proof
    compares each rank's GPUs in the driver with it."""
    local_disk: str = ""
    """The facts about a disk in the node, for advice; empty: none."""

    @property
    def device(self) -> Device:
        """The device of each rank of the node, in words."""
        return device(on_cpu=self.on_cpu)

    @cached_property
    def usable_cores(self) -> frozenset[int]:
        """Every core a job may use."""
        return frozenset(range(self.cores)) - frozenset(parse_cores(self.reserved_cores))

    @cached_property
    def cores_of_gpu(self) -> tuple[frozenset[int], ...]:
        """The cores of each GPU as sets, in local-rank order."""
        return tuple(frozenset(parse_cores(text)) for text in self.gpu_cores)

    @model_validator(mode="before")
    @classmethod
    def _read_this_machine(cls, data: object) -> object:
        if not isinstance(data, dict) or data.get("this_machine") is not True:
            return data
        ranks = data.get("gpus")
        return data | shape_here(allowed_cores(), ranks if isinstance(ranks, int) else 0)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for key in ("gpu_cores", "gpu_numa", "gpu_bus"):
            if (count := len(getattr(self, key))) not in (0, self.gpus):
                raise ValueError(f"{key} lists {count} GPUs, but the node has {self.gpus}")
        taken: set[int] = set()
        for rank, cores in enumerate(self.cores_of_gpu):
            if wrong := format_cores(cores - self.usable_cores):
                raise ValueError(f"gpu_cores of GPU {rank}: {wrong} are reserved or do not exist")
            if twice := sorted(cores & taken):
                raise ValueError(f"gpu_cores of GPU {rank}: {twice} belong to another GPU")
            taken |= cores
        return self
