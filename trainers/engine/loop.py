"""The loop of every trainer here: epochs of steps, saves and tests, to the end or a wish to stop.

A step whose loss or gradient is not a finite number changes no weight. A few in a row may pass.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from engine import ranks, reporting
from engine.heartbeat import HEART
from engine.stop_request import STOP, STOPPED_EARLY
from engine.throughput.figures import memory
from engine.watchers.trace import Trace
from saving import checkpoint

if TYPE_CHECKING:
    from engine.training import Training

DIVERGED = 86
"""Exit code of a training that was ended because its loss was no longer a number."""


class Diverged(reporting.TrainingError):
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

    def accepts(self, *values: float) -> bool:
        """Whether a step with this loss and gradient norm may change the weights."""
        if all(map(math.isfinite, values)):
            self.in_a_row = 0
            return True
        self.skipped += 1
        self.in_a_row += 1
        return False

    @property
    def gives_up(self) -> bool:
        """Whether more steps than allowed were skipped in a row."""
        return self.in_a_row > self._most

    def check(
        self, step: int, checkpoints: checkpoint.Checkpoints, me: ranks.Ranks, saved: bool
    ) -> None:
        """End the training after too many skipped steps.

        The checkpoint after the last good step goes, if there is an older one: nothing shows that
        its weights were good.

        Raises:
            Diverged: more than allowed followed each other; `step` is the last. Its words are of
                whether this training has `saved` a checkpoint.
        """
        if not self.gives_up:
            return
        if me.rank == 0:
            checkpoints.discard(step - self.in_a_row)
        raise Diverged(
            f"The loss or its gradient was not a finite number in the last {self.in_a_row} "
            f"steps, up to step {step}. "
            + (
                "Resume from the last checkpoint"
                if saved
                else "There is no checkpoint: start again"
            )
            + " with a lower learning rate, or look at the data of these steps."
        )


def begin(training: Training) -> None:
    """Take over the run folder from earlier attempts, and continue where they were."""
    me = training.me
    ranks.choose_threads()
    if me.rank == 0:
        STOP.watch(me.run_dir)
    if trouble := HEART.start(me.rank, me.run_dir, ranks.gather):
        print(f"A rank that hangs will not be named ({trouble}).", file=sys.stderr, flush=True)
    checkpoint.by_first(me, training.checkpoints.take_over, me.run_dir)
    if training.args.resume:
        training.resume()
    elif me.rank == 0 and (earlier := training.checkpoints.newest_first()):
        print(
            f"This starts from the beginning. The checkpoints of an earlier training stay in "
            f"{training.checkpoints.folder}, the newest is {earlier[0].folder.name}; with --resume "
            "it would have gone on.",
            flush=True,
        )


def train(training: Training, report: reporting.Reporter) -> None:
    """Train to the last epoch or to --steps; save when it's time, or when asked to stop."""
    args = training.args
    figure = None
    traced = Trace(args.profile, training.me.run_dir, training.me.rank)
    while training.at.epoch < args.epochs and training.at.step < args.steps:
        with traced:
            train_epoch(training, report, traced)
        figure = None
        if training.epoch_has_more():
            break  # --steps ended it within the epoch
        figure = end_epoch(training, report)
    finish(training, report, figure)


def end_epoch(training: Training, report: reporting.Reporter) -> float | None:
    """Go to the next epoch; return the task's figure if it is tested after each."""
    training.at = replace(training.at, epoch=training.at.epoch + 1, samples=0)
    if training.args.eval != "epoch":
        return None
    figure = test(training, report)
    report.test(step=training.at.step, epoch=training.at.epoch, figure=figure)
    return figure


def finish(training: Training, report: reporting.Reporter, figure: float | None) -> None:
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


def train_epoch(training: Training, report: reporting.Reporter, traced: Trace) -> None:
    """Train to the end of the epoch or to --steps."""
    args = training.args
    with training.batches() as batches:
        while _goes_on(training):
            HEART.step(training.at.step + 1)
            with traced.step(training.at.step + 1):
                training.step(iter(batches))
            saves = training.at.step % args.save_every == 0
            if saves or training.window.full or not _goes_on(training):
                read(training, report)
            if saves and not training.guard.in_a_row:
                save(training, report)


def _goes_on(training: Training) -> bool:
    """Whether a step of this epoch is left."""
    return training.epoch_has_more() and training.at.step < training.args.steps


def read(training: Training, report: reporting.Reporter) -> None:
    """Wait for the device and report its steps; stop when asked to, or after too many bad ones."""
    guard = training.guard
    steps, stopping = training.window.read(STOP.wanted())
    spent = training.clock.read()
    split = {name: seconds / len(steps) for name, seconds in spent.items()}
    split |= training.strategy.communication() | memory(training.device)
    for one in steps:
        guard.accepts(one.loss, one.norm)
        figures = training.figures.step(training.global_batch / one.seconds)
        taken = reporting.Step(
            step=one.taken.step, epoch=one.taken.epoch, loss=one.loss, grad_norm=one.norm,
            lr=one.taken.lr, skipped=guard.skipped, samples=training.global_batch,
            seconds=one.seconds, ended=one.ended, split=split | figures,
        )  # fmt: skip
        report.step(taken)
        if guard.gives_up:
            training.saver.wait()  # it may be the one that is to be discarded
        saved = training.saver.last is not None
        guard.check(taken.step, training.checkpoints, training.me, saved)
    tell_of_saves(training, report)
    if stopping:
        stop(training, report)


def save(training: Training, report: reporting.Reporter) -> None:
    """Save on the way: what can't be written now costs this checkpoint, not the training."""
    with HEART.doing("save"), report.timed("save_s"):
        try:
            training.begin_save()
        except checkpoint.SaveFailed as error:
            report.not_saved(step=training.at.step, error=error)
    tell_of_saves(training, report)


def tell_of_saves(training: Training, report: reporting.Reporter) -> None:
    """Report the saves that ended, perhaps in the background, since this was done last."""
    for one in training.saver.ended():
        if one.error:
            report.not_saved(step=one.step, error=one.error)
        elif one.saved:
            path = f"checkpoints/{one.saved.folder.name}"
            took = reporting.SaveTime(one.seconds, one.blocked, one.size)
            report.saved(step=one.step, path=path, took=took)


def test(training: Training, report: reporting.Reporter) -> float:
    """Return the task's figure, or stop when asked to."""
    with HEART.doing("test"), report.timed("test_s"):
        figure = training.test()
    if figure is None:
        stop(training, report)
    return figure


def stop(training: Training, report: reporting.Reporter) -> NoReturn:
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
