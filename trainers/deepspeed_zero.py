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

In:  RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, RUN_DIR; see ranks.py.
Out: $RUN_DIR/metrics.jsonl as ddp.py writes it; see reporting.py.
     $RUN_DIR/checkpoints/step-N/ of all ranks together, and `latest` which names the whole one.
     $RUN_DIR/errors/rank-N.json of a rank that failed.
Exit code: 0 trained to the end; 1 an error; 2 wrong arguments, data, configuration or launch;
     85 stopped on SIGUSR1 or SIGTERM with the checkpoint saved: go on with --resume.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional

import checkpoint
import ranks
import reporting
import zero_engine
from arguments import add_shared, count
from data import mnist
from data.shares import epoch_order, seed_of, share
from models.accuracy import test_accuracy
from models.digits import size

# ------------------------------------------------------------------------- the arguments


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Train a digit classifier with DeepSpeed ZeRO.")
    add_shared(parser)
    add = parser.add_argument
    # The batch is the configuration's.
    add("--steps", type=count, default=sys.maxsize, help="end after this optimizer step")
    add("--resume", action="store_true", help="continue from checkpoints/latest if there is one")
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
    at: checkpoint.Position
    saved: tuple[int, str] | None = None
    """Step and folder of the checkpoint that this training saved last, or started from."""

    @property
    def folder(self) -> Path:
        """Where the checkpoints are."""
        return self.me.run_dir / "checkpoints"

    @property
    def global_batch(self) -> int:
        """Images an optimizer step, over all ranks."""
        return int(self.engine.train_batch_size())

    def epoch_has_more(self) -> bool:
        """Whether a whole global batch of this epoch is left (the rest is dropped)."""
        return self.at.samples + self.global_batch <= self.at.train_samples

    def step(self, order: Tensor) -> float:
        """Train on the next global batch, in as many parts as it is accumulated from.

        Returns:
            This rank's mean loss.
        """
        at, me = self.at, self.me
        # The random numbers of a step (dropout) follow from its place and the rank: there is
        # nothing to save, and a resumed training draws the same.
        number = (self.args.seed * 1_000_003 + at.step) * 65_537 + me.rank
        torch.manual_seed(seed_of(number))
        dtype = next(self.engine.module.parameters()).dtype
        parts = int(self.engine.gradient_accumulation_steps())
        # The batch is the engine's: with one of our own the training would use another amount
        # than the configuration, the log and the learning rate assume.
        part = int(self.engine.train_micro_batch_size_per_gpu()) * me.world_size
        losses = []
        for start in range(at.samples, at.samples + self.global_batch, part):
            mine = share(order, start, part, me.rank, me.world_size)
            images = mnist.to_input(self.digits.train_images[mine], self.device, dtype)
            labels = self.digits.train_labels[mine].to(self.device)
            loss = functional.cross_entropy(self.engine(images).float(), labels)
            self.engine.backward(loss)
            self.engine.step()  # the optimizer's step after the last part only
            losses.append(loss.item())
        self.at = replace(at, step=at.step + 1, samples=at.samples + self.global_batch)
        return sum(losses) / parts

    def test(self) -> float:
        """Accuracy on the test images."""
        return test_accuracy(self.engine.module, self.digits, self.me, self.device)

    def save(self) -> str:
        """Save all ranks' parts, then point `latest` at them; return the folder's name.

        DeepSpeed writes `latest` in place and doesn't wait for the disk; here it is renamed
        into its place when every rank's part is on disk, so it always names a whole checkpoint.
        For the same reason no part is ever overwritten. When the step is already saved, only the
        position can have changed (a whole epoch). A training that starts again from the beginning
        and reaches the step that `latest` names takes another folder.
        """
        if self.saved is None or self.saved[0] != self.at.step:
            tag = f"step-{self.at.step:08d}"
            latest = self.folder / "latest"
            named = latest.exists() and latest.read_text().strip() == tag
            if ranks.average([named], self.device)[0]:
                tag += "-anew"
            self.engine.save_checkpoint(str(self.folder), tag=tag, save_latest=False)
            mine = set((self.folder / tag).glob(f"*pp_rank_{self.me.rank}_*"))
            shared = set((self.folder / tag).glob("mp_rank_*")) if self.me.rank == 0 else set()
            for file in mine | shared:
                checkpoint.sync(file)
            self.saved = self.at.step, tag
        tag = self.saved[1]
        ranks.average([0.0], self.device)  # every rank's part is on disk
        if self.me.rank == 0:
            position = json.dumps(self.at.as_tree()).encode()
            here = self.folder / tag
            checkpoint.write_whole(here / "position.json", lambda file: file.write(position))
            checkpoint.write_whole(self.folder / "latest", lambda file: file.write(tag.encode()))
            for older in self.folder.glob("step-*"):
                if older.name != tag:
                    shutil.rmtree(older)
        ranks.average([0.0], self.device)
        return f"checkpoints/{tag}"

    def resume(self) -> None:
        """Continue from the checkpoint that `latest` names.

        Raises:
            UsageError: it was made by another number of ranks (ZeRO splits the optimizer's
                state among them) or by another training, or it can't be read.
        """
        tag = (self.folder / "latest").read_text().strip()
        path = self.folder / tag / "position.json"
        try:
            saved = checkpoint.Position.from_tree(json.loads(path.read_text()))
        except (OSError, ValueError) as error:
            raise reporting.UsageError(
                f"{path} can't be read ({error}). Start in an empty run folder."
            ) from error
        self.at.check_continues(saved)
        if saved.world_size != self.me.world_size:
            raise reporting.UsageError(
                f"The checkpoint's ZeRO parts are from {saved.world_size} ranks, but this run has "
                f"{self.me.world_size}. Resume with {saved.world_size} ranks."
            )
        rates = [group["lr"] for group in self.engine.optimizer.param_groups]
        self.engine.load_checkpoint(str(self.folder), tag=tag)
        if self.engine.lr_scheduler is None:
            # The optimizer's state has the rates it was saved with; those of the configuration
            # count.
            for group, rate in zip(self.engine.optimizer.param_groups, rates, strict=True):
                group["lr"] = rate
        self.at, self.saved = saved, (saved.step, tag)


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
    at = checkpoint.Position(args.model, args.seed, count, me.world_size)
    return Training(args, me, device, digits, engine, at)


