"""The loop of every trainer here: epochs of steps, saves and tests, to the end or a wish to stop.

A step whose loss or gradient is not a finite number changes no weight. A few in a row may pass.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import torch
import torch.distributed as dist
from torch import Tensor

from engine import ranks
from engine.exits import TrainingError
from engine.speed import memory
from monitor.heartbeat import HEART
from monitor.metrics import Reporter, Step
from monitor.stop_request import STOP, STOPPED_EARLY
from saving import checkpoint

if TYPE_CHECKING:
    from engine.training import Training
    from monitor.trace import Trace

DIVERGED = 86
"""Exit code of a training that was ended because its loss was no longer a number."""


class Diverged(TrainingError):
    """The loss is lost: going on would spend GPU-hours on nothing."""

    code = DIVERGED


class LossGuard:
    """Lets a few steps be skipped, and ends the training when too many follow each other.

    One bad batch, or one step whose sums overflow, need not end a training: the weights stay as
    they are. What every rank asks here comes from a collective, so that all decide alike.
    """

    def __init__(self, most: int) -> None:
        """Allow `most` steps in a row to be skipped."""
        self._most = most
        self.skipped = 0
        """Steps that were skipped in this attempt."""
        self.in_a_row = 0
        """Steps skipped since the last good one. No checkpoint is made on the way while there are
        any: the weights after the last good step may be what makes the loss infinite."""

    def note(self, *values: float) -> None:
        """Note a step with this loss and gradient norm: not finite, it has changed no weight."""
        skipped = not all(map(math.isfinite, values))
        self.skipped += skipped
        self.in_a_row = (self.in_a_row + 1) * skipped

    @property
    def gives_up(self) -> bool:
        """Whether more steps than allowed were skipped in a row."""
        return self.in_a_row > self._most


SAVE_EVERY = 100
"""Steps between checkpoints, unless the arguments say otherwise."""
WITHIN = 2.0
"""Seconds: a wish to stop waits for no longer than that, or for one step."""


class StepWindow:
    """The last steps, whose results are still on the device.

    To read a number from a GPU the CPU has to wait until the GPU has come to it, and the GPU then
    waits for the CPU's next orders. So the losses of several steps are read at once, with one
    collective that also says whether a rank was asked to stop. Every rank adds the same steps and
    reads after the same one of them.
    """

    def __init__(self, log_every: int, device: torch.device) -> None:
        """Begin with a window of one step: its time says how long the next may be."""
        self._log_every, self._device = log_every, device
        self._most = 1
        self._steps: list[tuple[int, int, float]] = []
        self._losses: list[Tensor] = []
        self._norms: list[Tensor] = []
        self._began = 0.0

    def begin(self) -> None:
        """Note that a step begins."""
        if not self._steps:
            self._began = time.monotonic()

    def add(self, step: int, epoch: int, lr: float, loss: Tensor, norm: Tensor) -> None:
        """Add a step that was given to the device.

        `loss` is this rank's mean. `norm` is the gradient's of all ranks, and not finite where no
        weight was changed.
        """
        self._steps.append((step, epoch, lr))
        self._losses.append(loss)
        self._norms.append(norm)

    @property
    def full(self) -> bool:
        """Whether it is time to read."""
        at_line = bool(self._steps) and self._steps[-1][0] % self._log_every == 0
        return at_line or len(self._steps) >= self._most

    def read(self, wanted: bool, save: bool = False) -> tuple[list[Step], bool, bool]:
        """Wait for the device; return the steps, and whether any rank wants to stop, or to save.

        One collective, and none when there is nothing to read. In float64 the sum of the ranks'
        float32 losses is exact: in float32 it depended on the number's place in the message, and
        so on how many steps were read at once.
        """
        count = len(self._steps)
        if not count:
            return [], False, False
        spent = time.monotonic() - self._began
        own = torch.tensor([wanted, save, spent], dtype=torch.float64, device=self._device)
        total = torch.cat([torch.stack([*self._losses, *self._norms]).double(), own])
        dist.all_reduce(total)
        values = (total / dist.get_world_size()).tolist()
        each = (time.monotonic() - self._began) / count  # nobody saw when a step ended
        steps = [
            Step(*place, values[at], values[count + at], each, self._began + each * (at + 1))
            for at, place in enumerate(self._steps)
        ]
        self._steps, self._losses, self._norms = [], [], []
        # The same number on every rank, since it comes from the collective.
        a_step = max(values[-1] / count, 1e-9)
        self._most = max(1, min(self._log_every, math.floor(WITHIN / a_step)))
        return steps, bool(values[-3]), bool(values[-2])


def begin(training: Training) -> None:
    """Take over the run folder from earlier attempts, and continue where they were."""
    me = training.me
    ranks.choose_threads()
    STOP.watch(me.run_dir, me.rank, training.checkpoints.is_followed)
    if trouble := HEART.start(me.rank, me.run_dir, ranks.gather):
        print(f"A rank that hangs will not be named ({trouble}).", file=sys.stderr, flush=True)
    resumes, checkpoints = bool(training.args.resume), training.checkpoints
    checkpoint.on_first_rank(me, lambda: checkpoints.take_over(resumes=resumes), me.run_dir)
    if resumes:
        training.resume()
    elif me.rank == 0 and (earlier := training.checkpoints.newest_first()):
        print(
            f"This starts from the beginning. The checkpoints of an earlier training stay in "
            f"{training.checkpoints.folder}, the newest is {earlier[0].folder.name}; with --resume "
            "it would have gone on.",
            flush=True,
        )


def train(training: Training, report: Reporter) -> None:
    """Train to the last epoch or to --steps; save when it's time, or when asked to stop."""
    args = training.args
    figure = None
    traced: Trace | None = None
    if args.profile and training.me.rank == 0:
        from monitor.trace import Trace  # with PyTorch's profiler

        traced = Trace(args.profile, training.me.run_dir)
    while training.at.epoch < args.epochs and training.at.step < args.steps:
        try:
            train_epoch(training, report, traced)
        finally:
            if traced:
                traced.end()
        figure = None
        if training.epoch_has_more():
            break  # --steps ended it within the epoch
        figure = end_epoch(training, report)
    finish(training, report, figure)


