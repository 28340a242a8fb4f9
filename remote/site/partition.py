"""A partition: its limits, what it allocates and what it bills."""

from typing import Annotated, Literal

from pydantic import Field

from lumitui.remote.site.facts import Count, Facts, Rate, Share, Time


class NodeBilling(Facts):
    """Whole nodes are billed, whatever is used of them."""

    kind: Literal["node"] = "node"
    per_node_hour: Rate


class SliceBilling(Facts):
    """The largest share of cores, memory or GPUs is billed."""

    kind: Literal["slice"] = "slice"
    cores: Share
    memory_gib: Share
    gpus: Share = 1
    per_slice_hour: Rate


class SumBilling(Facts):
    """Everything allocated is billed, each at its own rate."""

    kind: Literal["sum"] = "sum"
    per_core_hour: Rate = 0
    per_gib_hour: Rate = 0
    per_gpu_hour: Rate = 0


Billing = Annotated[NodeBilling | SliceBilling | SumBilling, Field(discriminator="kind")]


class Partition(Facts):
    """A partition (queue) and its limits."""

    max_time: Time
    doubtful_time: Time | None = None
    """A lower limit that some source names: a longer job is warned about. None: sources agree."""
    max_nodes: Count
    max_gpus_per_node: Count | None = None
    allocation: Literal["node", "shared"]
    """`node`: a job gets whole nodes, so that masks are right; `shared`: only what it requested."""
    billing: Billing
    grows_to: str | None = None
    """The partition to move to when a job outgrows this one."""
    max_jobs: Count | None = None
    """Jobs that one person may have here at a time. For the adviser; nothing reads it yet."""
    purpose: str = ""
    arguments: tuple[str, ...] = ()
    """Further #SBATCH options that every job here needs, e.g. a QOS."""
