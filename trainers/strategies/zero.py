"""DeepSpeed's ZeRO: shards optimizer states, gradients and weights among the ranks.

The engine starts without DeepSpeed's discovery and compiles in its own folder. This module writes
the checkpoint files, and repartitions them for other numbers of ranks. Import it before anything
imports `deepspeed`.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import torch
import torch.distributed as dist
from torch import Tensor, nn

from engine import ranks
from engine.exits import UsageError
from saving.checkpoint import on_all_ranks, on_first_rank
from saving.saver import LONGEST, Staging, Write
from strategies import Setup
from strategies.pytorch import spread_nan

if not torch.cuda.is_available() or os.environ.get("TRAINER_DEVICE") == "cpu":
    # DeepSpeed searches for an accelerator on import; without one, it guesses and warns.
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
import deepspeed  # type: ignore[import-untyped]
from deepspeed.runtime.checkpoint_engine.torch_checkpoint_engine import (  # type: ignore[import-untyped]
    TorchCheckpointEngine,
)

CONFIG = Path(__file__).resolve().parents[1] / "ds_config.json"
Engine: TypeAlias = deepspeed.DeepSpeedEngine


PRIVATE = ("checkpoint_engine", "_copy_recovery_script", "_config", "zero_optimization_stage")
"""Parts of DeepSpeed's engine that saving and resuming use although they are not a stable API
(0.19)."""


class NotCompiled(UsageError):
    """DeepSpeed's compilation at start failed on this node."""

    by_every_rank = True


def check_config_exists(path: Path) -> None:
    """Raise UsageError if a configuration is missing, before ranks wait for each other."""
    if not path.is_file():
        raise UsageError(
            f"There is no DeepSpeed configuration {path}. Give --deepspeed_config a file, or "
            "omit it to use the one beside the trainer."
        )


def start(
    args: argparse.Namespace, me: ranks.Ranks, device: torch.device, net: nn.Module
) -> Engine:
    """Build DeepSpeed's engine around a network in an existing process group.

    Raises:
        UsageError: DeepSpeed refuses the configuration, fails to compile, or is a version that
            saves differently.
    """
    # DeepSpeed uses the GPU with this number: if a launcher shows each rank only its own GPU, that
    # of local rank 3 is number 0.
    args.local_rank = device.index or 0
    os.environ["LOCAL_RANK"] = str(args.local_rank)
    build_folder = private_build_folder(me)
    if device.type == "cpu":
        # A CPU inference kernel that DeepSpeed would compile at start: 29 s on 2 cores.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    # The process group exists, so nothing needs discovery; otherwise DeepSpeed would use MPI. It
    # reads the launcher's variables even without a launcher.
    ranks.name_alone()
    deepspeed.init_distributed(auto_mpi_discovery=False, verbose=False)
    try:
        deepspeed.DeepSpeedConfig(args.deepspeed_config)
    except (AssertionError, ValueError, OSError) as error:
        raise UsageError(
            f"DeepSpeed refuses {args.deepspeed_config}: {error}. "
            f"Correct it; it must match {me.world_size} ranks."
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
            f"DeepSpeed could not compile its CPU optimizer ({first}). Load a C++ compiler, or "
            "set CXX to its path; or set `torch_adam: true` in the optimizer's `params` of "
            "its configuration, which is slower."
        ) from error
    if build_folder:
        shutil.rmtree(build_folder, ignore_errors=True)
    if missing := [name for name in PRIVATE if not hasattr(engine, name)]:
        raise UsageError(
            f"DeepSpeed {deepspeed.__version__} has no {missing[0]}, so its checkpoints would be "
            "incomplete. Use version 0.19, with which these trainers are tested."
        )
    return engine


