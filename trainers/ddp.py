"""Train a small network on MNIST with PyTorch DistributedDataParallel, on any number of ranks.

Alone, on a laptop:
    python ddp.py
Four ranks on one node, started by torchrun:
    RUN_DIR=/tmp/try torchrun --standalone --nproc-per-node=4 ddp.py --epochs 4
One rank per GPU on two nodes, started by Slurm (MASTER_ADDR and MASTER_PORT exported before):
    srun --nodes=2 --ntasks-per-node=8 bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID \
        WORLD_SIZE=$SLURM_NTASKS exec python3 ddp.py --data mnist --resume'

In:  RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, RUN_DIR; see engine/ranks.py.
Out: $RUN_DIR/metrics.jsonl, one JSON object a line by rank 0: first {"event": "start", ...}, a
     {"step", "epoch", "loss", "lr", "samples_per_s", "seconds"} each step, and the events eval,
     checkpoint, stop and end; see engine/reporting.py. $RUN_DIR/checkpoints/start-…-step-…/,
     the last two; see saving/checkpoint.py. $RUN_DIR/errors/rank-N.json of a rank that failed.
Stop: SIGUSR1 or SIGTERM to any rank, or a file named stop in $RUN_DIR.
Exit code: 0 trained to the end; 1 an error; 2 wrong arguments, data, launch or GPU;
     85 asked to stop, with the checkpoint saved: go on with --resume;
     86 the loss was no number for --max-skipped steps; 87 a later start of this run took over.
"""

from __future__ import annotations

from engine.stop_request import STOP  # first: a signal during the next imports is noted

# isort: split
import argparse
import math
import sys
import time
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from data import mnist
from data.shares import seed_of, share
from engine import loop, ranks, reporting
from engine.arguments import add_shared, count
from models.accuracy import test_accuracy
from models.table import DIGITS, build, size
from saving import checkpoint
from saving import files as on_disk
from saving.position import Position

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
    add("--resume", action="store_true", help="continue from the newest checkpoint if there is one")
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
    at: Position
    guard: loop.LossGuard
    checkpoints: checkpoint.Checkpoints
    saved: on_disk.Saved | None = None
    """The checkpoint that this training saved last, or started from."""

    @property
    def global_batch(self) -> int:
        """Images a step, over all ranks."""
        return int(self.args.batch_size) * self.me.world_size

    def epoch_has_more(self) -> bool:
        """Whether a whole global batch of this epoch is left (the rest is dropped)."""
        return self.at.samples + self.global_batch <= self.at.train_samples

    def step(self, order: Tensor) -> tuple[reporting.Step, bool]:
        """Train on the next global batch; return what happened, and whether to stop now."""
        at, began = self.at, time.monotonic()
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
        # One collective gives the mean loss, and whether any rank was asked to stop, so that all
        # of them stop after the same step. The gradient is the same on all ranks.
        mean, norm, stopping = ranks.average(
            [loss.item(), gradient_norm(self.model), STOP.wanted()], self.device
        )
        if self.guard.accepts(mean, norm):
            self.optimizer.step()
        self.at = replace(at, step=at.step + 1, samples=at.samples + self.global_batch)
        seconds = time.monotonic() - began
        taken = reporting.Step(
            step=self.at.step, epoch=at.epoch + 1, loss=mean, grad_norm=norm, lr=lr,
            skipped=self.guard.skipped, samples=self.global_batch, seconds=seconds,
        )  # fmt: skip
        return taken, bool(stopping)

    def test(self) -> float | None:
        """Accuracy on the test images; None when a rank was asked to stop."""
        return test_accuracy(self.model.module, self.digits, self.me, self.device)

    def save(self) -> str:
        """Save on rank 0; every rank returns when the checkpoint counts.

        When the step is saved already, only the position can have changed (a whole epoch).

        Raises:
            TrainingError: it can't be saved; every rank raises.
        """
        if self.saved is None or self.saved.step != self.at.step:
            self.saved = checkpoint.by_first(self.me, self._write)
        saved = self.saved
        checkpoint.by_first(self.me, lambda: self.checkpoints.commit(saved, self.at))
        return f"checkpoints/{saved.folder.name}"

    def _write(self) -> on_disk.Saved:
        checkpoint.check_finite(self.model.parameters())
        saved = self.checkpoints.begin(self.at.step)
        parts = {"model": self.model.module.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save(parts, saved.folder / "state.pt")
        saved.files.update(on_disk.describe(saved.folder, ["state.pt"]))
        return saved

    def resume(self) -> None:
        """Continue from the newest whole checkpoint, with any number of ranks."""
        saved = checkpoint.newest_whole(self.checkpoints, self.me)
        if saved is None:
            return
        at = saved.read()
        self.at.check_continues(at)
        self.at = replace(at, world_size=self.me.world_size)
        tree = on_disk.load(saved.folder / "state.pt", self.device)
        self.model.module.load_state_dict(tree["model"])
        self.optimizer.load_state_dict(tree["optimizer"])
        self.saved = saved


def gradient_norm(model: DistributedDataParallel) -> float:
    """The length of the gradient of all weights together."""
    norms = [weight.grad.norm() for weight in model.parameters() if weight.grad is not None]
    return float(torch.stack(norms).norm())


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
    net = build(args.model, DIGITS, args.seed).to(device)
    model = DistributedDataParallel(net, device_ids=[device] if device.type == "cuda" else None)
    optimizer: torch.optim.Optimizer
    if args.optimizer == "adam":
        optimizer = torch.optim.Adam(model.parameters(), args.lr)
    else:
        optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    warm_up(model, digits, device)
    at = Position(args.model, args.optimizer, args.seed, count, me.world_size)
    guard, checkpoints = loop.LossGuard(args.max_skipped), checkpoint.Checkpoints(me.run_dir)
    return Training(args, me, device, digits, model, optimizer, at, guard, checkpoints)


def warm_up(model: DistributedDataParallel, digits: mnist.Digits, device: torch.device) -> None:
    """Let DDP sort its buckets by one backward pass, and forget what it computed.

    DDP orders them anew after the first one, so that the sums of the steps after it are rounded
    in another order: without this, a training of 4 ranks that was resumed differed by 6e-8.
    """
    buffers = [buffer.clone() for buffer in model.buffers()]
    model(mnist.to_input(digits.train_images[:2], device)).sum().backward()
    model.zero_grad(set_to_none=True)
    with torch.no_grad():
        for buffer, before in zip(model.buffers(), buffers, strict=True):
            buffer.copy_(before)  # running means of batch norm


# ----------------------------------------------------------------------------- the training


def main() -> None:
    """Train from the beginning or the last checkpoint to the end, or until asked to stop."""
    args = arguments()
    me = ranks.read_ranks()
    ranks.choose_cores(me)
    training = prepare(args, me)
    loop.begin(training)
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
    loop.train(training, report)


if __name__ == "__main__":
    reporting.run(main)
