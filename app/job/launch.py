"""What a job file becomes: the layout of its ranks, its price and the files that are sent."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lumitui.remote.site.device import Device, device
from lumitui.remote.site.run_folder import JOB_SCRIPT

if TYPE_CHECKING:
    from lumitui.app.job.spec import JobSpec

ALL_NODES = 16
"""On more nodes, the probe measures only the first and the last (templates/job/probe.sh)."""


def measured_nodes(nodes: int) -> int:
    """Return on how many of a job's nodes the probe measures."""
    return nodes if nodes <= ALL_NODES else 2


@dataclass(frozen=True)
class RankLayout:
    """How the ranks are placed on nodes, GPUs and cores."""

    nodes: int
    ranks_per_node: int
    """One rank per GPU."""
    tasks_per_node: int
    """Slurm tasks: one per rank, or one launcher per node that starts the ranks."""
    cpus_per_task: int
    gpus_per_node: int
    whole_nodes: bool
    masks: tuple[str, ...] = ()
    """srun's CPU masks in local-rank order; empty: no masks."""
    planned_cores: tuple[str, ...] = ()
    """The cores of each local rank as ranges; empty: no cores are promised."""
    exact: bool = True
    """Whether a rank must get all of its planned cores, or may get some of them."""
    unplanned: str = ""
    """Why no cores are promised, when `planned_cores` is empty."""
    gpu_bus: tuple[str, ...] = ()
    """PCI bus of each local rank's GPU; empty: not known, or Slurm chooses the GPUs."""
    on_cpu: bool = False
    """Whether there are no GPUs: what counts as one is a rank on CPU cores."""

    @property
    def device(self) -> Device:
        """What each rank runs on, in words."""
        return device(on_cpu=self.on_cpu)

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True)
class Price:
    """What is billed if the job runs to its time limit; with a chain, to all that it may take."""

    amount: float
    unit: str
    per_hour: float


@dataclass(frozen=True)
class RankMemory:
    """What a rank needs of its GPU's memory for a step, by an estimate."""

    needed: int
    """Bytes at the peak; without the driver's and NCCL's."""
    of: int
    """Bytes that the GPU has."""
    batch: int
    """Samples of a rank in one pass."""

    RESERVED: ClassVar[int] = 2 << 30
    """Bytes for the driver, NCCL and gaps between tensors: an assumption, nobody measured it."""

    @property
    def fits(self) -> bool:
        """Whether it is less than the GPU has."""
        return self.needed + self.RESERVED <= self.of

    @property
    def gib(self) -> str:
        """What is needed, in GiB: `41`, `0.3`, and `0.1` for less."""
        amount = max(0.1, self.needed / (1 << 30))
        return f"{amount:.0f}" if amount >= 9.95 else f"{amount:.1f}"


@dataclass(frozen=True)
class LaunchFile:
    """A small file that goes to the run's folder."""

    name: str
    content: str
    mode: int = 0o600


@dataclass(frozen=True)
class Launch:
    """A job ready to be sent: what the preview shows, and what the cluster gets byte for byte."""

    spec: "JobSpec"
    script: str
    """job.sh; independent of the run it is for."""
    layout: RankLayout
    price: Price
    files: tuple[LaunchFile, ...] = ()
    global_batch: int | None = None
    """Samples per step over all ranks; None: not known."""
    can_resume: bool = False
    memory: RankMemory | None = None
    """What a rank needs of its GPU; None: not known."""

    @property
    def texts(self) -> dict[str, str]:
        """What goes to the run's folder, by name: job.sh, then what it calls and reads."""
        return {JOB_SCRIPT: self.script} | {file.name: file.content for file in self.files}