def private_build_folder(me: ranks.Ranks) -> str | None:
    """Give each node a new folder for DeepSpeed's compiled code; keep TORCH_EXTENSIONS_DIR.

    PyTorch compiles on the first rank that takes a lock file there, and the others wait. In the
    default folder, ~/.cache, a lock left by a killed job blocks the next one for ever, and the
    compilers of two nodes conflict. Only the owner may enter (mkdtemp's 0700), because the code is
    loaded.

    Returns:
        The folder, on the rank that must remove it; None on the others.
    """
    if os.environ.get("TORCH_EXTENSIONS_DIR"):
        return None
    mine = tempfile.mkdtemp(prefix="deepspeed-") if me.local_rank == 0 else None
    folders: list[tuple[str, str | None]] = [("", None)] * me.world_size
    dist.all_gather_object(folders, (platform.node(), mine))
    here = [path for host, path in folders if host == platform.node() and path]
    os.environ["TORCH_EXTENSIONS_DIR"] = here[0]
    return mine


DIVISIBLE = {"universal_checkpoint_info": {"universal_checkpoint_version": 0.2}}
"""The checkpoint entries that DeepSpeed's converter needs to repartition it. Version 0.2 has no
tensor parallelism. Source: deepspeed/checkpoint/constants.py and ds_to_universal.py."""
_ADAMS = ("adam", "adamw")
"""The optimizers whose state the converter supports (exp_avg and exp_avg_sq)."""


class HeldFiles(TorchCheckpointEngine):  # type: ignore[misc]  # DeepSpeed has no types
    """Captures DeepSpeed's writes until `write` is called."""

    def __init__(self, staging: Staging | None) -> None:
        """Keep copies, or the training's tensors if they are written immediately."""
        self._staging = staging
        self._parts: list[tuple[object, Path]] = []

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Do nothing: the folder exists."""

    def create(self, info: object) -> None:
        """Do nothing."""

    def save(self, state_dict: object, path: str) -> None:
        """Keep one file's content."""
        where = Path(path)
        copied = self._staging.copied(state_dict, where.name) if self._staging else state_dict
        self._parts.append((copied, where))

    def commit(self, info: object) -> bool:
        """Do nothing: the manifest completes it."""
        return True

    def write(self) -> list[str]:
        """Write the files; return their names."""
        for content, path in self._parts:
            torch.save(content, path)
        return [path.name for _, path in self._parts]


@contextmanager
def universal(folder: Path, me: ranks.Ranks, optimizer: str, saved_by: int) -> Iterator[Path]:
    """A checkpoint in DeepSpeed's universal format, which any number of ranks can load.

    Rank 0 converts it with DeepSpeed's ds_to_universal, beside the other checkpoints; it is removed
    afterwards.

    Raises:
        UsageError: the optimizer's state cannot be repartitioned, or the conversion failed.
    """
    if optimizer.lower() not in _ADAMS:
        raise UsageError(
            f"The checkpoint's ZeRO parts are from {saved_by} ranks, this run has {me.world_size}, "
            f"and DeepSpeed repartitions only Adam's state, not {optimizer}'s. Resume with "
            f"{saved_by} ranks."
        )
    target = folder.parent / ".universal" / folder.name
    # Waiting ranks use a separate group: converting may take longer than the 10 minutes after which
    # the training's group times out.
    group = dist.new_group(backend="gloo", timeout=LONGEST)
    try:
        on_first_rank(me, lambda: _convert(folder, target), folder, group)
        yield target
        on_all_ranks(lambda: None, folder)  # every rank has read it
    finally:
        if me.rank == 0:
            shutil.rmtree(target.parent, ignore_errors=True)


def _convert(source: Path, target: Path) -> None:
    """Run DeepSpeed's converter in its own process; UsageError if it fails."""
    shutil.rmtree(target.parent, ignore_errors=True)  # from a killed attempt
    target.parent.mkdir()
    workers = str(min(8, len(os.sched_getaffinity(0))))
    done = subprocess.run(
        [sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal",
         "--input_folder", str(source), "--output_folder", str(target),
         "--num_extract_workers", workers, "--num_merge_workers", workers],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )  # fmt: skip
    if done.returncode:
        reason = (done.stdout.strip().splitlines() or ["it gave no reason"])[-1]
        raise UsageError(
            f"DeepSpeed could not repartition {source} ({reason}). "
            "Resume with as many ranks as saved it."
        )


