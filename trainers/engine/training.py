"""A training run with any strategy: its steps, and the work between them.

`Training.step` is one step; `Training.train` runs the epochs, and saves, evaluates, reports and
stops. A step reads nothing from the device: `StepWindow` holds the results of the last ones. A step
whose loss or gradient is not finite changes no weight; a few in a row are tolerated.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, NoReturn

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional

from data.loading import (
    Batch,
    TestingShares,
    TrainingShares,
    epoch_order,
    epoch_seed,
    open_batches,
    seed_of,
)
from data.samples import DataSet
from engine.exits import TrainingError
from engine.ranks import Ranks, average
from engine.reporting import Reporter, Step
from engine.speed import Figures, memory
from monitor.heartbeat import HEART
from monitor.stop_request import STOP, STOPPED_EARLY
from saving import checkpoint
from saving.files import Position
from saving.saver import Saver
from strategies import Loss, Strategy
from strategies.pytorch import check_finite

if TYPE_CHECKING:
    from engine.trace import Trace

DIVERGED = 86
"""Exit code of a training run that ended because its loss was not finite."""
SAVE_EVERY = 100
"""Steps between checkpoints, unless an argument sets it."""
WITHIN = 2.0
"""Maximum seconds between reads of results, and so the delay of a stop request; at least one
step."""
TEST_VALUES = 2**19
"""Number of inputs or logits in a test batch, if that is larger than a micro batch: evaluation
keeps nothing for a backward pass, and larger batches are faster."""
ACCURACY = "test_accuracy"

DATA = "data_s"
"""The part of a step that waits for the next batch."""
PASSES = "forward_backward_s"
"""The part with forward and backward passes, and communication during them."""
OPTIMIZER = "optimizer_s"
"""The part with gradient norm, clipping and new weights, and waits for other ranks."""


class Diverged(TrainingError):
    """The training has diverged: to continue would waste GPU-hours."""

    code = DIVERGED


@dataclass(frozen=True)
class Task:
    """The task of a model; the model's row in models/table.py names one of TASKS."""

    loss: Loss
    figure: str = "test_loss"
    """The name of a test's result in metrics.jsonl: the loss, or ACCURACY."""


TASKS: dict[str, Task] = {
    "classify": Task(
        lambda logits, inputs, classes: functional.cross_entropy(logits, classes), ACCURACY
    ),
    "next-token": Task(
        lambda logits, inputs, tokens: functional.cross_entropy(
            logits.flatten(0, 1), tokens.flatten()
        )
    ),
    "rebuild": Task(lambda images, inputs, targets: functional.mse_loss(images, inputs.float())),
}
"""Tasks by name: classification, next-token prediction, reconstruction."""


class LossGuard:
    """Allows a few skipped steps, and ends the training run after too many in a row.

    One bad batch or overflow need not end a training run: it does not change the weights. The
    inputs come from a collective, so that all ranks decide alike.
    """

    def __init__(self, most: int) -> None:
        """Allow `most` steps in a row to be skipped."""
        self._most = most
        self.skipped = 0
        """Number of steps skipped in this attempt."""
        self.in_a_row = 0
        """Number of steps skipped since the last good one. While it is not 0, no checkpoint is made
        during training: the current weights may be the cause of the infinite loss."""

    def note(self, *values: float) -> None:
        """Record a step's loss and gradient norm; if not finite, the step was skipped."""
        skipped = not all(map(math.isfinite, values))
        self.skipped += skipped
        self.in_a_row = (self.in_a_row + 1) * skipped

    @property
    def gives_up(self) -> bool:
        """Whether too many steps were skipped in a row."""
        return self.in_a_row > self._most


