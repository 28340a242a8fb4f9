"""This process among the ranks: launcher variables, process group, device and threads.

Whatever started the processes (srun, torchrun, deepspeed, accelerate, mpirun, a shell loop), a
trainer reads the same six variables: RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and
RUN_DIR. If the first three are not set, those of mpirun or srun replace them. Without any, it
trains alone.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar, cast

import torch
import torch.distributed as dist

from engine.exits import UsageError

LAUNCHER_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
OWN_NAMES = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    ("PMI_RANK", "PMI_LOCAL_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS"),
    ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS"),
)
"""The names of RANK, LOCAL_RANK and WORLD_SIZE in Open MPI, Hydra (MPICH and Intel MPI), Cray's
PMI, PMIx and srun. Under mpirun, srun's variables are those of mpirun's daemons, so the first
existing names count. A batch script also has SLURM_PROCID, but not the number of a step's tasks."""
# Numbers of processes set by launchers; more than one without RANK would be separate trainings that
# overwrite each other.
PROCESS_COUNTS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")


@dataclass(frozen=True)
class Ranks:
    """This process's rank and the world size."""

    rank: int
    local_rank: int
    world_size: int
    run_dir: Path


def read_ranks(environ: MutableMapping[str, str] = os.environ) -> Ranks:
    """Read this process's rank from the launcher's variables.

    Values that only the launcher's own variables have are set in `environ` under the names that
    PyTorch, DeepSpeed and Lightning read.

    Raises:
        UsageError: some variables are missing, not numbers, or contradict each other.
    """
    run_dir = Path(environ.get("RUN_DIR", "."))
    own = next((names for names in OWN_NAMES if all(map(environ.get, names))), None)
    if not any(map(environ.get, LAUNCHER_VARIABLES)):
        for name in PROCESS_COUNTS:
            if environ.get(name, "1") not in ("", "1"):
                unknown = LAUNCHER_VARIABLES[len(own or ()) :]
                raise UsageError(
                    f"{name}={environ[name]} processes were started, but {unknown[0]} is not set. "
                    f"Set {', '.join(unknown)} for each process before python starts."
                )
        return Ranks(0, 0, 1, run_dir)
    found = {ours: environ[name] for ours, name in zip(LAUNCHER_VARIABLES, own or (), strict=False)}
    found |= {name: environ[name] for name in LAUNCHER_VARIABLES if environ.get(name)}
    if missing := [name for name in LAUNCHER_VARIABLES if name not in found]:
        raise UsageError(
            f"The launcher set some variables but not {', '.join(missing)}. "
            "Set all five, or none to train on one process."
        )
    environ.update(found)
    rank, local_rank, world_size = (_number(name, found[name]) for name in LAUNCHER_VARIABLES[:3])
    if rank >= world_size:
        raise UsageError(
            f"RANK={rank} does not fit WORLD_SIZE={world_size}: ranks count from 0. "
            "Check the number of tasks and the RANK of each."
        )
    if own and "TORCHELASTIC_RUN_ID" not in environ:  # torchrun may number the nodes differently
        _agree(rank, world_size, own, environ)
    return Ranks(rank, local_rank, world_size, run_dir)


def _agree(rank: int, world_size: int, own: tuple[str, ...], environ: Mapping[str, str]) -> None:
    """Raise UsageError if RANK and WORLD_SIZE contradict the launcher's `own` variables.

    A launcher started by srun starts more ranks than srun has tasks.
    """
    its_rank, its_size = (_number(name, environ[name]) for name in (own[0], own[2]))
    if its_size > world_size or (its_size == world_size and its_rank != rank):
        raise UsageError(
            f"RANK={rank} of WORLD_SIZE={world_size} contradicts {own[0]}={its_rank} of "
            f"{own[2]}={its_size}: some were set before the launcher started. Unset RANK and "
            "WORLD_SIZE in the job and in shell startup files, or set them for each process."
        )


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"{name}={text!r} is not a whole number. The launcher must set it.")
    return int(text)


def choose_threads() -> None:
    """Use as many threads as this rank has cores, unless OMP_NUM_THREADS is set.

    More threads than cores wait for each other: 4 ranks with 2 threads each on 2 cores trained 10
    times slower than with 1 each. Ranks bound to the same cores share them, and only the ranks know
    their number.
    """
    if "OMP_NUM_THREADS" in os.environ:
        return
    cores = frozenset(range(os.cpu_count() or 1))
    if sys.platform == "linux":
        cores = frozenset(os.sched_getaffinity(0))
    mine = (platform.node(), cores)
    torch.set_num_threads(threads(mine, gather(mine)))


def threads(mine: tuple[str, frozenset[int]], of_all: list[tuple[str, frozenset[int]]]) -> int:
    """Return a rank's share of its cores: a core shared by n ranks of the node counts 1/n."""
    node, cores = mine
    on_node = [others for host, others in of_all if host == node]
    return max(1, int(sum(1 / sum(core in others for others in on_node) for core in cores) + 1e-6))


_NO_LIST = ("", "-1", "NoDevFiles")
GPU_NAMES = {
    "SLURM_GPUS_ON_NODE": ("", "0"),
    "CUDA_VISIBLE_DEVICES": _NO_LIST,
    "ROCR_VISIBLE_DEVICES": _NO_LIST,
    "HIP_VISIBLE_DEVICES": _NO_LIST,
}
"""Variables that show that GPUs were requested, with the values for none."""


