"""Train a small network on MNIST with DeepSpeed ZeRO, on any number of ranks.

Alone, on a laptop:
    python deepspeed_zero.py
Four ranks on one node, started by DeepSpeed's launcher:
    RUN_DIR=/tmp/try deepspeed --num_gpus 4 deepspeed_zero.py --deepspeed_config ds_config.json
One rank per GPU on two nodes, started by Slurm (MASTER_ADDR and MASTER_PORT exported before):
    srun --nodes=2 --ntasks-per-node=8 bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID \
        WORLD_SIZE=$SLURM_NTASKS exec python3 deepspeed_zero.py --deepspeed \
        --deepspeed_config ds_config.json --resume'

The configuration decides on the ZeRO stage, the optimizer, the precision and the batch:
train_batch_size (a step, all ranks) = train_micro_batch_size_per_gpu x
gradient_accumulation_steps x ranks; DeepSpeed derives what is left out.

In:  RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, RUN_DIR; see engine/ranks.py.
Out: $RUN_DIR/metrics.jsonl as ddp.py writes it; see engine/reporting.py.
     $RUN_DIR/checkpoints/start-…-step-…/ of all ranks together, the last two; see
     saving/checkpoint.py.
     $RUN_DIR/errors/rank-N.json of a rank that failed.
Stop and exit codes as ddp.py's; 2 is for a wrong configuration too.
"""

from __future__ import annotations

from engine.stop_request import STOP  # first: a signal during the next imports is noted

# isort: split
import argparse
import math
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from data import mnist
from data.shares import seed_of, share
from engine import loop, ranks, reporting
from engine.arguments import add_shared, count
from models.accuracy import test_accuracy
from models.table import size
from saving import checkpoint
from saving import files as on_disk
from saving.position import Position
from strategies import zero_engine

# ------------------------------------------------------------------------- the arguments


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Train a digit classifier with DeepSpeed ZeRO.")
    add_shared(parser)
    add = parser.add_argument
    # The batch is the configuration's.
    add("--steps", type=count, default=sys.maxsize, help="end after this optimizer step")
    add("--resume", action="store_true", help="continue from the newest checkpoint if there is one")
    zero_engine.add_arguments(parser)
    args = parser.parse_args()
    args.deepspeed_config = args.deepspeed_config or str(zero_engine.CONFIG)
    return args


# ------------------------------------------------------------------ engine, step, checkpoint