# ----------------------------------------------------------------------------- the training


def main() -> None:
    """Train from the beginning or the last checkpoint to the end, or to a signal."""
    args = arguments()
    me = ranks.read_ranks()
    stop = ranks.StopRequest()
    ranks.choose_cores(me)
    training = prepare(args, me)
    engine = training.engine
    if args.resume and ranks.all_see(training.folder / "latest", training.device):
        training.resume()
    report = reporting.Reporter(me.run_dir, me.rank, args.log_every)
    report.start(
        training.device,
        strategy=f"zero{engine.zero_optimization_stage()}",
        model=args.model,
        parameters=size(engine.module),
        world_size=me.world_size,
        global_batch=training.global_batch,
        optimizer=engine.optimizer_name() or "none",
        lr=engine.get_lr()[0],
        epochs=args.epochs,
        train_samples=training.at.train_samples,
        first_step=training.at.step + 1,
    )
    accuracy = None
    while training.at.epoch < args.epochs and training.at.step < args.steps:
        train_epoch(training, report, stop)
        accuracy = None
        if training.epoch_has_more():
            break  # --steps ended it within the epoch
        training.at = replace(training.at, epoch=training.at.epoch + 1, samples=0)
        if args.eval == "epoch":
            accuracy = training.test()
            report.test(step=training.at.step, epoch=training.at.epoch, accuracy=accuracy)
    training.save()
    if accuracy is None and args.eval != "never":
        accuracy = training.test()
    report.end(step=training.at.step, accuracy=accuracy)
    dist.barrier()
    dist.destroy_process_group()


def train_epoch(training: Training, report: reporting.Reporter, stop: ranks.StopRequest) -> None:
    """Train to the end of the epoch or of --steps; on a signal save and exit."""
    args = training.args
    order = epoch_order(training.at.train_samples, args.seed, training.at.epoch)
    while training.epoch_has_more() and training.at.step < args.steps:
        began = time.monotonic()
        lr = training.engine.get_lr()[0]
        # One collective gives the mean loss and whether any rank got a signal to stop, so that
        # all of them stop after the same step.
        loss, stopping = ranks.average([training.step(order), bool(stop.received)], training.device)
        step = training.at.step
        report.step(
            step=step,
            epoch=training.at.epoch + 1,
            loss=loss,
            lr=lr,
            samples=training.global_batch,
            seconds=time.monotonic() - began,
        )
        if stopping or step % args.save_every == 0:
            path = training.save()
            report.saved(step=step, path=path)
        if stopping:
            report.stop(step=step, signal=stop.received or None, path=path)
            raise SystemExit(ranks.STOPPED_EARLY)


if __name__ == "__main__":
    reporting.run(main)
