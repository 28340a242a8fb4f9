"""A training: its steps, tests, saves and resumes, whatever the strategy.

In:  RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, RUN_DIR; see engine/ranks.py.
Out: $RUN_DIR/metrics.jsonl, see monitor/metrics.py; $RUN_DIR/checkpoints/, see
     saving/checkpoint.py; $RUN_DIR/errors/rank-N.json of a rank that failed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import torch
import torch.distributed as dist
from torch import Tensor, nn

from data.loading import Batch, TrainingShares, epoch_order, epoch_seed, open_batches, seed_of
from data.samples import DataSet, Shape
from data.sets import open_data
from engine import exits, loop, ranks, tasks
from engine.loop import StepWindow
from engine.speed import DATA, OPTIMIZER, PASSES, Clock, Figures
from engine.tasks import TASKS, Task
from models.table import MODELS, build, size
from monitor.heartbeat import HEART
from monitor.metrics import Reporter
from saving import checkpoint
from saving.files import Position, Settings, changes
from saving.saver import Saver
from strategies import Make, Setup, Strategy


@dataclass
class Training:
    """What changes while training, and the steps that change it."""

    args: argparse.Namespace
    me: ranks.Ranks
    device: torch.device
    data: DataSet
    task: Task
    strategy: Strategy
    at: Position
    guard: loop.LossGuard
    checkpoints: checkpoint.Checkpoints
    saver: Saver
    window: StepWindow
    clock: Clock
    figures: Figures
    changed: str = ""
    """What differs from the checkpoint that it goes on from, in words."""

    @property
    def global_batch(self) -> int:
        """Samples a step, over all ranks."""
        return self.strategy.micro_batch * self.strategy.accumulate * self.me.world_size

    def epoch_has_more(self) -> bool:
        """Whether a whole global batch of this epoch is left (the rest is dropped)."""
        return self.at.samples + self.global_batch <= self.at.train_samples

    def batches(self) -> AbstractContextManager[Iterator[Batch]]:
        """Open what is left of the epoch: this rank's micro batches."""
        at, args, me = self.at, self.args, self.me
        order = epoch_order(at.train_samples, args.seed, at.epoch)
        micro, parts = self.strategy.micro_batch, self.strategy.accumulate
        shares = TrainingShares(order, at.samples, micro, parts, me.rank, me.world_size)
        view = self.data.view(seed=epoch_seed(args.seed, at.epoch))
        return open_batches(self.data.train, shares, view, self.device, workers=args.workers)

    def step(self, batches: Iterator[Batch]) -> None:
        """Train on the next global batch, in as many parts as it is accumulated from.

        The device is given the work, and nothing is read from it: `window` tells what came out.
        """
        strategy, clock = self.strategy, self.clock
        lr = self.begin_step()
        total = torch.zeros((), device=self.device)
        for left in reversed(range(strategy.accumulate)):
            HEART.move("data")
            with clock.part(DATA):
                inputs, targets = next(batches)
            HEART.move()
            with clock.part(PASSES):
                loss = self.loss(inputs, targets, last=not left)
                HEART.move()
                strategy.backward(loss, last=not left)
                total += loss.detach()
        with clock.part(OPTIMIZER):
            norm = strategy.step(lr)
        self.end_step(lr, total / strategy.accumulate, norm)

    def loss(self, inputs: Tensor, targets: Tensor, last: bool) -> Tensor:
        """The loss of a micro batch, by the task or by the model itself."""
        outputs = self.strategy.forward(inputs, targets, last)
        return self.task.loss(outputs, inputs, targets) if outputs.dim() else outputs

    def begin_step(self) -> float:
        """Begin a step; return its learning rate."""
        at = self.at
        self.window.begin()
        # The random numbers of a step (dropout) follow from its place and the rank: there is
        # nothing to save, and a resumed training draws the same.
        number = (self.args.seed * 1_000_003 + at.step) * 65_537 + self.me.rank
        # torch.manual_seed writes down its caller for each kind of device that is not there: 7 % of
        # a small step on a CPU.
        torch.default_generator.manual_seed(seed_of(number))
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed_of(number))
        done = (at.epoch + at.samples / at.train_samples) / self.args.epochs
        return self.strategy.rate(done, at.step)

    def end_step(self, lr: float, loss: Tensor, norm: Tensor) -> None:
        """Count a step that was given to the device: its loss on this rank, its gradient."""
        at = self.at
        self.at = replace(at, step=at.step + 1, samples=at.samples + self.global_batch)
        self.window.add(self.at.step, at.epoch + 1, lr, loss, norm)

    def test(self) -> float | None:
        """The task's figure, of the test samples; None when a rank was asked to stop."""
        return tasks.test(
            self.strategy, self.data, self.task, self.me, self.device, workers=self.args.workers
        )

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
        finite = checkpoint.check_finite
        checkpoint.on_all_ranks(lambda: finite(weights()), self.checkpoints.folder)

    def resume(self) -> None:
        """Continue from the newest whole checkpoint.

        Raises:
            UsageError: it was made by another training, or it can't be read.
        """
        saved = checkpoint.newest_whole(self.checkpoints, self.me)
        self.checkpoints.continues(saved)
        if saved is None:
            return
        at = saved.read()
        self.at.check_continues(at)
        before, now = saved.settings(), self.checkpoints.settings
        if before.get("decay", "all") != now.get("decay", "all"):
            raise exits.UsageError(
                f"The checkpoint was made with --decay {before.get('decay', 'all')}, which orders "
                "the optimizer's state. Resume with the same."
            )
        self.changed = changes(before, now)
        self.checkpoints.best = saved.best()
        self.strategy.load(saved.folder, at.world_size)
        self.at, self.saver.last = replace(at, world_size=self.me.world_size), saved


