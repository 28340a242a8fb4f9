"""Train a small network on MNIST with PyTorch DistributedDataParallel, on any number of ranks.

Alone, on a laptop:
    python ddp.py
Four ranks on one node, started by torchrun:
    RUN_DIR=/tmp/try torchrun --standalone --nproc-per-node=4 ddp.py --epochs 4
One rank per GPU on two nodes, started by Slurm (MASTER_ADDR and MASTER_PORT exported before):
    srun --nodes=2 --ntasks-per-node=8 bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID \
        WORLD_SIZE=$SLURM_NTASKS exec python3 ddp.py --data mnist --resume'

In:  RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, RUN_DIR; see ranks.py.
Out: $RUN_DIR/metrics.jsonl, one JSON object a line by rank 0: first {"event": "start", ...}, a
     {"step", "epoch", "loss", "lr", "samples_per_s", "seconds"} each step, and the events eval,
     checkpoint, stop and end; see reporting.py. $RUN_DIR/checkpoints/last.pt, always whole.
     $RUN_DIR/errors/rank-N.json of a rank that failed.
Exit code: 0 trained to the end; 1 an error; 2 wrong arguments, data or launch;
     85 stopped on SIGUSR1 or SIGTERM with the checkpoint saved: go on with --resume.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import checkpoint
import ranks
import reporting
from arguments import add_shared, count
from data import mnist
from data.shares import epoch_order, seed_of, share
from models.accuracy import test_accuracy
from models.digits import build, size

# ------------------------------------------------------------------------- the arguments


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Train a digit classifier with PyTorch DDP.")
    add_shared(parser)
    add = parser.add_argument
    # How much. The global batch is this batch size times the number of ranks.
    add("--batch-size", type=count, default=32, help="images per rank (default: 32)")
    add("--steps", type=count, default=sys.maxsize, help="end after this step of the plan")
    # How. The rate warms up and falls to 0 along a cosine over all epochs. It isn't multiplied
    # by the number of ranks here: that is a choice to make when a job is scaled.
    add("--optimizer", choices=("sgd", "adam"), default="sgd", help="sgd has momentum 0.9")
    add("--lr", type=float, default=0.02, help="highest learning rate (default: 0.02)")
    add("--resume", action="store_true", help="continue from checkpoints/last.pt if there is one")
    return parser.parse_args()


# ------------------------------------------------------------------ model, step, checkpoint


@dataclass
class Training:
    """What changes while training, and the steps that change it."""

    args: argparse.Namespace
    me: ranks.Ranks
    device: torch.device
    digits: mnist.Digits
    model: DistributedDataParallel
    optimizer: torch.optim.Optimizer
    at: checkpoint.Position

    @property
    def global_batch(self) -> int:
        """Images a step, over all ranks."""
        return int(self.args.batch_size) * self.me.world_size

    def epoch_has_more(self) -> bool:
        """Whether a whole global batch of this epoch is left (the rest is dropped)."""
        return self.at.samples + self.global_batch <= self.at.train_samples

    def step(self, order: Tensor) -> tuple[float, float]:
        """Train on the next global batch; return this rank's loss and the learning rate."""
        at = self.at
        done = (at.epoch + at.samples / at.train_samples) / self.args.epochs
        lr = learning_rate(self.args.lr, done)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        # The random numbers of a step (dropout) follow from its place and the rank: there is
        # nothing to save, and a resumed training draws the same.
        number = (self.args.seed * 1_000_003 + at.step) * 65_537 + self.me.rank
        torch.manual_seed(seed_of(number))
        mine = share(order, at.samples, self.global_batch, self.me.rank, self.me.world_size)
        images = mnist.to_input(self.digits.train_images[mine], self.device)
        labels = self.digits.train_labels[mine].to(self.device)
        self.optimizer.zero_grad()
        loss = functional.cross_entropy(self.model(images), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.at = replace(at, step=at.step + 1, samples=at.samples + self.global_batch)
        return loss.item(), lr

    @property
    def last(self) -> Path:
        """The checkpoint."""
        return self.me.run_dir / "checkpoints" / "last.pt"

    def test(self) -> float:
        """Accuracy on the test images."""
        return test_accuracy(self.model.module, self.digits, self.me, self.device)

    def save(self) -> None:
        """Save on rank 0; every rank returns when the file is on disk."""
        if self.me.rank == 0:
            checkpoint.save(
                self.last,
                {
                    "position": self.at.as_tree(),
                    "model": self.model.module.state_dict(),
                    "optimizer": self.optimizer.state_dict(),
                },
            )
        ranks.average([0.0], self.device)

    def resume(self) -> None:
        """Continue a saved training, with any number of ranks."""
        tree = checkpoint.load(self.last, self.device)
        saved = checkpoint.Position.from_tree(tree.get("position"))
        self.at.check_continues(saved)
        self.at = replace(saved, world_size=self.me.world_size)
        self.model.module.load_state_dict(tree["model"])
        self.optimizer.load_state_dict(tree["optimizer"])


def learning_rate(highest: float, done: float) -> float:
    """The rate when this share (0 to 1) of the planned samples is done.

    It rises from a tenth to the highest over the first 5 %, then falls to 0 along a cosine. It
    follows from the samples, not from the steps, so that another global batch stays on the curve.
    """
    return highest * min(1.0, 0.1 + 18 * done) * 0.5 * (1 + math.cos(math.pi * done))


def prepare(args: argparse.Namespace, me: ranks.Ranks) -> Training:
    """Load the data, join the other ranks and build the model, the same on every rank."""
    digits = mnist.load(args.data, args.limit)
    count = len(digits.train_labels)
    if count < args.batch_size * me.world_size:
        raise reporting.UsageError(
            f"{count} training images are fewer than one global batch of {args.batch_size} x "
            f"{me.world_size} ranks. Make --batch-size smaller or use fewer ranks."
        )
    device = ranks.join(me)
    net = build(args.model, args.seed).to(device)
    model = DistributedDataParallel(net, device_ids=[device] if device.type == "cuda" else None)
    optimizer: torch.optim.Optimizer
    if args.optimizer == "adam":
        optimizer = torch.optim.Adam(model.parameters(), args.lr)
    else:
        optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    at = checkpoint.Position(args.model, args.seed, count, me.world_size)
    return Training(args, me, device, digits, model, optimizer, at)


# ----------------------------------------------------------------------------- the training


def main() -> None:
    """Train from the beginning or the last checkpoint to the end, or to a signal."""
    args = arguments()
    me = ranks.read_ranks()
    stop = ranks.StopRequest()
    ranks.choose_cores(me)
    training = prepare(args, me)
    if args.resume and ranks.all_see(training.last, training.device):
        training.resume()
    report = reporting.Reporter(me.run_dir, me.rank, args.log_every)
    report.start(
        training.device,
        strategy="ddp",
        model=args.model,
        parameters=size(training.model),
        world_size=me.world_size,
        global_batch=training.global_batch,
        optimizer=args.optimizer,
        lr=args.lr,
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
        loss, lr = training.step(order)
        # One collective gives the mean loss and whether any rank got a signal to stop, so that
        # all of them stop after the same step.
        loss, stopping = ranks.average([loss, bool(stop.received)], training.device)
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
            training.save()
            report.saved(step=step, path="checkpoints/last.pt")
        if stopping:
            report.stop(step=step, signal=stop.received or None, path="checkpoints/last.pt")
            raise SystemExit(ranks.STOPPED_EARLY)


if __name__ == "__main__":
    reporting.run(main)