@dataclass
class Training:
    """What changes while training, and the steps that change it."""

    args: argparse.Namespace
    me: ranks.Ranks
    device: torch.device
    digits: mnist.Digits
    engine: zero_engine.Engine
    at: Position
    guard: loop.LossGuard
    checkpoints: checkpoint.Checkpoints
    saved: on_disk.Saved | None = None
    """The checkpoint that this training saved last, or started from."""

    @property
    def global_batch(self) -> int:
        """Images an optimizer step, over all ranks."""
        return int(self.engine.train_batch_size())

    def epoch_has_more(self) -> bool:
        """Whether a whole global batch of this epoch is left (the rest is dropped)."""
        return self.at.samples + self.global_batch <= self.at.train_samples

    def step(self, order: Tensor) -> tuple[reporting.Step, bool]:
        """Train on the next global batch, in as many parts as it is accumulated from.

        Returns:
            What happened, and whether to stop now.
        """
        at, me, engine, began = self.at, self.me, self.engine, time.monotonic()
        lr = engine.get_lr()[0]
        # The random numbers of a step (dropout) follow from its place and the rank: there is
        # nothing to save, and a resumed training draws the same.
        number = (self.args.seed * 1_000_003 + at.step) * 65_537 + me.rank
        torch.manual_seed(seed_of(number))
        dtype = next(engine.module.parameters()).dtype
        parts = int(engine.gradient_accumulation_steps())
        # The batch is the engine's: with one of our own the training would use another amount
        # than the configuration, the log and the learning rate assume.
        part = int(engine.train_micro_batch_size_per_gpu()) * me.world_size
        losses = []
        for start in range(at.samples, at.samples + self.global_batch, part):
            mine = share(order, start, part, me.rank, me.world_size)
            images = mnist.to_input(self.digits.train_images[mine], self.device, dtype)
            labels = self.digits.train_labels[mine].to(self.device)
            loss = functional.cross_entropy(engine(images).float(), labels)
            engine.backward(loss)
            engine.step()  # the optimizer's step after the last part only
            losses.append(loss.item())
        # One collective gives the mean loss, and whether any rank was asked to stop, so that all
        # of them stop after the same step.
        norm = zero_engine.gradient_norm(engine)
        mean, infinite, stopping = ranks.average(
            [sum(losses) / parts, not math.isfinite(norm), STOP.wanted()], self.device
        )
        self.guard.accepts(mean, math.inf if infinite else norm)
        self.at = replace(at, step=at.step + 1, samples=at.samples + self.global_batch)
        seconds = time.monotonic() - began
        taken = reporting.Step(
            step=self.at.step, epoch=at.epoch + 1, loss=mean, grad_norm=norm, lr=lr,
            skipped=self.guard.skipped, samples=self.global_batch, seconds=seconds,
        )  # fmt: skip
        return taken, bool(stopping)

    def test(self) -> float | None:
        """Accuracy on the test images; None when a rank was asked to stop."""
        return test_accuracy(self.engine.module, self.digits, self.me, self.device)

    def save(self) -> str:
        """Save every rank's part; every rank returns when the checkpoint counts.

        DeepSpeed doesn't wait for the disk and knows no checksums; here each rank does it for its
        part. When the step is saved already, only the position can have changed (a whole epoch).

        Raises:
            TrainingError: it can't be saved; every rank raises.
        """
        if self.saved is None or self.saved.step != self.at.step:
            checkpoint.together(lambda: checkpoint.check_finite(self.engine.module.parameters()))
            place = checkpoint.by_first(self.me, lambda: self.checkpoints.begin(self.at.step))
            for files in checkpoint.together(lambda: self._write(place)):
                place.files.update(files)
            self.saved = place
        saved = self.saved
        checkpoint.by_first(self.me, lambda: self.checkpoints.commit(saved, self.at))
        return f"checkpoints/{saved.folder.name}"

    def _write(self, place: on_disk.Saved) -> on_disk.Files:
        here = place.folder
        self.engine.save_checkpoint(str(here.parent), tag=here.name, save_latest=False)
        mine = {path.name for path in here.glob(f"*pp_rank_{self.me.rank}_*")}
        shared = {path.name for path in here.glob("mp_rank_*")} if self.me.rank == 0 else set()
        return on_disk.describe(here, sorted(mine | shared))

    def resume(self) -> None:
        """Continue from the newest whole checkpoint.

        Raises:
            UsageError: it was made by another number of ranks (ZeRO splits the optimizer's
                state among them) or by another training, or it can't be read.
        """
        saved = checkpoint.newest_whole(self.checkpoints, self.me)
        if saved is None:
            return
        at = saved.read()
        self.at.check_continues(at)
        if at.world_size != self.me.world_size:
            raise reporting.UsageError(
                f"The checkpoint's ZeRO parts are from {at.world_size} ranks, but this run has "
                f"{self.me.world_size}. Resume with {at.world_size} ranks."
            )
        rates = [group["lr"] for group in self.engine.optimizer.param_groups]
        self.engine.load_checkpoint(str(saved.folder.parent), tag=saved.folder.name)
        if self.engine.lr_scheduler is None:
            # The optimizer's state has the rates it was saved with; those of the configuration
            # count.
            for group, rate in zip(self.engine.optimizer.param_groups, rates, strict=True):
                group["lr"] = rate
        self.at, self.saved = at, saved


def prepare(args: argparse.Namespace, me: ranks.Ranks) -> Training:
    """Load the data, join the other ranks and build DeepSpeed's engine."""
    zero_engine.check_config_exists(Path(args.deepspeed_config))
    digits = mnist.load(args.data, args.limit)
    device = ranks.join(me)
    engine = zero_engine.start(args, me, device)
    count = len(digits.train_labels)
    if count < engine.train_batch_size():
        raise reporting.UsageError(
            f"{count} training images are fewer than train_batch_size "
            f"{engine.train_batch_size()}. Make it smaller in {args.deepspeed_config}."
        )
    optimizer = str(engine.optimizer_name() or "none")
    at = Position(args.model, optimizer, args.seed, count, me.world_size)
    guard, checkpoints = loop.LossGuard(args.max_skipped), checkpoint.Checkpoints(me.run_dir)
    return Training(args, me, device, digits, engine, at, guard, checkpoints)


# ----------------------------------------------------------------------------- the training


def main() -> None:
    """Train from the beginning or the last checkpoint to the end, or until asked to stop."""
    args = arguments()
    me = ranks.read_ranks()
    ranks.choose_cores(me)
    training = prepare(args, me)
    engine = training.engine
    loop.begin(training)
    report = reporting.Reporter(me.run_dir, me.rank, args.log_every)
    report.start(
        training.device,
        strategy=f"zero{engine.zero_optimization_stage()}",
        model=args.model,
        parameters=size(engine.module),
        world_size=me.world_size,
        global_batch=training.global_batch,
        optimizer=training.at.optimizer,
        lr=engine.get_lr()[0],
        epochs=args.epochs,
        train_samples=training.at.train_samples,
        first_step=training.at.step + 1,
    )
    loop.train(training, report)


if __name__ == "__main__":
    reporting.run(main)