def prepare(args: argparse.Namespace, me: ranks.Ranks, make: Make) -> Training:
    """Load the data, join the other ranks and build the model, the same on every rank.

    Raises:
        UsageError: the data or the weights to begin with can't be read, or the data are fewer
            than one global batch.
    """
    row = MODELS[args.model]
    device = ranks.join(me)
    data = ranks.by_all(me, lambda: open_data(args.data, shape=row.sample, limit=args.limit))
    places = torch.arange(2) % len(data.train)
    example = data.view()(data.train.read(places)[0].to(device), places)
    strategy = make(Setup(args, me, device, lambda: _model(args, me, data.shape), example))
    count = len(data.train)
    checkpoints = checkpoint.Checkpoints(me.run_dir)
    training = Training(
        args,
        me,
        device,
        data,
        TASKS[row.task],
        strategy,
        at=Position(args.model, strategy.optimizer_name, args.seed, count, me.world_size),
        guard=loop.LossGuard(args.max_skipped),
        checkpoints=checkpoints,
        saver=Saver(me, checkpoints, background=args.save_in_background),
        window=StepWindow(args.log_every, device),
        clock=Clock(device),
        figures=Figures.of(args.model, data.shape, me.world_size, device, strategy.precision),
    )
    checkpoints.settings = settings(training)
    if count < training.global_batch:
        of_a_rank = strategy.micro_batch * strategy.accumulate
        raise exits.UsageError(
            f"{count} training samples are fewer than one global batch of {of_a_rank} x "
            f"{me.world_size} ranks. Make a rank's batch smaller (--batch-size, or the batch of "
            "DeepSpeed's configuration) or use fewer ranks."
        )
    return training


def _model(args: argparse.Namespace, me: ranks.Ranks, shape: Shape) -> nn.Module:
    """Build the model, with the weights that it begins with; a resume has its own."""
    net = build(args.model, shape, args.seed)
    if args.init:
        from saving.weights import begin_with

        resumes = args.resume and checkpoint.Checkpoints(me.run_dir).newest_first()
        begin_with(net, args.init, weights=not resumes)
    return net


def settings(of: Training) -> Settings:
    """What a resume may change, with other losses than those of an undisturbed training."""
    found: dict[str, object] = {"global batch": of.global_batch}
    found |= {"lr": of.strategy.lr, "precision": of.strategy.precision}
    # DeepSpeed's are in its configuration.
    names = ("epochs", "schedule", "warmup_steps", "betas", "weight_decay", "decay", "clip")
    given = vars(of.args)
    found |= {name.replace("_", " "): given[name] for name in names if name in given}
    # As a manifest has them: JSON knows no tuples.
    return {name: list(one) if isinstance(one, tuple) else one for name, one in found.items()}


def run(
    args: argparse.Namespace,
    make: Make,
    train: Callable[[Training, Reporter], None] = loop.train,
) -> None:
    """Train from the beginning or the last checkpoint to the end, or until asked to stop.

    `train` goes through the epochs, and ends with loop.finish.
    """
    me = ranks.read_ranks()
    if args.tf32:
        torch.set_float32_matmul_precision("high")
    takers = []
    if args.watch:
        from monitor.watchers import Watchers

        takers = [Watchers(args.watch, me.run_dir).take]
    training = prepare(args, me, make)
    loop.begin(training)
    strategy = training.strategy
    report = Reporter(me.run_dir, me.rank, args.log_every, training.task.figure, takers)
    report.start(
        training.device,
        strategy=strategy.name,
        model=args.model,
        parameters=size(strategy.module),
        world_size=me.world_size,
        global_batch=training.global_batch,
        accumulate=strategy.accumulate,
        optimizer=strategy.optimizer_name,
        lr=strategy.lr,
        epochs=args.epochs,
        train_samples=training.at.train_samples,
        first_step=training.at.step + 1,
        **training.figures.start(),
        **({"changed": training.changed} if training.changed else {}),
    )
    if training.changed:
        report.say(f"Changed since the checkpoint: {training.changed}.")
    train(training, report)
    dist.barrier()
    dist.destroy_process_group()