class DeviceError(UsageError):
    """This rank cannot use its GPU; other ranks may."""

    by_every_rank = True


def choose_device(ranks: Ranks, environ: Mapping[str, str] = os.environ) -> torch.device:
    """Return this rank's GPU, or the CPU if no GPU was requested.

    Without this check, a training run on the CPU could occupy its job's GPUs for hours and succeed.
    TRAINER_DEVICE=cpu allows it. ROCm's PyTorch also uses the name "cuda".

    Raises:
        DeviceError: Slurm gave this node GPUs, but PyTorch finds none, too few, or one that fails.
    """
    if environ.get("TRAINER_DEVICE") == "cpu":
        return torch.device("cpu")
    here = f"Rank {ranks.rank} on {platform.node()}"
    visible = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not visible:
        given = [
            f"{name}={environ[name]}"
            for name, none in GPU_NAMES.items()
            if environ.get(name, "") not in none
        ]
        if not given:
            return torch.device("cpu")
        version = torch.version
        built = f"ROCm {version.hip}" if version.hip else f"CUDA {version.cuda}"
        built = built if version.hip or version.cuda else "CPUs only"
        raise DeviceError(
            f"{here} cannot use a GPU, although {given[0]} is set; its PyTorch "
            f"{torch.__version__} is built for {built}. Check the container's GPU options and "
            "ROCR_VISIBLE_DEVICES or CUDA_VISIBLE_DEVICES, or set TRAINER_DEVICE=cpu."
        )
    # If one GPU is visible, the launcher bound this rank to it, as number 0.
    if visible > 1 and ranks.local_rank >= visible:
        raise DeviceError(
            f"{here} has LOCAL_RANK={ranks.local_rank}, but only {visible} GPUs are visible. "
            "Start as many ranks per node as there are GPUs."
        )
    device = torch.device("cuda", ranks.local_rank if visible > 1 else 0)
    try:
        torch.cuda.set_device(device)
        torch.zeros(1, device=device).item()
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise DeviceError(
            f"{here} can't use its GPU {device.index} ({reason}). "
            "Exclude the node with `--exclude`, and tell the site's support."
        ) from error
    return device


OLD_NAMES = {
    "TORCH_FR_BUFFER_SIZE": "TORCH_NCCL_TRACE_BUFFER_SIZE",
    "TORCH_FR_DUMP_TEMP_FILE": "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
}
"""Old names of the flight recorder's variables; the first was renamed in PyTorch 2.8, the second in
2.9 or 2.10. Version 2.13 reads both, and warns about the old ones."""


def name_flight_recorder(version: str, environ: MutableMapping[str, str]) -> None:
    """Set the flight recorder's variables of an older PyTorch from the job's."""
    major, minor = (int(part) for part in version.split(".")[:2])
    for new, old in OLD_NAMES.items():
        if new in environ and (major, minor) < (2, 10):
            environ.setdefault(old, environ[new])


def join(ranks: Ranks) -> torch.device:
    """Select this rank's device and join the process group: nccl on GPUs, else gloo."""
    device = choose_device(ranks)
    name_flight_recorder(torch.__version__, os.environ)
    backend = "nccl" if device.type == "cuda" else "gloo"
    # 10 minutes: a missing rank must not occupy the other nodes for gloo's 30.
    limit = timedelta(minutes=10)
    if all(name in os.environ for name in LAUNCHER_VARIABLES):
        # With `device_id`, each rank creates its communicator now instead of in its first
        # collective, where it could hang, and two ranks with one GPU fail here. gloo's groups have
        # no device.
        bound = device if device.type == "cuda" else None
        dist.init_process_group(backend, timeout=limit, device_id=bound)
    else:  # alone: no port, so that trainings on one machine cannot conflict
        dist.init_process_group(
            backend,
            store=dist.HashStore(),  # type: ignore[attr-defined]  # documented, not re-exported
            rank=0,
            world_size=1,
            timeout=limit,
        )
    _kept.append(dist.group.WORLD)
    return device


def name_alone() -> None:
    """Without a launcher, set its variables for a library that needs them."""
    for name, alone in zip(LAUNCHER_VARIABLES, ("0", "0", "1", "127.0.0.1", "29500"), strict=True):
        os.environ.setdefault(name, alone)


_kept: list[object] = []
"""Keeps the process group until os._exit. Its destructor waits for gloo's thread, which may wait
for Python's lock to drop the last barrier's tensor (PyTorch 2.13): 1 of 40 ranks that had trained
to the end never ended."""


def average(values: list[float], device: torch.device) -> list[float]:
    """Return the mean of each value over all ranks, in one collective; also a barrier."""
    total = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(total)
    mean: list[float] = (total / dist.get_world_size()).tolist()
    return mean


Value = TypeVar("Value")


def by_all(ranks: Ranks, work: Callable[[], Value]) -> Value:
    """Run an action that must succeed on every rank; if one fails, all end with its error.

    Otherwise, the others would wait 10 minutes for it, unless the launcher kills them.
    """
    try:
        found = work()
    except UsageError as error:
        gather(str(error))
        raise
    for rank, text in enumerate(gather("")):
        if text:
            raise UsageError(f"Rank {rank} ended: {text}")
    return found


def gather(value: Value, group: dist.ProcessGroup | None = None) -> list[Value]:
    """Return every rank's value, in rank order; for small and rare values."""
    values: list[Value | None] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value, group=group)
    return cast("list[Value]", values)
