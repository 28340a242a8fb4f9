"""The resources that a job's options request from Slurm: sbatch(1)."""

import re

from lumitui.app.knowledge.any_site import is_known
from lumitui.app.knowledge.script_job import CommandOptions, Resources
from lumitui.remote.site import walltime
from lumitui.remote.site.profile import Site

_MIB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)B?$", re.IGNORECASE)
_GPU = re.compile(
    r"(?:gres[:/])?gpu(?::(?P<type>[A-Za-z][^:,=]*))?(?:[:=](?P<count>\d{1,12}))?(?:\(.*\))?$"
)
_COUNT = re.compile(r"(?:(?P<type>[A-Za-z][^:,]*):)?(?P<count>\d{1,12})$")


def resources_of(options: CommandOptions, site: Site) -> Resources:
    """Return the resources that a job with these options requests at `site`."""
    nodes = nodes_of(options.value("nodes"))
    tasks, per_node = _tasks(options, nodes)
    cpus = options.number("cpus-per-task")
    gpus, kind, total = gpus_of(options, nodes, per_node)
    return Resources(
        partition=options.value("partition"),
        account=options.value("account"),
        qos=options.value("qos"),
        seconds=_seconds(options.value("time")),
        nodes=nodes,
        tasks=tasks,
        tasks_per_node=per_node,
        cpus_per_task=cpus,
        gpus_per_node=gpus,
        gpu_type=kind,
        gpus_total=total,
        memory_gib=_memory(options, per_node, cpus, gpus, site),
        array=options.value("array") or "",
    )


def nodes_of(text: str | None) -> int | None:
    """Return the minimum nodes of `4`, `2-8` or `1,2,4`; None if not requested or unreadable."""
    match = re.fullmatch(r"(\d{1,7})([kK]?)(?:[-,:].*)?", (text or "").strip())
    return int(match[1]) * (1024 if match[2] else 1) if match else None


def _tasks(options: CommandOptions, nodes: int | None) -> tuple[int | None, int | None]:
    """Return the tasks in total and on each node."""
    tasks = options.number("ntasks")
    per_node = options.number("ntasks-per-node")
    if tasks is None and per_node is not None:
        # Without `--nodes`, Slurm allocates one node.
        tasks = per_node * (nodes or 1)
    if per_node is None and tasks is not None and (nodes or tasks == 1):
        per_node = -(-tasks // (nodes or 1))
    elif per_node is not None and nodes and options.has("ntasks") and tasks is not None:
        # With both options, `--ntasks-per-node` is the maximum on a node.
        per_node = min(per_node, -(-tasks // nodes)) or per_node
    return tasks, per_node


def gpus_of(
    options: CommandOptions, nodes: int | None, per_node: int | None
) -> tuple[int | None, str, bool]:
    """Return the GPUs per node, their type, and whether the job requested a total."""
    if (text := options.value("gpus-per-node")) is not None and (found := count_of(text)):
        return found[1], found[0], False
    if found := gres_gpus(options.value("gres")):
        return found[1], found[0], False
    if (text := options.value("gpus")) is not None and (found := count_of(text)):
        # A job of one task has one node, even without `--nodes`.
        spread = nodes or (1 if options.number("ntasks") in (None, 1) else None)
        each = found[1] // spread if spread and found[1] % spread == 0 else None
        return each, found[0], True
    if (text := options.value("gpus-per-task")) is not None and (found := count_of(text)):
        return (found[1] * per_node if per_node else None), found[0], False
    if per_node and (found := gres_gpus(options.value("tres-per-task"))):
        return found[1] * per_node, found[0], False
    return None, "", False


def gres_gpus(text: str | None) -> tuple[str, int] | None:
    """Return type and number of the GPUs in `gpu:a100:4,nvme:100`, or None without GPUs."""
    parts = (_GPU.match(part.strip()) for part in (text or "").split(","))
    return next(((gpu["type"] or "", int(gpu["count"] or 1)) for gpu in parts if gpu), None)


def count_of(text: str) -> tuple[str, int] | None:
    """Return type and number of `8`, `a100:4` or `a100:2,v100:1` (the first type's name)."""
    found = [_COUNT.match(part.strip()) for part in text.split(",")]
    if not found or any(match is None for match in found):
        return None
    matches = [match for match in found if match is not None]
    return matches[0]["type"] or "", sum(int(match["count"]) for match in matches)


def _seconds(text: str | None) -> int | None:
    try:
        return walltime.seconds_of(text) or None if text else None
    except ValueError:
        return None


def memory_gib(text: str | None) -> float | None:
    """Return `480G`, `1T` or `16000` (MiB) in GiB; None for other texts."""
    match = _MEMORY.match((text or "").strip())
    return float(match[1]) * _MIB[(match[2] or "M").upper()] / 1024 if match else None


def _memory(
    options: CommandOptions, per_node: int | None, cpus: int | None, gpus: int | None, site: Site
) -> float | None:
    """Return the memory on each node in GiB."""
    if (each := memory_gib(options.value("mem"))) is not None:
        return each or (float(site.node.memory_gib) if is_known(site) else None)
    if (each := memory_gib(options.value("mem-per-gpu"))) is not None:
        return each * gpus if gpus else None
    if (each := memory_gib(options.value("mem-per-cpu"))) is not None:
        return each * (cpus or 1) * per_node if per_node else None
    return None