class Zero:
    """DeepSpeed's engine; its configuration determines stage, optimizer, precision and batch."""

    def __init__(self, setup: Setup) -> None:
        """Start the engine in an existing process group; UsageError if its configuration is bad."""
        self._me, self._loss = setup.me, setup.loss
        self._engine = engine = start(setup.args, setup.me, setup.device, setup.build())
        self.name = f"zero{engine.zero_optimization_stage()}"
        self.module: nn.Module = engine.module
        self.optimizer_name = str(engine.optimizer_name() or "none")
        self.lr = float(engine.get_lr()[0])
        # The engine's batch: any other would differ from what the configuration, the log and the
        # learning rate assume.
        self.micro_batch = int(engine.train_micro_batch_size_per_gpu())
        self.accumulate = int(engine.gradient_accumulation_steps())
        self._dtype = next(engine.module.parameters()).dtype
        short = {torch.bfloat16: "bf16", torch.float16: "fp16"}
        self.precision = short.get(self._dtype, "fp32")
        self._device = setup.device
        self._staging = Staging()

    def rate(self, done: float, step: int) -> float:
        """Return DeepSpeed's current learning rate, from the configuration or its scheduler."""
        return float(self._engine.get_lr()[0])

    def loss(self, inputs: Tensor, targets: Tensor, last: bool) -> Tensor:
        """Return the loss of a micro batch."""
        return self._loss(self._engine(self._input(inputs)).float(), inputs, targets)

    def predict(self, inputs: Tensor) -> Tensor:
        """Return the outputs in evaluation."""
        outputs: Tensor = self.module(self._input(inputs)).float()
        return outputs

    def _input(self, inputs: Tensor) -> Tensor:
        return inputs.to(self._dtype) if inputs.is_floating_point() else inputs

    def backward(self, loss: Tensor, last: bool) -> None:
        """Add to the gradient; the engine divides by the number of micro batches."""
        self._engine.backward(spread_nan(loss))
        if not last:
            self._engine.step()  # counts the micro batch

    def step(self, lr: float) -> Tensor:
        """Have the engine update the weights; it skips a non-finite gradient itself."""
        self._engine.step()
        return torch.tensor(self._gradient_norm(), device=self._device)

    def _gradient_norm(self) -> float:
        """Return the gradient norm of the last step; infinite if it caused a skipped step.

        With fp16, steps skipped to find the loss scale count as normal.
        """
        engine = self._engine
        if getattr(engine.optimizer, "overflow", False):
            return 0.0 if engine.fp16_enabled() else math.inf
        norm = engine.get_global_grad_norm()
        return 0.0 if norm is None else float(norm)

    def communication(self) -> dict[str, float]:
        """Return nothing: DeepSpeed can report it only by waiting for the GPU."""
        return {}

    def stage(self, folder: Path, copy: bool) -> Write:
        """Capture this rank's part, as DeepSpeed would write it.

        DeepSpeed neither syncs to disk nor writes checksums; and if one rank's disk is full, that
        rank ends while the others wait in a barrier. So nothing is written here.
        """
        held = HeldFiles(self._staging if copy else None)
        self._engine._copy_recovery_script = lambda folder: None  # it writes
        own, self._engine.checkpoint_engine = self._engine.checkpoint_engine, held
        try:
            self._engine.save_checkpoint(
                str(folder.parent),
                tag=folder.name,
                client_state=DIVISIBLE,
                save_latest=False,
            )
        finally:
            self._engine.checkpoint_engine = own
        return held.write

    def load(self, folder: Path, saved_by: int) -> None:
        """Resume from the parts of the same number of ranks, or repartition them."""
        engine, me = self._engine, self._me
        rates = [group["lr"] for group in engine.optimizer.param_groups]
        if saved_by == me.world_size:
            engine.load_checkpoint(str(folder.parent), tag=folder.name)
        else:
            with universal(folder, me, self.optimizer_name, saved_by) as converted:
                engine._config.load_universal_checkpoint = True
                engine.load_checkpoint(str(converted.parent), tag=converted.name)
            engine._config.load_universal_checkpoint = False
        if engine.lr_scheduler is None:
            # The saved optimizer state has the old learning rates; those in the configuration take
            # precedence.
            for group, rate in zip(engine.optimizer.param_groups, rates, strict=True):
                group["lr"] = rate
