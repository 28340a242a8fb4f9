"""Derives a profile's facts from a node's report: core lists, domains, buses, disks. Pure."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lumitui.remote.site.core_sets import format_cores, parse_cores
from lumitui.remote.site.profile import Site
from lumitui.remote.survey import slurm_records as slurm
from lumitui.remote.survey.profile.node_report import Disk, NodeReport


@dataclass(frozen=True)
class GpuType:
    """A GPU that is sold."""

    name: str
    maker: Literal["nvidia", "amd"]
    memories: tuple[int, ...]
    """GiB of its variants, the smallest first."""


# The first name that is in Slurm's type counts: `gh200` before `h200`, `mi250x` as `mi250`.
# sources: the makers' data sheets; of an MI250 Slurm counts the two dies.
_NVIDIA = {
    "GB200": (186,), "GH200": (96, 144), "B200": (180,), "H200": (141,), "H100": (64, 80, 94),
    "A100": (40, 64, 80), "V100": (16, 32), "P100": (12, 16), "K80": (12,), "L40": (48,),
    "A40": (48,), "A30": (24,), "L4": (24,), "T4": (16,),
}  # fmt: skip
_AMD = {
    "MI355": (288,), "MI325": (256,), "MI300A": (128,), "MI300": (192,), "MI250": (64,),
    "MI210": (64,), "MI100": (32,),
}  # fmt: skip
_TYPES = (
    *(GpuType(name, "nvidia", sizes) for name, sizes in _NVIDIA.items()),
    *(GpuType(name, "amd", sizes) for name, sizes in _AMD.items()),
)


def gpu_type(kind: str) -> GpuType | None:
    """Return the GPU of Slurm's type; None if it is unknown."""
    words = kind.lower()
    return next(
        (one for one in _TYPES if re.search(rf"(?<![a-z0-9]){one.name.lower()}", words)), None
    )


_NVIDIA_SMI = (
    "nvidia-smi --query-gpu=index,power.draw,memory.used,memory.total,utilization.gpu "
    "--format=csv,noheader,nounits"
)
_IDLE = 1.5
"""An idle A100 draws 50 to 65 W, and the profiles call it idle below 90."""
_ROUTES = {"yes": "there is one", "proxy": "through a proxy", "no": "none"}
Fact = str | tuple[str, ...]
"""A value as YAML has it: everything is text."""


@dataclass(frozen=True)
class ProfileChange:
    """A key that the node contradicts, or that the profile lacks."""

    place: tuple[str, ...]
    value: Fact | None
    """None: remove the key."""
    why: str


@dataclass(frozen=True)
class NodeFacts:
    """The changes of a profile from a node's report."""

    host: str
    changes: tuple[ProfileChange, ...]
    said: tuple[ProfileChange, ...]
    """All values from the node, changed or confirmed: these keys are verified."""
    notes: tuple[str, ...]
    """Sentences: unmeasured values, and values for the user to use."""

    @property
    def confirmed(self) -> tuple[tuple[str, ...], ...]:
        """The keys from the node."""
        return tuple(one.place for one in self.said)


@dataclass(frozen=True)
class _Shape:
    """The cores of a node: each by the number of its first thread."""

    cores: int
    threads: int
    reserved: frozenset[int]

    @property
    def usable(self) -> frozenset[int]:
        return frozenset(range(self.cores)) - self.reserved


def compare(report: NodeReport, site: Site) -> NodeFacts:
    """Return the changes of `site`'s profile that the report of one of its nodes requires."""
    shape = _shape(report, site)
    notes = list(_notes(report, site))
    facts: list[ProfileChange] = list(_shape_facts(shape, report, site))
    facts += _gpu_facts(shape, report, notes)
    facts += _other_facts(report, site)
    changes = [one for one in facts if not _is_so(one, site)]
    if any(one.place == ("node", "gpu_cores") for one in facts):
        changes += _without_excuse(site)
    return NodeFacts(report.host, tuple(changes), tuple(facts), tuple(notes))


