"""This process among the ranks: launcher variables, process group, device, cores, stop signals.

Whatever started the processes (srun, torchrun, deepspeed, mpirun, a shell loop), a trainer reads
the same six variables: RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and RUN_DIR.
Without the first five it trains alone.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import FrameType

import torch
import torch.distributed as dist

from reporting import UsageError

STOPPED_EARLY = 85
"""Exit code of a trainer that stopped on SIGUSR1 or SIGTERM with its checkpoint saved: the
training is unfinished, so it isn't 0, and nothing is lost, so it isn't 1."""

LAUNCHER_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# Each names how many processes some launcher started; more than one without RANK would be that
# many separate trainings writing over each other.
PROCESS_COUNTS = ("SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
# What torchrun, deepspeed, mpirun and srun call the number of ranks on this node.
NODE_COUNTS = (
    "LOCAL_WORLD_SIZE",
    "LOCAL_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "SLURM_NTASKS_PER_NODE",
)


@dataclass(frozen=True)
class Ranks:
    """This process's place among all of them."""

    rank: int
    local_rank: int
    world_size: int
    local_world_size: int | None
    """Ranks on this node; None where the launcher doesn't say."""
    run_dir: Path


def read_ranks(environ: Mapping[str, str] = os.environ) -> Ranks:
    """Read this process's place from the launcher's variables.

    Raises:
        UsageError: only some of the variables are set, one isn't a number, or the numbers
            contradict each other.
    """
    run_dir = Path(environ.get("RUN_DIR", "."))
    missing = [name for name in LAUNCHER_VARIABLES if not environ.get(name)]
    if len(missing) == len(LAUNCHER_VARIABLES):
        for name in PROCESS_COUNTS:
            if environ.get(name, "1") not in ("", "1"):
                raise UsageError(
                    f"{name}={environ[name]} processes were started but RANK is not set. "
                    f"Set {', '.join(LAUNCHER_VARIABLES)} for each process before python starts."
                )
        return Ranks(0, 0, 1, 1, run_dir)
    if missing:
        raise UsageError(
            f"The launcher set some variables but not {', '.join(missing)}. "
            "Set all five, or none to train alone."
        )
    rank, local_rank, world_size = (
        _number(name, environ[name]) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")
    )
    given = [name for name in NODE_COUNTS if environ.get(name)]
    on_node = _number(given[0], environ[given[0]]) if given else None
    if rank >= world_size:
        raise UsageError(
            f"RANK={rank} does not fit WORLD_SIZE={world_size}: ranks count from 0. "
            "Check the number of tasks and the RANK of each."
        )
    return Ranks(rank, local_rank, world_size, on_node, run_dir)


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"{name}={text!r} is not a whole number. The launcher has to set it.")
    return int(text)


def choose_cores(ranks: Ranks) -> None:
    """Give this rank its share of the node's cores, and as many threads as it has cores.

    Only where nothing was chosen: a mask from srun, taskset or a container stays, and so does
    OMP_NUM_THREADS. On a node with GPUs only the launcher knows the cores near each GPU (their
    order isn't the cores' order: GPU 0 may be next to cores 49-55), so an even split is for CPU
    nodes only. macOS has no affinity calls.
    """
    cores = os.cpu_count() or 1
    on_node = ranks.local_world_size or ranks.world_size
    share = max(1, cores // on_node)
    if sys.platform == "linux":
        allowed = sorted(os.sched_getaffinity(0))
        if len(allowed) < cores:
            share = len(allowed)  # a launcher chose: all of them are this rank's
        elif ranks.local_world_size and 1 < on_node <= cores and not torch.cuda.is_available():
            first = ranks.local_rank % on_node * share
            os.sched_setaffinity(0, allowed[first : first + share])
    if "OMP_NUM_THREADS" not in os.environ:
        # More threads than cores wait for each other: 4 ranks with 2 threads each on 2 cores
        # trained 10 times slower than with 1 each.
        torch.set_num_threads(share)


def join(ranks: Ranks) -> torch.device:
    """Choose this rank's device and join the process group: nccl on GPUs, else gloo.

    ROCm's PyTorch uses the names "cuda" and "nccl" too.
    """
    device = torch.device("cpu")
    if torch.cuda.is_available():
        # One visible GPU means the launcher bound this rank to it: then it's number 0.
        visible = torch.cuda.device_count()
        if visible > 1 and ranks.local_rank >= visible:
            raise UsageError(
                f"LOCAL_RANK={ranks.local_rank} but only {visible} GPUs are visible here. "
                "Start as many ranks per node as there are GPUs."
            )
        device = torch.device("cuda", ranks.local_rank if visible > 1 else 0)
        torch.cuda.set_device(device)
    backend = "nccl" if device.type == "cuda" else "gloo"
    # 10 minutes: a rank that never comes must not hold the others' nodes for gloo's 30.
    limit = timedelta(minutes=10)
    if all(name in os.environ for name in LAUNCHER_VARIABLES):
        dist.init_process_group(backend, timeout=limit)
    else:  # alone: no port, so that two trainings on one machine never meet
        dist.init_process_group(
            backend,
            store=dist.HashStore(),  # type: ignore[attr-defined]  # documented, not re-exported
            rank=0,
            world_size=1,
            timeout=limit,
        )
    _kept.append(dist.group.WORLD)
    return device


_kept: list[object] = []
"""The process group until os._exit. Its destructor waits for gloo's thread, which may itself wait
for Python's lock, to drop the last barrier's tensor (PyTorch 2.13): 1 of 40 ranks that had trained
to the end never ended."""


def average(values: list[float], device: torch.device) -> list[float]:
    """The mean of each value over all ranks, in one collective; also a barrier."""
    total = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(total)
    mean: list[float] = (total / dist.get_world_size()).tolist()
    return mean


def all_see(path: Path, device: torch.device) -> bool:
    """Return whether a file is there, with the same answer on every rank.

    Raises:
        UsageError: it is there for some ranks only.
    """
    seen = average([path.exists()], device)[0]
    if 0 < seen < 1:
        raise UsageError(
            f"Only {seen:.0%} of the ranks see {path}. "
            "RUN_DIR has to be on a file system that all nodes share."
        )
    return seen == 1


class StopRequest:
    """Remembers SIGUSR1 (the time limit is near) and SIGTERM (the job is cancelled).

    The handler only notes the signal; the training loop checks it at the end of each step, so
    that no step is interrupted.
    """

    def __init__(self) -> None:
        """Listen from now on; only the main thread may."""
        self.received: str = ""
        """Name of the first signal received, or the empty text."""
        for number in (signal.SIGUSR1, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = self.received or signal.Signals(number).name
