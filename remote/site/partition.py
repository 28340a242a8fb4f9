"""A partition: its limits, what it allocates and what it bills."""

from typing import Annotated, Literal

from pydantic import Field

from lumitui.remote.site import walltime
from lumitui.remote.site.facts import Count, Facts, OneWord, Rate, Share, Time, fills


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
    per_disk_gib_hour: Rate = 0
    """Of each GiB of `local_disk:` that the job asks for."""
    whole_nodes_from: Count | None = None
    """From this many nodes on, whole nodes are billed, whatever is used of them; None: never."""


Billing = Annotated[NodeBilling | SliceBilling | SumBilling, Field(discriminator="kind")]


class SizeLimit(Facts):
    """The time limit of jobs up to a size."""

    nodes: Count
    """The most nodes that it is for."""
    max_time: Time


class Partition(Facts):
    """A partition (queue) and its limits."""

    slurm_partition: OneWord | None = None
    """Slurm's own name, where this entry is a QOS; its `--qos` is one of `arguments`. None: the
    entry is called as the partition is."""
    max_time: Time
    max_time_of: tuple[SizeLimit, ...] = ()
    """Other limits for jobs up to a number of nodes, the smallest first; `max_time` is for those
    that are larger than all of them."""
    max_node_minutes: Count | None = None
    """The most that nodes times minutes may be; None: only `max_time` counts."""
    max_nodes: Count
    max_gpus_per_node: Count | None = None
    min_gpus: Count | None = None
    """The fewest GPUs that a whole job may have."""
    max_gpus: Count | None = None
    """The most GPUs that a whole job may have; `grows_to` is for those with more."""
    gpu_request: Annotated[str, fills("gpus")] | None = None
    """The #SBATCH option for `{gpus}` GPUs per node, if it is another one than the site's."""
    allocation: Literal["node", "shared"]
    """`node`: a job gets whole nodes, so that masks are right; `shared`: only what it requested."""
    whole_when_full: bool = False
    """Whether a job that asks for all GPUs and all cores of a shared node has the node to itself,
    so that masks are right."""
    billing: Billing
    preempts: bool = False
    """Whether jobs here are ended when others need their nodes."""
    grows_to: str | None = None
    """The partition to move to when a job outgrows this one."""
    max_jobs: Count | None = None
    """Jobs that one person may have here at a time. For the adviser; nothing reads it yet."""
    trials: bool = False
    """Whether it is for short trials: `lumitui try` takes it."""
    purpose: str = ""
    needs: str = ""
    """What a user needs before a job may run here, as a sentence, e.g. a scalability test."""
    arguments: tuple[str, ...] = ()
    """Further #SBATCH options that every job here needs, e.g. a QOS."""

    def too_small(self, nodes: int, gpus: int) -> str:
        """Return what a job of `nodes` nodes and `gpus` GPUs has too many of here; "" if none."""
        if nodes > self.max_nodes:
            return f"at most {self.max_nodes} node{'' if self.max_nodes == 1 else 's'}"
        if self.max_gpus is not None and gpus > self.max_gpus:
            return f"at most {self.max_gpus} GPU{'' if self.max_gpus == 1 else 's'} for a job"
        return ""

    def max_time_for(self, nodes: int) -> str:
        """Return the time limit of a job with `nodes` nodes, as text."""
        sizes = (each.max_time for each in self.max_time_of if nodes <= each.nodes)
        limit = next(sizes, self.max_time)
        if self.max_node_minutes is None:
            return limit
        return min(limit, str(max(1, self.max_node_minutes // nodes)), key=_seconds)


def _seconds(limit: str) -> int:
    return walltime.seconds_of(limit)