def _shape(report: NodeReport, site: Site) -> _Shape:
    every = frozenset[int]().union(*report.domains.values()) if report.domains else frozenset()
    grouped = frozenset[int]().union(*report.threads) if report.threads else frozenset()
    if every and grouped == every:
        threads = max(len(group) for group in report.threads)
    else:  # a container or a small machine hides the threads
        threads = slurm.whole(report.slurm.get("ThreadsPerCore", "")) or site.node.threads_per_core
    cores = len(every) // threads if every else site.node.cores
    if listed := report.slurm.get("CPUSpecList", ""):
        return _Shape(cores, threads, slurm.reserved(listed, cores, threads))
    # Without Slurm's word: what a job that has the whole node does not get.
    allowed = report.job & frozenset(range(cores))
    if allowed and not report.slurm:
        return _Shape(cores, threads, frozenset(range(cores)) - allowed)
    kept = frozenset() if report.slurm else frozenset(parse_cores(site.node.reserved_cores))
    return _Shape(cores, threads, kept)


def _shape_facts(shape: _Shape, report: NodeReport, site: Site) -> Iterator[ProfileChange]:
    if report.domains:
        why = f"{len(report.domains)} memory domains in /sys/devices/system/node"
        yield ProfileChange(("node", "cores"), str(shape.cores), why)
        yield ProfileChange(("node", "threads_per_core"), str(shape.threads), why)
    if report.slurm or report.job:
        why = "CPUSpecList" if report.slurm else "cores that a job on the whole node does not get"
        if shape.reserved or site.node.reserved_cores:
            yield ProfileChange(("node", "reserved_cores"), format_cores(shape.reserved), why)
    if report.arch in ("x86_64", "aarch64"):
        yield ProfileChange(("node", "architecture"), report.arch, "uname -m")
    # Not the cores near each GPU: those near none would never be requested.
    most = len(shape.usable) // max(1, len(report.gpus))
    if report.gpus and not report.sliced and 0 < most < site.cores_per_gpu:
        yield ProfileChange(("cores_per_gpu",), str(most), "usable cores / GPUs")
    memory = slurm.whole(report.slurm.get("RealMemory", "")) // 1024
    if 0 < memory < site.node.memory_gib:
        yield ProfileChange(("node", "memory_gib"), str(memory), "RealMemory")


def _gpu_facts(shape: _Shape, report: NodeReport, notes: list[str]) -> Iterator[ProfileChange]:
    gpus = report.gpus
    if not gpus:
        notes.append(
            "No driver reports a GPU on the node, so the cores near each GPU are unknown. Measure "
            "a node of another partition, or ask the site for them."
        )
        return
    if report.sliced:
        notes.append("MIG divides the GPUs; cores are near a whole GPU, not near a part.")
        return
    yield ProfileChange(("node", "gpus"), str(len(gpus)), "the driver")
    yield ProfileChange(
        ("node", "gpu_bus"), _buses([gpu.address for gpu in gpus]), "the driver's order"
    )
    if lost := _without_locality(report, shape):
        listed = ", ".join(map(str, lost))
        notes.append(
            f"The kernel does not report which cores are near GPU {listed} (memory domain -1, or "
            "all cores of several domains), so the core lists are unknown. Ask the site for them; "
            "`nvidia-smi topo -m` on a node may show them."
        )
        return
    if all(gpu.domain is not None for gpu in gpus):
        numbers = tuple(str(gpu.domain) for gpu in gpus)
        yield ProfileChange(("node", "gpu_numa"), numbers, "/sys/bus/pci/devices/*/numa_node")
    parts, why = shares([gpu.cores & shape.usable for gpu in gpus])
    if parts and not _is_ordered(report, shape):
        parts, why = (), "the kernel numbers a core's threads in a row, or leaves out a core"
    if not parts:
        notes.append(f"The cores of the GPUs are unknown: {why}. Ask the site for them.")
        return
    lists = tuple(format_cores(part) for part in parts)
    yield ProfileChange(("node", "gpu_cores"), lists, "/sys/bus/pci/devices/*/local_cpulist")
    unassigned = shape.usable - frozenset[int]().union(*parts)
    if unassigned:
        notes.append(
            f"The cores {format_cores(unassigned)} are not near any GPU, so masks leave them idle. "
            "If your programs need more cores, share them out in `node.gpu_cores`."
        )
    if gpus[0].maker == "amd":
        yield ProfileChange(("visible_gpus",), "ROCR_VISIBLE_DEVICES", "the GPUs are AMD's")


def _is_ordered(report: NodeReport, shape: _Shape) -> bool:
    """Return whether core n of `shape` is CPU n, as in all lists of a profile.

    Where both threads of a core are neighbours, the first half of the CPUs is half of the cores.
    """
    every = frozenset[int]().union(*report.domains.values())
    shown = frozenset[int]().union(*report.threads) == every
    first = set(map(min, report.threads)) if shown else set(range(shape.cores))
    return every == set(range(len(every))) and (not every or first == set(range(shape.cores)))


