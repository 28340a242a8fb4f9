"""The cores of this machine, for a site whose jobs are processes here."""

import os
from collections.abc import Collection

from lumitui.remote.site.core_sets import format_cores

NO_AFFINITY = "this machine's system lets no process choose its cores"
TOO_FEW = "this machine has fewer cores than a node has ranks"


def allowed_cores() -> frozenset[int]:
    """Return the cores that this process may use; none where the system cannot say (macOS)."""
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