class StepWindow:
    """The last steps, whose results are still on the device, with the parts of their time.

    Reading a number from a GPU makes the CPU wait for the GPU, and then the GPU for the CPU's next
    work. So the losses of several steps are read together, in one collective that also reports stop
    requests. Every rank adds the same steps and reads after the same step.

    The host only queues the GPU's work, so events in that queue measure its time. Waiting for data
    is measured on the host on any device.
    """

    def __init__(self, log_every: int, device: torch.device) -> None:
        """Begin with a window of one step, whose time determines the next length."""
        self._log_every, self._device = log_every, device
        self._most = 1
        self._steps: list[tuple[int, int, float]] = []
        self._losses: list[Tensor] = []
        self._norms: list[Tensor] = []
        self._began = 0.0
        self._host: dict[str, float] = {}
        self._events: list[tuple[str, torch.cuda.Event, torch.cuda.Event]] = []

    def begin(self) -> None:
        """Record the start of a step."""
        if not self._steps:
            self._began = time.monotonic()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the enclosed time as this part: DATA, PASSES or OPTIMIZER."""
        if self._device.type == "cuda" and name != DATA:
            began, ended = _event(), _event()
            began.record()
            yield
            ended.record()
            self._events.append((name, began, ended))
        else:
            since = time.perf_counter()
            yield
            self._host[name] = self._host.get(name, 0.0) + time.perf_counter() - since

    def add(self, step: int, epoch: int, lr: float, loss: Tensor, norm: Tensor) -> None:
        """Add a step queued on the device.

        `loss` is this rank's mean. `norm` is that of all ranks' gradient, and not finite if no
        weight was changed.
        """
        self._steps.append((step, epoch, lr))
        self._losses.append(loss)
        self._norms.append(norm)

    @property
    def full(self) -> bool:
        """Whether the results should be read now."""
        at_line = bool(self._steps) and self._steps[-1][0] % self._log_every == 0
        return at_line or len(self._steps) >= self._most

    def read(self, wanted: bool, save: bool = False) -> tuple[list[Step], bool, bool]:
        """Wait for the device; return the steps, and whether any rank should stop or save.

        Takes one collective, or none without steps. In float64, the sum of the ranks' float32
        losses is exact; in float32, it depended on the number's place in the message, and so on the
        number of steps.
        """
        count = len(self._steps)
        if not count:
            return [], False, False
        spent = time.monotonic() - self._began
        own = torch.tensor([wanted, save, spent], dtype=torch.float64, device=self._device)
        total = torch.cat([torch.stack([*self._losses, *self._norms]).double(), own])
        dist.all_reduce(total)
        values = (total / dist.get_world_size()).tolist()
        each = (time.monotonic() - self._began) / count  # the ends of the steps are unknown
        steps = [
            Step(*place, values[at], values[count + at], each, self._began + each * (at + 1))
            for at, place in enumerate(self._steps)
        ]
        self._steps, self._losses, self._norms = [], [], []
        # The same on every rank, because it comes from the collective.
        a_step = max(values[-1] / count, 1e-9)
        self._most = max(1, min(self._log_every, math.floor(WITHIN / a_step)))
        return steps, bool(values[-3]), bool(values[-2])

    def split(self) -> dict[str, float]:
        """Return the seconds of each part since the last call; waits for the GPU.

        On a GPU, they may exceed the elapsed time, because it works while the host waits for data.
        """
        spent = self._host
        for name, began, ended in self._events:
            ended.synchronize()
            spent[name] = spent.get(name, 0.0) + began.elapsed_time(ended) / 1000
        self._host, self._events = {}, []
        return spent


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


@dataclass
class Training:
    """The state of a training run, and its operations. engine/start.py builds it."""

    args: argparse.Namespace
    me: Ranks
    device: torch.device
    data: DataSet
    task: Task
    strategy: Strategy
    at: Position
    guard: LossGuard
    checkpoints: checkpoint.Checkpoints
    saver: Saver
    window: StepWindow
    figures: Figures
    report: Reporter = field(init=False)
    """Opened once this process owns the run folder."""

    # ------------------------------------------------------------------------------- a step

    def step(self, batches: Iterator[Batch]) -> None:
        """Train on the next global batch, accumulated from its micro batches."""
        strategy, window = self.strategy, self.window
        lr = self.begin_step()
        total = torch.zeros((), device=self.device)
        for left in reversed(range(strategy.accumulate)):
            HEART.move("data")
            with window.part(DATA):
                inputs, targets = next(batches)
            HEART.move()
            with window.part(PASSES):
                loss = strategy.loss(inputs, targets, last=not left)
                HEART.move()
                strategy.backward(loss, last=not left)
                total += loss.detach()
        with window.part(OPTIMIZER):
            norm = strategy.step(lr)
        self.end_step(lr, total / strategy.accumulate, norm)

    def begin_step(self) -> float:
        """Begin a step; return its learning rate."""
        at = self.at
        self.window.begin()
        # The random numbers of a step (dropout) depend only on its position and the rank: nothing
        # needs saving, and a resumed training draws the same.
        seed = seed_of((self.args.seed * 1_000_003 + at.step) * 65_537 + self.me.rank)
        # torch.manual_seed records its caller for each missing kind of device: 7 % of a small step
        # on a CPU.
        torch.default_generator.manual_seed(seed)
        if self.device.type == "cuda":
            torch.cuda.manual_seed(seed)
        done = (at.epoch + at.samples / at.train_samples) / self.args.epochs
        return self.strategy.rate(done, at.step)

    def end_step(self, lr: float, loss: Tensor, norm: Tensor) -> None:
        """Count a queued step: its loss on this rank, its gradient."""
        at = self.at
        self.at = replace(at, step=at.step + 1, samples=at.samples + self.global_batch)
        self.window.add(self.at.step, at.epoch + 1, lr, loss, norm)

    # -------------------------------------------------------------------------- between steps

    @property
    def global_batch(self) -> int:
        """Samples per step, over all ranks."""
        return self.strategy.micro_batch * self.strategy.accumulate * self.me.world_size

    def epoch_has_more(self) -> bool:
        """Whether a complete global batch of this epoch is left; an incomplete one is dropped."""
        return self.at.samples + self.global_batch <= self.at.train_samples

    def _goes_on(self) -> bool:
        return self.epoch_has_more() and self.at.step < self.args.steps

    def train(self) -> None:
        """Train to the last epoch or to --steps; save when due and on a stop request."""
        args = self.args
        figure = None
        traced: Trace | None = None
        if args.profile and self.me.rank == 0:
            from engine.trace import Trace  # with PyTorch's profiler

            traced = Trace(args.profile, self.me.run_dir)
        while self.at.epoch < args.epochs and self.at.step < args.steps:
            try:
                self.train_epoch(traced)
            finally:
                if traced:
                    traced.end()
            figure = None
            if self.epoch_has_more():
                break  # --steps ended it within the epoch
            figure = self.end_epoch()
        self.finish(figure)

    def train_epoch(self, traced: Trace | None) -> None:
        """Train to the end of the epoch or to --steps."""
        with self.batches() as batches:
            while self._goes_on():
                HEART.step(self.at.step + 1)
                with traced.step(self.at.step + 1) if traced else nullcontext():
                    self.step(batches)
                self.after_step()

    def batches(self) -> AbstractContextManager[Iterator[Batch]]:
        """Open this rank's micro batches for the rest of the epoch."""
        at, args, me = self.at, self.args, self.me
        order = epoch_order(at.train_samples, args.seed, at.epoch)
        micro, parts = self.strategy.micro_batch, self.strategy.accumulate
        shares = TrainingShares(order, at.samples, micro, parts, me.rank, me.world_size)
        view = self.data.view(seed=epoch_seed(args.seed, at.epoch))
        return open_batches(self.data.train, shares, view, self.device, workers=args.workers)

    def after_step(self) -> None:
        """Read results and save, if due."""
        every = self.args.save_every or (0 if self.args.save_minutes else SAVE_EVERY)
        saves = bool(every) and self.at.step % every == 0
        if saves or self.window.full or not self._goes_on():
            saves |= self.read()
        if saves and not self.guard.in_a_row:
            self.save_on_the_way(self.begin_save)

    def read(self) -> bool:
        """Wait for the device, report its steps, and stop on request or after too many bad ones.

        Returns whether --save-minutes have passed, by rank 0's clock.
        """
        guard, minutes = self.guard, self.args.save_minutes
        over = minutes and time.monotonic() - self.saver.began >= 60 * minutes
        saves = bool(over) and self.me.rank == 0
        steps, stopping, saves = self.window.read(STOP.wanted(), saves)
        split = {name: seconds / len(steps) for name, seconds in self.window.split().items()}
        split |= self.strategy.communication() | memory(self.device)
        for one in steps:
            guard.note(one.loss, one.grad_norm)
            figures = self.figures.step(self.global_batch / one.seconds)
            samples = self.global_batch
            self.report.step(one, samples=samples, skipped=guard.skipped, split=split | figures)
            if guard.gives_up:
                self.give_up(one.step)
        self.tell_of_saves()
        if stopping:
            self.stop()
        return saves

    def end_epoch(self) -> float | None:
        """Go to the next epoch; return the test result if each epoch is tested."""
        self.at = replace(self.at, epoch=self.at.epoch + 1, samples=0)
        if self.args.eval != "epoch":
            return None
        figure = self.test()
        self.report.test(step=self.at.step, epoch=self.at.epoch, figure=figure)
        better = figure if self.task.figure == ACCURACY else -figure
        if self.args.keep_best and self.checkpoints.is_best(better, self.at.step):
            self.save_on_the_way(self.save)
        return figure

    # --------------------------------------------------------------------------------- a test

    def test(self) -> float:
        """Return the result on the test samples; stop on request."""
        with HEART.doing("test"), self.report.timed("test_s"):
            figure = self._figure()
        if figure is None:
            self.stop()
        return figure

    @torch.no_grad()
    def _figure(self) -> float | None:
        """Evaluate this rank's part; return the result over all ranks.

        It is None if a rank was asked to stop: the test may take longer than the remaining time.
        """
        strategy, data, me = self.strategy, self.data, self.me
        for buffer in strategy.module.buffers():  # batch norm's means differ; those of rank 0 count
            dist.broadcast(buffer, src=0)
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        shape = data.shape
        values = prod(shape.input) * (shape.classes if shape.kind == "tokens" else 1)
        batch = max(strategy.micro_batch, TEST_VALUES // values)
        shares = TestingShares(len(data.test), batch, me.rank, me.world_size)
        workers = self.args.workers
        strategy.module.eval()
        try:
            with open_batches(
                data.test, shares, data.view(), self.device, workers=workers
            ) as batches:
                for inputs, targets in batches:
                    if average([STOP.wanted()], self.device)[0]:
                        return None
                    total += self._score(inputs, targets)
        finally:
            strategy.module.train()
        dist.all_reduce(total)
        return total.item() / len(data.test)

    def _score(self, inputs: Tensor, targets: Tensor) -> Tensor:
        outputs = self.strategy.predict(inputs)  # also of none: ZeRO stage 3 gathers weights in it
        if self.task.figure == ACCURACY:
            return (outputs.argmax(dim=1) == targets).sum()
        if not len(inputs):  # the mean of an empty batch is NaN
            return outputs.new_zeros(())
        return self.task.loss(outputs, inputs, targets).double() * len(inputs)

    # --------------------------------------------------------------------------------- saves

    def save(self) -> str:
        """Save each rank's part; every rank returns once the checkpoint is complete.

        If the step is already saved, only the position may have changed (to a whole epoch).

        Raises:
            TrainingError: the checkpoint cannot be saved; raised on every rank.
        """
        self._check_weights()
        saved = self.saver.save(self.at, self.strategy.stage)
        return f"checkpoints/{saved.folder.name}"

    def begin_save(self) -> None:
        """Save during training, possibly in the background; `saver.ended` reports the result.

        Raises:
            SaveFailed: the weights are not finite.
        """
        self._check_weights()
        self.saver.begin(self.at, self.strategy.stage)

    def _check_weights(self) -> None:
        weights = self.strategy.module.parameters
        checkpoint.on_all_ranks(lambda: check_finite(weights()), self.checkpoints.folder)

    def save_on_the_way(self, write: Callable[[], object]) -> None:
        """Save; a failed write loses only this checkpoint."""
        with HEART.doing("save"), self.report.timed("save_s"):
            try:
                write()
            except checkpoint.SaveFailed as error:
                self.report.not_saved(step=self.at.step, error=error)
        self.tell_of_saves()

    def tell_of_saves(self) -> None:
        """Report the saves that have ended since the last call."""
        for one in self.saver.ended():
            if one.error:
                self.report.not_saved(step=one.step, error=one.error)
            elif one.saved:
                self.report.saved(one)

    # ------------------------------------------------------------------------------- the end

    def finish(self, figure: float | None) -> None:
        """Save, and evaluate if the end of the last epoch gave no `figure`."""
        # Steps skipped at the very end have changed nothing: one bad batch must not prevent
        # success. save() refuses weights that are not finite.
        with HEART.doing("save"), self.report.timed("save_s"):
            self.save()
        self.tell_of_saves()
        if figure is None and self.args.eval != "never":
            figure = self.test()
        self.report.end(step=self.at.step, figure=figure)
        HEART.close()

    def give_up(self, step: int) -> NoReturn:
        """End the training with Diverged after too many skipped steps, of which this is the last.

        Removes the checkpoint after the last good step, if there is an older one, because nothing
        shows that its weights were good.
        """
        saver, skipped = self.saver, self.guard.in_a_row
        saver.wait()  # it may be the checkpoint to discard
        if self.me.rank == 0:
            self.checkpoints.discard(step - skipped)
        go_on = (
            "Resume from the last checkpoint"
            if saver.last
            else "There is no checkpoint: start again"
        )
        raise Diverged(
            f"The loss or its gradient was not a finite number in the last {skipped} steps, up to "
            f"step {step}. {go_on} with a lower learning rate, or inspect the data of these steps."
        )

    def stop(self) -> NoReturn:
        """Save unless the last step was skipped, and exit so that --resume continues here."""
        with HEART.doing("save"):
            self.saver.wait()
        last = self.saver.last
        path = f"checkpoints/{last.folder.name}" if last else ""
        try:
            if not self.guard.in_a_row:
                with HEART.doing("save"), self.report.timed("save_s"):
                    path = self.save()
        finally:
            STOP.done()  # also on a full disk: the next start must not stop after one step
        self.tell_of_saves()
        self.report.stop(step=self.at.step, signal=STOP.received or None, path=path)
        HEART.close()
        raise SystemExit(STOPPED_EARLY)
