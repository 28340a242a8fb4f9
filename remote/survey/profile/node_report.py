"""A compute node's report on itself (templates/node.sh), typed. Pure; never raises."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lumitui.remote.site.answer_fields import count, lines
from lumitui.remote.site.core_sets import parse_cores
from lumitui.remote.survey import slurm_records as slurm

_ADDRESS = re.compile(r"^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2}\.[0-7])$", re.IGNORECASE)
_WATTS = re.compile(r"^[0-9]{1,4}(?:\.[0-9]{1,2})?$")
_MOST = 20_000
_IN_MEMORY = frozenset({"tmpfs", "ramfs"})
_SHARED = frozenset(
    {"lustre", "nfs", "gpfs", "ceph", "beegfs", "fhgfs", "fuseblk", "panfs", "wekafs", "smb2"}
)


@dataclass(frozen=True)
class PciGpu:
    """A GPU on the node's PCI bus."""

    address: str
    """`0000:c1:00.0`."""
    domain: int | None
    """Its memory domain; None if the kernel does not report it."""
    cores: frozenset[int]
    """The CPUs that the kernel calls local to it."""
    maker: str
    """`nvidia`, `amd` or ""."""


@dataclass(frozen=True)
class Disk:
    """A folder of the node where a job may keep files."""

    name: str
    """A path, or a variable like `$TMPDIR`."""
    path: str
    kind: str
    """The file system's name from stat."""
    free_gib: int
    writable: bool

    @property
    def is_memory(self) -> bool:
        """Whether it uses the node's memory."""
        return self.kind in _IN_MEMORY

    @property
    def is_shared(self) -> bool:
        """Whether all nodes see the same files there."""
        return self.kind in _SHARED


@dataclass(frozen=True)
class NodeReport:
    """One node. Missing values are empty or None."""

    host: str
    arch: str
    job: frozenset[int]
    """The CPUs of the whole job; empty if unknown."""
    domains: Mapping[int, frozenset[int]]
    """The CPUs of each memory domain that has any."""
    threads: tuple[frozenset[int], ...]
    """The threads of each core."""
    gpus: tuple[PciGpu, ...]
    """In the order in which the runtimes number them."""
    gpu_name: str
    gpu_memory_gib: int | None
    gpu_watts: float | None
    """The highest power of its GPUs (NVIDIA's), which only this report used; None if unknown."""
    sliced: bool
    """Whether the GPUs are parted (MIG)."""
    slurm: Mapping[str, str]
    disks: tuple[Disk, ...]
    nics: tuple[str, ...]
    commands: Mapping[str, str]
    python: str
    torch: str
    internet: str
    """`yes`, `no`, `proxy`, or "" where it was not tried."""
    complete: bool
    images: Mapping[str, bool] = field(default_factory=dict)
    """Whether the node can read each image of the profile."""


def read(text: str) -> NodeReport:
    """Return the node in a report's lines."""
    rows: dict[str, list[list[str]]] = {}
    for line in lines(text, most=_MOST):
        key, _, rest = line.partition(" ")
        rows.setdefault(key, []).append(rest.split())
    cells = ([cell.strip() for cell in " ".join(row).split(",")] for row in rows.get("nvidia", []))
    nvidia = [[*row, ""] for row in cells if len(row) > 3]
    names = [row[3] for row in nvidia]
    sizes = [count(row[1]) for row in nvidia]
    amd = [" ".join(row) for row in rows.get("amd", [])]
    memories = [size for size in sizes if size]
    gib = round(min(memories) / 1024) if memories else _amd_gib(amd)
    records = slurm.records(" ".join(rows.get("slurm", [[]])[0]))
    return NodeReport(
        host=_word(rows, "host"),
        arch=_word(rows, "arch"),
        job=_cpus(_word(rows, "job")),
        domains={number: cpus for number, cpus in _domains(rows) if cpus},
        threads=tuple(filter(None, (_cpus("".join(row)) for row in rows.get("threads", [])))),
        gpus=tuple(_gpus(rows)),
        gpu_name=names[0][:60] if names and len(set(names)) == 1 else "",
        gpu_memory_gib=gib or None,
        gpu_watts=max((float(row[4]) for row in nvidia if _WATTS.match(row[4])), default=None),
        sliced=any(row[2] == "Enabled" for row in nvidia),
        slurm=records[0] if records else {},
        disks=tuple(_disks(rows)),
        nics=tuple(" ".join(row)[:80] for row in rows.get("nic", [])[:32]),
        commands={row[0]: row[1] for row in rows.get("command", []) if len(row) == 2},
        python=_word(rows, "python"),
        torch=_word(rows, "torch"),
        internet=_word(rows, "internet"),
        complete="done" in rows,
        images={row[1]: row[0] == "yes" for row in rows.get("image", []) if len(row) == 2},
    )  # fmt: skip


def _word(rows: Mapping[str, list[list[str]]], key: str) -> str:
    return next((row[0][:200] for row in rows.get(key, []) if row), "")


def _cpus(text: str) -> frozenset[int]:
    try:
        return frozenset(parse_cores(text))
    except ValueError:
        return frozenset()


def _domains(rows: Mapping[str, list[list[str]]]) -> Iterator[tuple[int, frozenset[int]]]:
    for row in rows.get("domain", []):
        if len(row) == 2 and (number := count(row[0])) is not None and number <= 100_000:
            yield number, _cpus(row[1])


def _gpus(rows: Mapping[str, list[list[str]]]) -> Iterator[PciGpu]:
    for row in rows.get("gpu", [])[:64]:
        match = _ADDRESS.match(row[0]) if row else None
        if match is None:
            continue
        # CUDA has eight digits for the domain, the kernel four.
        address = f"{(match[1] or '0000')[-4:]}:{match[2]}:{match[3]}".lower()
        fields = [*row[1:], "", "", ""]
        domain = count(fields[0])
        maker = {"0x10de": "nvidia", "0x1002": "amd"}.get(fields[2], "")
        yield PciGpu(address, domain, _cpus(fields[1]), maker)


def _disks(rows: Mapping[str, list[list[str]]]) -> Iterator[Disk]:
    for row in rows.get("disk", [])[:32]:
        if len(row) == 5 and (kib := count(row[2])) is not None:
            yield Disk(row[0], row[4], row[1], kib >> 20, row[3] == "yes")


def _amd_gib(rows: list[str]) -> int | None:
    """Return the memory of a GPU from rocm-smi's table of bytes, by its heading."""
    for number, row in enumerate(rows):
        titles = row.split(",")
        places = [at for at, title in enumerate(titles) if "VRAM Total Memory" in title]
        if places:
            cells = [row.split(",")[places[0]] for row in rows[number + 1 :] if "," in row]
            sizes = [size for size in (count(one.strip()) for one in cells) if size]
            return min(sizes) >> 30 if sizes else None
    return None
