"""A partition: its limits, what it allocates and what it bills."""

from typing import Annotated, Literal

from pydantic import Field

from lumitui.remote.site.facts import Facts, Time


class NodeBilling(Facts):
    """Whole nodes are billed, whatever is used of them."""

    kind: Literal["node"] = "node"
    per_node_hour: float


class SliceBilling(Facts):
    """The largest share of cores, memory or GPUs is billed."""

    kind: Literal["slice"] = "slice"
    cores: float
    memory_gib: float
    gpus: float = 1
    per_slice_hour: float


class SumBilling(Facts):
    """Everything allocated is billed, each at its own rate."""

    kind: Literal["sum"] = "sum"
    per_core_hour: float = 0
    per_gib_hour: float = 0
    per_gpu_hour: float = 0


Billing = Annotated[NodeBilling | SliceBilling | SumBilling, Field(discriminator="kind")]


class Partition(Facts):
    """A partition (queue) and its limits."""

    max_time: Time
    max_nodes: int
    max_gpus_per_node: int | None = None
    allocation: Literal["node", "shared"]
    """`node`: a job gets whole nodes, so that masks are right; `shared`: only what it requested."""
    billing: Billing
    grows_to: str | None = None
    """The partition to move to when a job outgrows this one."""
    max_jobs: int | None = None
    """Jobs that one person may have here at a time. For the adviser; nothing reads it yet."""
    purpose: str = ""
    arguments: tuple[str, ...] = ()
    """Further #SBATCH options that every job here needs, e.g. a QOS."""
