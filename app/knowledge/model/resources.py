"""What a job asks of Slurm, in numbers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Resources:
    """The job's request, with what follows from its options; None: not asked, or not known."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    seconds: int | None = None
    """The time limit."""
    nodes: int | None = None
    tasks: int | None = None
    """In all."""
    tasks_per_node: int | None = None
    cpus_per_task: int | None = None
    gpus_per_node: int | None = None
    gpu_type: str = ""
    """The type in `gpu:TYPE:N`."""
    gpus_total: bool = False
    """Whether the GPUs were requested in all (`--gpus=N`), not per node."""
    memory_gib: float | None = None
    """Per node, whichever option asked for it."""
    exclusive: bool = False
    array: str = ""


UNKNOWN = Resources()
"""Of a job that asks for nothing."""