def _without_locality(report: NodeReport, shape: _Shape) -> list[int]:
    """Return the GPUs whose near cores the kernel does not report.

    A virtual node or an incomplete BIOS reports domain -1, with all CPUs as local ones. On a node
    with one known domain, all cores are indeed near every GPU.
    """
    every = frozenset(range(shape.cores))
    several = len(report.domains) > 1
    return [
        number
        for number, gpu in enumerate(report.gpus)
        if gpu.cores and (gpu.domain is None or (several and every <= gpu.cores))
    ]


def shares(local: Sequence[frozenset[int]]) -> tuple[tuple[frozenset[int], ...], str]:
    """Return the cores of each GPU, or why they are unknown.

    GPUs with the same local cores share them in order, in blocks. Each gets as many as the GPU
    with the fewest, so that no rank waits for another.
    """
    if not all(local):
        return (), "the kernel reports no local cores for some of them"
    for one in local:
        for other in local:
            if one != other and one & other:
                return (), "cores local to one GPU are also local to others"
    parts: list[frozenset[int]] = []
    for place, cores in enumerate(local):
        together = [at for at, other in enumerate(local) if other == cores]
        each = len(cores) // len(together)
        start = together.index(place) * each
        parts.append(frozenset(sorted(cores)[start : start + each]))
    fewest = min(map(len, parts))
    if not fewest:
        return (), "there are fewer cores than GPUs"
    return tuple(frozenset(sorted(part)[:fewest]) for part in parts), ""


def _buses(addresses: Sequence[str]) -> tuple[str, ...]:
    """Return only the buses if they identify the GPUs, in the usual form."""
    short = [address[5:7] for address in addresses]
    plain = all(one.startswith("0000:") and one.endswith(":00.0") for one in addresses)
    return tuple(short if plain and len(set(short)) == len(short) else addresses)


def _other_facts(report: NodeReport, site: Site) -> Iterator[ProfileChange]:
    if report.gpu_memory_gib:
        yield ProfileChange(
            ("node", "gpu_memory_gib"), str(report.gpu_memory_gib), "its driver's tool"
        )
    if report.gpu_name and "node.gpu" in site.unverified:
        yield ProfileChange(("node", "gpu"), report.gpu_name, "nvidia-smi")
    yield from _readings(report, site)
    if report.internet in ("yes", "no", "proxy"):
        why = "a connection from the node to port 443 of three hosts"
        reached = "false" if report.internet == "no" else "true"
        yield ProfileChange(("internet_on_compute_nodes",), reached, why)
    if (has := _has_python(report, site)) is not None:
        why = "command -v python3 on the node"
        yield ProfileChange(("python_on_compute_nodes",), "true" if has else "false", why)
    yield from _image_facts(report, site)
    if report.disks:
        yield from _disk_facts(report.disks, site)


def _readings(report: NodeReport, site: Site) -> Iterator[ProfileChange]:
    """Yield the command that reads NVIDIA's GPUs, with the power below which one is idle."""
    if not report.gpu_watts or report.sliced:  # a MIG slice has no power of its own
        return
    if site.gpu_readings is None:
        yield ProfileChange(("gpu_readings", "command"), _NVIDIA_SMI, "nvidia-smi(1)")
        yield ProfileChange(("gpu_readings", "prints"), "nvidia-smi", "nvidia-smi(1)")
    elif "gpu_readings.idle_watts" not in site.unverified:
        return
    limit = math.ceil(report.gpu_watts * _IDLE / 10) * 10
    why = f"{_IDLE} times the {report.gpu_watts:g} W of an idle GPU here"
    yield ProfileChange(("gpu_readings", "idle_watts"), str(limit), why)


def _image_facts(report: NodeReport, site: Site) -> Iterator[ProfileChange]:
    """Yield the images that the node has; a container without its image is not a default."""
    for name, container in site.containers.items():
        at = ("containers", name)
        if report.images.get(container.image):
            yield ProfileChange((*at, "image"), container.image, "the node can read it")
        elif container.image in report.images:
            yield ProfileChange((*at, "image"), "", f"the node cannot read {container.image}")
            if name == site.default_container:
                why = f"the node cannot read the image of {name}"
                yield ProfileChange(("default_container",), "none", why)


