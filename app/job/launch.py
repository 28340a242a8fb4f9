"""Everything derived from a job file: the ranks' layout, the price and the files to send."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lumitui.remote.site.device import Device, device
from lumitui.remote.site.run_folder import JOB_SCRIPT

if TYPE_CHECKING:
    from lumitui.app.job.spec import JobSpec

ALL_NODES = 16
"""On more nodes, the probe measures only the first and the last (templates/job/probe.sh)."""
SHARED = "nodes are shared, and Slurm chooses the cores"
"""Why a job that shares its nodes has no planned cores."""


def measured_nodes(nodes: int) -> int:
    """Return how many of a job's nodes the probe measures."""
    return nodes if nodes <= ALL_NODES else 2


@dataclass(frozen=True)
class RankLayout:
    """The placement of ranks on nodes, GPUs and cores."""

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
    """Whether a rank must get all of its planned cores, or only some of them."""
    unplanned: str = ""
    """Why no cores are promised, if `planned_cores` is empty."""
    gpu_bus: tuple[str, ...] = ()
    """PCI bus of each local rank's GPU; empty: unknown, or Slurm chooses the GPUs."""
    on_cpu: bool = False
    """Whether the node has no GPUs; each rank on CPU cores then counts as one."""

    @property
    def device(self) -> Device:
        """The words for the device that each rank uses."""
        return device(on_cpu=self.on_cpu)

    @property
    def world_size(self) -> int:
        """The number of all ranks."""
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True)
class Price:
    """The site's bill if the job runs to its time limit, or a chain through all its limits."""

    amount: float
    unit: str
    per_hour: float


@dataclass(frozen=True)
class RankMemory:
    """An estimate of the GPU memory that a rank needs for a step."""

    needed: int
    """Bytes at the peak, without the driver's and NCCL's."""
    of: int
    """The GPU's memory in bytes."""
    batch: int
    """Samples of a rank in one pass."""

    RESERVED: ClassVar[int] = 2 << 30
    """Bytes for the driver, NCCL and gaps between tensors: an unverified assumption."""

    @property
    def fits(self) -> bool:
        """Whether the GPU has enough memory."""
        return self.needed + self.RESERVED <= self.of

    @property
    def gib(self) -> str:
        """The needed memory in GiB, such as `41` or `0.3`; at least `0.1`."""
        amount = max(0.1, self.needed / (1 << 30))
        return f"{amount:.0f}" if amount >= 9.95 else f"{amount:.1f}"


@dataclass(frozen=True)
class LaunchFile:
    """A small file for the run's folder."""

    name: str
    content: str
    mode: int = 0o600


@dataclass(frozen=True)
class Launch:
    """A job to send: the preview shows it, and the cluster gets it byte for byte."""

    spec: "JobSpec"
    script: str
    """job.sh, the same for every run of this job."""
    layout: RankLayout
    price: Price
    files: tuple[LaunchFile, ...] = ()
    global_batch: int | None = None
    """Samples per step over all ranks; None: unknown."""
    can_resume: bool = False
    memory: RankMemory | None = None
    """The GPU memory that a rank needs; None: unknown."""

    @property
    def texts(self) -> dict[str, str]:
        """The files in the run's folder by name: job.sh, then those that it uses."""
        return {JOB_SCRIPT: self.script} | {file.name: file.content for file in self.files}