def end_epoch(training: Training, report: Reporter) -> float | None:
    """Go to the next epoch; return the task's figure if it is tested after each."""
    training.at = replace(training.at, epoch=training.at.epoch + 1, samples=0)
    if training.args.eval != "epoch":
        return None
    figure = test(training, report)
    report.test(step=training.at.step, epoch=training.at.epoch, figure=figure)
    better = figure if training.task.figure == "test_accuracy" else -figure
    if training.args.keep_best and training.checkpoints.is_best(better, training.at.step):
        save(training, report, training.save)
    return figure


def finish(training: Training, report: Reporter, figure: float | None) -> None:
    """Save, and test if the last epoch's end has given no `figure`."""
    # Steps that were skipped at the very end have changed nothing: one bad batch must not keep a
    # training from ever ending well. save() refuses weights that are not finite.
    with HEART.doing("save"), report.timed("save_s"):
        training.save()
    tell_of_saves(training, report)
    if figure is None and training.args.eval != "never":
        figure = test(training, report)
    report.end(step=training.at.step, figure=figure)
    HEART.close()


def train_epoch(training: Training, report: Reporter, traced: Trace | None) -> None:
    """Train to the end of the epoch or to --steps."""
    with training.batches() as batches:
        while _goes_on(training):
            HEART.step(training.at.step + 1)
            with traced.step(training.at.step + 1) if traced else nullcontext():
                training.step(batches)
            after_step(training, report)


def after_step(training: Training, report: Reporter) -> None:
    """Read what steps have come to, and save, when it's time."""
    every = training.args.save_every or (0 if training.args.save_minutes else SAVE_EVERY)
    saves = bool(every) and training.at.step % every == 0
    if saves or training.window.full or not _goes_on(training):
        saves |= read(training, report)
    if saves and not training.guard.in_a_row:
        save(training, report, training.begin_save)


def _goes_on(training: Training) -> bool:
    """Whether a step of this epoch is left."""
    return training.epoch_has_more() and training.at.step < training.args.steps


def read(training: Training, report: Reporter) -> bool:
    """Wait for the device and report its steps; stop when asked to, or after too many bad ones.

    Returns:
        Whether --save-minutes are over, by rank 0's clock.
    """
    guard, minutes = training.guard, training.args.save_minutes
    over = minutes and time.monotonic() - training.saver.began >= 60 * minutes
    saves = bool(over) and training.me.rank == 0
    steps, stopping, saves = training.window.read(STOP.wanted(), saves)
    spent = training.clock.read()
    split = {name: seconds / len(steps) for name, seconds in spent.items()}
    split |= training.strategy.communication() | memory(training.device)
    for one in steps:
        guard.note(one.loss, one.grad_norm)
        figures = training.figures.step(training.global_batch / one.seconds)
        samples = training.global_batch
        report.step(one, samples=samples, skipped=guard.skipped, split=split | figures)
        if guard.gives_up:
            give_up(training, one.step)
    tell_of_saves(training, report)
    if stopping:
        stop(training, report)
    return saves


def give_up(training: Training, step: int) -> NoReturn:
    """End the training after too many skipped steps, of which this is the last.

    The checkpoint after the last good step goes, if there is an older one: nothing shows that its
    weights were good.

    Raises:
        Diverged: always.
    """
    saver, skipped = training.saver, training.guard.in_a_row
    saver.wait()  # it may be the one that is to be discarded
    if training.me.rank == 0:
        training.checkpoints.discard(step - skipped)
    go_on = (
        "Resume from the last checkpoint" if saver.last else "There is no checkpoint: start again"
    )
    raise Diverged(
        f"The loss or its gradient was not a finite number in the last {skipped} steps, up to step "
        f"{step}. {go_on} with a lower learning rate, or look at the data of these steps."
    )


def save(training: Training, report: Reporter, write: Callable[[], object]) -> None:
    """Save on the way: what can't be written now costs this checkpoint, not the training."""
    with HEART.doing("save"), report.timed("save_s"):
        try:
            write()
        except checkpoint.SaveFailed as error:
            report.not_saved(step=training.at.step, error=error)
    tell_of_saves(training, report)


def tell_of_saves(training: Training, report: Reporter) -> None:
    """Report the saves that ended, perhaps in the background, since this was done last."""
    for one in training.saver.ended():
        if one.error:
            report.not_saved(step=one.step, error=one.error)
        elif one.saved:
            report.saved(one)


def test(training: Training, report: Reporter) -> float:
    """Return the task's figure, or stop when asked to."""
    with HEART.doing("test"), report.timed("test_s"):
        figure = training.test()
    if figure is None:
        stop(training, report)
    return figure


def stop(training: Training, report: Reporter) -> NoReturn:
    """Save, unless the last step was skipped, and end so that --resume goes on here."""
    with HEART.doing("save"):
        training.saver.wait()
    last = training.saver.last
    path = f"checkpoints/{last.folder.name}" if last else ""
    try:
        if not training.guard.in_a_row:
            with HEART.doing("save"), report.timed("save_s"):
                path = training.save()
    finally:
        STOP.done()  # also where the disk is full: the next start must not stop after a step
    tell_of_saves(training, report)
    report.stop(step=training.at.step, signal=STOP.received or None, path=path)
    HEART.close()
    raise SystemExit(STOPPED_EARLY)
