"""A partition: its limits, what it allocates and what it bills."""

from typing import Annotated, Literal

from pydantic import Field

from lumitui.remote.site import walltime
from lumitui.remote.site.facts import Count, Facts, OneWord, Rate, Share, Time, fills


class NodeBilling(Facts):
    """The site bills whole nodes, whatever the job uses of them."""

    kind: Literal["node"] = "node"
    """Billing by nodes."""
    per_node_hour: Rate
    """Price of a node for an hour, in the `billing_unit`, e.g. `4`."""


class SliceBilling(Facts):
    """The largest share of cores, memory or GPUs is billed."""

    kind: Literal["slice"] = "slice"
    """Billing by the largest share."""
    cores: Share
    """Cores of a slice, e.g. `8`."""
    memory_gib: Share
    """GiB of memory of a slice, e.g. `64`."""
    gpus: Share = 1
    """GPUs of a slice, e.g. `1`."""
    per_slice_hour: Rate
    """Price of a slice for an hour, in the `billing_unit`, e.g. `0.5`."""


class SumBilling(Facts):
    """Everything allocated is billed, each at its own rate."""

    kind: Literal["sum"] = "sum"
    """Billing by the sum."""
    per_core_hour: Rate = 0
    """Price of a core for an hour, in the `billing_unit`, e.g. `0.01`."""
    per_gib_hour: Rate = 0
    """Price of a GiB of memory for an hour, e.g. `0.001`."""
    per_gpu_hour: Rate = 0
    """Price of a GPU for an hour, e.g. `1`."""
    per_disk_gib_hour: Rate = 0
    """For each GiB of `local_disk:` that the job requests."""
    whole_nodes_from: Count | None = None
    """From this many nodes on, the site bills whole nodes, whatever the job uses; None: never."""


Billing = Annotated[NodeBilling | SliceBilling | SumBilling, Field(discriminator="kind")]


class SizeLimit(Facts):
    """The time limit of jobs up to a size."""

    nodes: Count
    """The maximum number of nodes to which it applies."""
    max_time: Time
    """The limit of these jobs, e.g. `2:00:00`."""


class Partition(Facts):
    """A partition (queue) and its limits."""

    slurm_partition: OneWord | None = None
    """Slurm's own name, if this entry is a QOS; its `--qos` is one of `arguments`. None: the
    entry's name is the partition's."""
    max_time: Time
    """The longest time limit of a job, as Slurm writes it, e.g. `2-00:00:00` (two days)."""
    max_time_of: tuple[SizeLimit, ...] = ()
    """Other limits for jobs up to a number of nodes, the smallest first; `max_time` is for those
    that are larger than all of them."""
    max_node_minutes: Count | None = None
    """The maximum of nodes times minutes; None: only `max_time` applies."""
    max_nodes: Count
    """The maximum number of nodes per job, e.g. `40`."""
    max_gpus_per_node: Count | None = None
    """The maximum number of GPUs per node that a job may use, e.g. `4`; None: all."""
    min_gpus: Count | None = None
    """The minimum number of GPUs of a whole job."""
    max_gpus: Count | None = None
    """The maximum number of GPUs of a whole job; larger ones use `grows_to`."""
    gpu_request: Annotated[str, fills("gpus")] | None = None
    """The #SBATCH option for `{gpus}` GPUs per node, if it differs from the site's."""
    allocation: Literal["node", "shared"]
    """`node`: a job gets whole nodes, so masks are valid; `shared`: only what it requests."""
    whole_when_full: bool = False
    """Whether a job that requests all GPUs and all cores of a shared node has the node to itself,
    so that masks are valid."""
    billing: Billing
    """What a job costs: `{kind: node, …}`, `{kind: slice, …}` or `{kind: sum, …}`."""
    preempts: bool = False
    """Whether Slurm ends jobs here when others need their nodes."""
    grows_to: str | None = None
    """The partition to move to when a job outgrows this one."""
    max_jobs: Count | None = None
    """Maximum number of a user's simultaneous jobs here, as `lumitui site show` prints it."""
    trials: bool = False
    """Whether it is for short trials: `lumitui try` uses it."""
    purpose: str = ""
    """What it is for, in a few words, e.g. `short tests`; shown beside its name."""
    needs: str = ""
    """The user's precondition for jobs here, as a sentence, e.g. a scalability test."""
    arguments: tuple[str, ...] = ()
    """Further #SBATCH options that every job here needs, e.g. a QOS."""

    def too_small(self, nodes: int, gpus: int) -> str:
        """Return the limits that a job of `nodes` nodes and `gpus` GPUs exceeds here, or ""."""
        if nodes > self.max_nodes:
            return f"at most {self.max_nodes} node{'' if self.max_nodes == 1 else 's'}"
        if self.max_gpus is not None and gpus > self.max_gpus:
            return f"at most {self.max_gpus} GPU{'' if self.max_gpus == 1 else 's'} per job"
        return ""

    def max_time_for(self, nodes: int) -> str:
        """Return the time limit of a job with `nodes` nodes, as text."""
        sizes = (each.max_time for each in self.max_time_of if nodes <= each.nodes)
        limit = next(sizes, self.max_time)
        if self.max_node_minutes is None:
            return limit
        return min(limit, str(max(1, self.max_node_minutes // nodes)), key=walltime.seconds_of)
