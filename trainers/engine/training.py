"""A training: its steps, tests, saves and resumes, whatever the strategy.

In:  RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, RUN_DIR; see engine/ranks.py.
Out: $RUN_DIR/metrics.jsonl, see engine/reporting.py; $RUN_DIR/checkpoints/, see
     saving/checkpoint.py; $RUN_DIR/errors/rank-N.json of a rank that failed.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from data import mnist
from data.shares import seed_of, share
from engine import loop, ranks, reporting
from engine.heartbeat import HEART
from engine.stop_request import STOP
from engine.watchers import targets
from models.accuracy import test_accuracy
from models.table import DIGITS, build, size
from saving import checkpoint
from saving.position import Position
from saving.saver import Saver
from strategies.strategy import Make, Strategy


@dataclass
class Training:
    """What changes while training, and the steps that change it."""

    args: argparse.Namespace
    me: ranks.Ranks
    device: torch.device
    digits: mnist.Digits
    strategy: Strategy
    at: Position
    guard: loop.LossGuard
    checkpoints: checkpoint.Checkpoints
    saver: Saver

    @property
    def global_batch(self) -> int:
        """Images a step, over all ranks."""
        return self.strategy.micro_batch * self.strategy.accumulate * self.me.world_size

    def epoch_has_more(self) -> bool:
        """Whether a whole global batch of this epoch is left (the rest is dropped)."""
        return self.at.samples + self.global_batch <= self.at.train_samples

    def step(self, order: Tensor) -> tuple[reporting.Step, bool]:
        """Train on the next global batch, in as many parts as it is accumulated from.

        Returns:
            What happened, and whether to stop now.
        """
        at, strategy, began = self.at, self.strategy, time.monotonic()
        done = (at.epoch + at.samples / at.train_samples) / self.args.epochs
        lr = strategy.rate(done)
        # The random numbers of a step (dropout) follow from its place and the rank: there is
        # nothing to save, and a resumed training draws the same.
        number = (self.args.seed * 1_000_003 + at.step) * 65_537 + self.me.rank
        torch.manual_seed(seed_of(number))
        part = strategy.micro_batch * self.me.world_size
        total = torch.zeros((), device=self.device)
        for number in range(strategy.accumulate):
            mine = share(order, at.samples + number * part, part, self.me.rank, self.me.world_size)
            images = mnist.to_input(self.digits.train_images[mine], self.device)
            labels = self.digits.train_labels[mine].to(self.device)
            HEART.move()
            loss = functional.cross_entropy(strategy.forward(images), labels)
            HEART.move()
            strategy.backward(loss, last=number == strategy.accumulate - 1)
            total += loss.detach()
        norm = float(strategy.step(lr))
        # One collective gives the mean loss, and whether any rank was asked to stop, so that all
        # of them stop after the same step. The gradient's length is the same on all ranks.
        mean, stopping = ranks.average(
            [total.item() / strategy.accumulate, STOP.wanted()], self.device
        )
        self.guard.accepts(mean, norm)
        self.at = replace(at, step=at.step + 1, samples=at.samples + self.global_batch)
        seconds = time.monotonic() - began
        taken = reporting.Step(
            step=self.at.step, epoch=at.epoch + 1, loss=mean, grad_norm=norm, lr=lr,
            skipped=self.guard.skipped, samples=self.global_batch, seconds=seconds,
        )  # fmt: skip
        return taken, bool(stopping)

    def test(self) -> float | None:
        """Accuracy on the test images; None when a rank was asked to stop."""
        return test_accuracy(self.strategy.module, self.digits, self.me, self.device)

    def save(self) -> str:
        """Save each rank's part; every rank returns when the checkpoint counts.

        When the step is saved already, only the position can have changed (a whole epoch).

        Raises:
            TrainingError: it can't be saved; every rank raises.
        """
        self._check_weights()
        saved = self.saver.save(self.at, self.strategy.stage)
        return f"checkpoints/{saved.folder.name}"

    def begin_save(self) -> None:
        """Save on the way, or begin to; `saver.ended` tells how it went.

        Raises:
            SaveFailed: the weights are not finite.
        """
        self._check_weights()
        self.saver.begin(self.at, self.strategy.stage)

    def _check_weights(self) -> None:
        weights = self.strategy.module.parameters
        checkpoint.together(lambda: checkpoint.check_finite(weights()))

    def resume(self) -> None:
        """Continue from the newest whole checkpoint.

        Raises:
            UsageError: it was made by another training, or it can't be read.
        """
        saved = checkpoint.newest_whole(self.checkpoints, self.me)
        if saved is None:
            return
        at = saved.read()
        self.at.check_continues(at)
        self.strategy.load(saved.folder, at.world_size)
        self.at, self.saver.last = replace(at, world_size=self.me.world_size), saved


def prepare(args: argparse.Namespace, me: ranks.Ranks, make: Make) -> Training:
    """Load the data, join the other ranks and build the model, the same on every rank.

    Raises:
        UsageError: the data can't be read, or are fewer than one global batch.
    """
    digits = mnist.load(args.data, args.limit)
    device = ranks.join(me)
    example = mnist.to_input(digits.train_images[:2], device)
    strategy = make(args, me, device, build(args.model, DIGITS, args.seed), example)
    count = len(digits.train_labels)
    at = Position(args.model, strategy.optimizer_name, args.seed, count, me.world_size)
    guard, checkpoints = loop.LossGuard(args.max_skipped), checkpoint.Checkpoints(me.run_dir)
    saver = Saver(me, checkpoints, background=args.save_in_background)
    training = Training(args, me, device, digits, strategy, at, guard, checkpoints, saver)
    if count < training.global_batch:
        of_a_rank = strategy.micro_batch * strategy.accumulate
        raise reporting.UsageError(
            f"{count} training images are fewer than one global batch of {of_a_rank} x "
            f"{me.world_size} ranks. Make a rank's batch smaller (--batch-size, or the batch of "
            "DeepSpeed's configuration) or use fewer ranks."
        )
    return training


def run(args: argparse.Namespace, make: Make) -> None:
    """Train from the beginning or the last checkpoint to the end, or until asked to stop."""
    me = ranks.read_ranks()
    targets.check_packages(args.watch)
    ranks.choose_cores(me)
    training = prepare(args, me, make)
    loop.begin(training)
    strategy = training.strategy
    report = reporting.Reporter(me.run_dir, me.rank, args.log_every)
    if args.watch:
        report.also(targets.Watchers(args.watch, me.run_dir).take)
    report.start(
        training.device,
        strategy=strategy.name,
        model=args.model,
        parameters=size(strategy.module),
        world_size=me.world_size,
        global_batch=training.global_batch,
        optimizer=strategy.optimizer_name,
        lr=strategy.lr,
        epochs=args.epochs,
        train_samples=training.at.train_samples,
        first_step=training.at.step + 1,
    )
    loop.train(training, report)
