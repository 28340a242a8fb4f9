"""DeepSpeed's engine, started without its discoveries and with a folder of its own to compile in.

Import this before anything imports `deepspeed`.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import tempfile
import traceback
from pathlib import Path
from typing import TypeAlias

import torch
import torch.distributed as dist
from torch import nn

from engine import ranks
from engine.reporting import UsageError

if not torch.cuda.is_available() or os.environ.get("TRAINER_DEVICE") == "cpu":
    # DeepSpeed looks for an accelerator while it is imported; without one it guesses and warns.
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
import deepspeed  # type: ignore[import-untyped]

CONFIG = Path(__file__).resolve().parents[1] / "ds_config.json"
ALONE = ("0", "0", "1", "127.0.0.1", "29500")
"""The launcher's variables as a training of one process would be given them."""


Engine: TypeAlias = deepspeed.DeepSpeedEngine


PRIVATE = ("checkpoint_engine", "_copy_recovery_script", "_config", "zero_optimization_stage")
"""What our saves and resumes take of the engine although DeepSpeed promises none of it (0.19)."""


class NotCompiled(UsageError):
    """What DeepSpeed compiles at the start could not be compiled on this node."""

    by_every_rank = True


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DeepSpeed's: --deepspeed and --deepspeed_config FILE. Its launcher adds --local_rank."""
    parser.add_argument("--local_rank", type=int, default=0, help=argparse.SUPPRESS)
    deepspeed.add_config_arguments(parser)


def check_config_exists(path: Path) -> None:
    """Refuse a missing configuration before the ranks wait for each other.

    Raises:
        UsageError: there is no such file.
    """
    if not path.is_file():
        raise UsageError(
            f"There is no DeepSpeed configuration {path}. Give "
            "--deepspeed_config a file, or leave it out for the one beside the trainer."
        )


def start(
    args: argparse.Namespace, me: ranks.Ranks, device: torch.device, net: nn.Module
) -> Engine:
    """Build DeepSpeed's engine around a network, in the process group that stands.

    Raises:
        UsageError: DeepSpeed refuses the configuration, can't compile what it needs, or is a
            version that saves in another way.
    """
    # DeepSpeed takes the GPU of this number, whichever was chosen: where a launcher shows each rank
    # its own GPU only, local rank 3's is number 0.
    args.local_rank = device.index or 0
    os.environ["LOCAL_RANK"] = str(args.local_rank)
    build_folder = private_build_folder(me)
    if device.type == "cpu":
        # A kernel for inference on CPUs which DeepSpeed would compile at start: 29 s on 2 cores.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    # The process group stands, so there's nothing to discover: without this DeepSpeed asks MPI.
    # It reads the launcher's variables even where there was no launcher.
    for name, alone in zip(ranks.LAUNCHER_VARIABLES, ALONE, strict=True):
        os.environ.setdefault(name, alone)
    deepspeed.init_distributed(auto_mpi_discovery=False, verbose=False)
    try:
        deepspeed.DeepSpeedConfig(args.deepspeed_config)
    except (AssertionError, ValueError, OSError) as error:
        raise UsageError(
            f"DeepSpeed refuses {args.deepspeed_config}: {error}. "
            f"Correct it; it has to suit {me.world_size} ranks."
        ) from error
    try:
        engine, *_ = deepspeed.initialize(
            args=args, model=net, model_parameters=net.parameters(), dist_init_required=False
        )
    except (RuntimeError, ImportError, OSError, subprocess.SubprocessError) as error:
        if "cpu_adam" not in f"{error} {traceback.format_exc()}":
            raise
        first = str(error).strip().partition("\n")[0]
        raise NotCompiled(
            f"DeepSpeed could not compile its optimizer for the CPU's memory ({first}). Load a C++ "
            "compiler, or name it by CXX; or set `torch_adam: true` in the optimizer's `params` of "
            "its configuration, which is slower."
        ) from error
    if build_folder:
        shutil.rmtree(build_folder, ignore_errors=True)
    if missing := [name for name in PRIVATE if not hasattr(engine, name)]:
        raise UsageError(
            f"DeepSpeed {deepspeed.__version__} has no {missing[0]}, so that its checkpoints could "
            "not be written whole. Use version 0.19, which these trainers are tested with."
        )
    return engine


def private_build_folder(me: ranks.Ranks) -> str | None:
    """Give each node a fresh folder for what DeepSpeed compiles, or keep TORCH_EXTENSIONS_DIR.

    PyTorch compiles on the first rank that takes a lock file there, and the others wait. In the
    default folder, ~/.cache, a lock left by a killed job makes the next one wait for ever, and
    two nodes' compilers meet. Only the owner may enter (mkdtemp's 0700): it's code we load.

    Returns:
        The folder, on the rank that has to remove it; None on the others.
    """
    if os.environ.get("TORCH_EXTENSIONS_DIR"):
        return None
    mine = tempfile.mkdtemp(prefix="deepspeed-") if me.local_rank == 0 else None
    folders: list[tuple[str, str | None]] = [("", None)] * me.world_size
    dist.all_gather_object(folders, (platform.node(), mine))
    here = [path for host, path in folders if host == platform.node() and path]
    os.environ["TORCH_EXTENSIONS_DIR"] = here[0]
    return mine