def _has_python(report: NodeReport, site: Site) -> bool | None:
    """Return whether the node has python3; None if unknown, or not needed in a profile."""
    doubted = "python_on_compute_nodes" in site.unverified
    if site.python != "python3" or (site.modules and not doubted):
        return None  # a path or a module: what the node has by itself is not what jobs use
    if report.python:
        return None if site.python_on_compute_nodes is None else True
    return False if report.complete and "python3" not in report.commands else None


def _disk_facts(disks: Sequence[Disk], site: Site) -> Iterator[ProfileChange]:
    real = [one for one in disks if one.writable and not one.is_memory and not one.is_shared]
    # A variable names the same folder for every job, or the job's own.
    best = max(real, key=lambda one: (one.free_gib, one.name == one.path), default=None)
    if best:
        words = f"{best.free_gib} GiB free in {best.name} ({best.kind})"
    else:
        words = "none; /tmp is in memory and counts as the job's memory"
    if not site.node.local_disk or "node.local_disk" in site.unverified:
        yield ProfileChange(("node", "local_disk"), words, "df on the node")
    folder = best or next((one for one in disks if one.path == "/tmp" and one.writable), None)
    if folder and (not site.node_folder or "node_folder" in site.unverified):
        yield ProfileChange(("node_folder",), folder.name, "a local folder of the node")


def _is_so(change: ProfileChange, site: Site) -> bool:
    """Return whether the profile already has this value."""
    value: object = site
    for key in change.place:
        value = value[key] if isinstance(value, Mapping) else getattr(value, key, None)
    if change.place == ("node", "gpu_cores") and isinstance(change.value, tuple):
        lists = [frozenset(parse_cores(text)) for text in site.node.gpu_cores]
        return lists == [frozenset(parse_cores(text)) for text in change.value]
    if change.place == ("node", "reserved_cores") and isinstance(change.value, str):
        return set(parse_cores(str(value))) == set(parse_cores(change.value))
    if change.place == ("node", "gpu_bus") and isinstance(change.value, tuple):
        return _buses([_whole(one) for one in site.node.gpu_bus]) == change.value
    if isinstance(value, tuple):
        return tuple(map(str, value)) == change.value
    return (str(value).lower() if isinstance(value, bool) else str(value)) == change.value


def _whole(bus: str) -> str:
    return bus if len(bus) > 7 else f"0000:{bus}" if len(bus) > 2 else f"0000:{bus}:00.0"


def _without_excuse(site: Site) -> Iterator[ProfileChange]:
    """Yield the removal of the sentence on missing core lists."""
    default = type(site.node).model_fields["no_gpu_cores"].default
    if site.node.no_gpu_cores != default:
        yield ProfileChange(("node", "no_gpu_cores"), None, "the core lists are known now")


def _notes(report: NodeReport, site: Site) -> Iterator[str]:
    if not report.complete:
        yield f"The report of {report.host} is incomplete; measure again for the missing parts."
    if report.gpus and len(report.gpus) != site.node.gpus:
        yield (
            f"The node has {len(report.gpus)} GPUs, but the profile has {site.node.gpus}. Check "
            "whether the partition has several kinds of nodes."
        )
    wrong = gpu_type(site.node.gpu), gpu_type(report.gpu_name)
    if report.gpu_name and wrong[0] and wrong[1] and wrong[0] != wrong[1]:
        yield f"The profile calls the GPU {site.node.gpu}; nvidia-smi calls it {report.gpu_name}."
    if report.nics:
        yield f"Network cards (name, memory domain, rate): {'; '.join(report.nics)}."
    if report.commands:
        yield f"On the node: {', '.join(sorted(report.commands))}."
    if report.python:
        torch = f" with torch {report.torch}" if report.torch else ", without torch"
        yield f"python3 there is {report.python}{torch}."
    elif report.complete and "python3" not in report.commands:
        yield (
            'The node lacks python3, which a job without a container needs: "No Python on the '
            'nodes?" in `lumitui docs sites` shows how to use an image.'
        )
    if report.internet:
        yield f"A route from the node to the internet: {_ROUTES.get(report.internet, 'unknown')}."
    if report.gpus and not report.gpu_memory_gib and "node.gpu_memory_gib" in site.unverified:
        yield "The driver's tools do not report the GPUs' memory; node.gpu_memory_gib is a guess."
