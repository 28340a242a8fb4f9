"""Derives a partition's billing from Slurm's TRESBillingWeights (slurm.conf(5)). Pure."""

import math
import re
from collections.abc import Iterator

from lumitui.remote.survey.profile.cluster_records import Cluster
from lumitui.remote.survey.profile.entry import ProfileLine
from lumitui.remote.survey.profile.shape_choice import ProfilePartition, ShapeChoice

_LEAST, _MOST = 0.001, 1e6
"""The limits of a share in a profile."""


def weights_of(queue: ProfilePartition, choice: ShapeChoice) -> tuple[float, float, float]:
    """Return the weights of a core, a GiB and a GPU; 0: none."""
    weights = dict(queue.record.weights)
    core = _number(weights.get("cpu", "")) * choice.threads
    memory = weights.get("mem", "")
    gib = _number(memory.rstrip("KMGTkmgt")) * _per_gib(memory)
    typed = weights.get(f"gres/gpu:{choice.gpus.kind}".lower(), "")
    gpu = _number(typed or weights.get("gres/gpu", ""))
    return core, gib, gpu


def weighed(choice: ShapeChoice) -> bool:
    """Return whether any partition has weights, so that bills are in Slurm's billing units."""
    return any(queue.record.weights for queue in choice.queues)


def billing_of(
    at: tuple[str, ...],
    queue: ProfilePartition,
    cluster: Cluster,
    choice: ShapeChoice,
    whole: tuple[int, int],
) -> Iterator[ProfileLine]:
    """Yield the lines of a partition's billing.

    `whole` is what a job of a whole node gets, and Slurm counts: cores without those that
    CPUSpecList keeps, and memory in GiB.
    """
    here = (*at, "billing")
    core, gib, gpu = weights_of(queue, choice)
    if not core + gib + gpu and weighed(choice):
        yield ProfileLine(
            (*here, "kind"), "sum", "slurm.conf(5): without weights each CPU counts 1"
        )
        yield ProfileLine((*here, "per_core_hour"), choice.threads)
        return
    if not core + gib + gpu:
        yield ProfileLine((*here, "kind"), "sum")
        yield ProfileLine((*here, "per_gpu_hour"), 1, "Slurm has no weights", guess=True)
        return
    source = "TRESBillingWeights"
    largest = "MAX_TRES" in cluster.config.get("PriorityFlags", "").upper()
    if queue.record.exclusive:
        parts = (whole[0] * core, whole[1] * gib, choice.gpus.number * gpu)
        yield ProfileLine((*here, "kind"), "node")
        each = max(parts) if largest else sum(parts)
        yield ProfileLine((*here, "per_node_hour"), _rate(each), f"{source} of a whole node")
    elif largest:
        yield ProfileLine((*here, "kind"), "slice", "PriorityFlags: MAX_TRES, the largest counts")
        for key, weight in (("cores", core), ("memory_gib", gib), ("gpus", gpu)):
            yield ProfileLine((*here, key), _share(weight), source)
        yield ProfileLine((*here, "per_slice_hour"), 1)
    else:
        yield ProfileLine((*here, "kind"), "sum", source)
        for key, weight in (("core", core), ("gib", gib), ("gpu", gpu)):
            if weight:
                yield ProfileLine((*here, f"per_{key}_hour"), _rate(weight))


def _number(text: str) -> float:
    match = re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", text)
    return float(text) if match else 0.0


def _per_gib(memory: str) -> float:
    """Return what a weight per M (Slurm's unit without a letter), G or T is per GiB."""
    unit = memory[-1:].upper()
    return {"K": 1048576.0, "G": 1.0, "T": 1 / 1024}.get(unit, 1024.0)


def _share(weight: float) -> float:
    share = 1 / weight if weight else math.inf
    return round(min(_MOST, max(_LEAST, share)), 6)


def _rate(value: float) -> float:
    return round(min(_MOST, value), 6)
