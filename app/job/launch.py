"""What a job file becomes: the layout of its ranks, its price and the files that are sent."""

from dataclasses import dataclass

from lumitui.app.job.spec import JobSpec

ALL_NODES = 16
"""Beyond so many nodes only the first and the last one are measured (templates/probe.sh)."""


def measured_nodes(nodes: int) -> int:
    """Return on how many of a job's nodes the probe measures."""
    return nodes if nodes <= ALL_NODES else 2


@dataclass(frozen=True)
class Layout:
    """How the ranks lie on nodes, GPUs and cores."""

    nodes: int
    ranks_per_node: int
    """One rank a GPU."""
    tasks_per_node: int
    """Slurm's tasks: the ranks, or one launcher a node that starts them."""
    cpus_per_task: int
    gpus_per_node: int
    whole_nodes: bool
    masks: tuple[str, ...] = ()
    """srun's CPU masks in local-rank order; empty: none given."""
    planned_cores: tuple[str, ...] = ()
    """Cores of each local rank as ranges; empty: nothing is promised."""
    exact: bool = True
    """Whether a rank must have all planned cores, or may have some of them."""
    unplanned: str = ""
    """Why no cores are promised, where `planned_cores` is empty."""

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True)
class Price:
    """What is billed if the job runs to its time limit."""

    amount: float
    unit: str
    per_hour: float


@dataclass(frozen=True)
class LaunchFile:
    """A small file that goes to the run's folder."""

    name: str
    content: str
    mode: int = 0o600


@dataclass(frozen=True)
class Launch:
    """A job made ready: what the preview shows and the cluster gets, byte for byte."""

    spec: JobSpec
    script: str
    """job.sh; independent of the run it is for."""
    layout: Layout
    price: Price
    files: tuple[LaunchFile, ...] = ()
    global_batch: int | None = None
    """Samples a step over all ranks, where it is known."""
    can_resume: bool = False
