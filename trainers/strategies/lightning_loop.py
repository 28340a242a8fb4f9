"""PyTorch Lightning's Trainer around the same model, data and optimizer: the hooks it calls.

Written with Lightning 2.6.6. Its Trainer keeps a position of its own, which is set to ours when it
goes on from a checkpoint: so another number of ranks may.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from data.loading import Batch, Batches
from engine import loop, ranks, reporting
from engine.heartbeat import HEART
from engine.stop_request import STOP
from engine.throughput.clock import DATA
from engine.training import Training
from saving import files as on_disk
from saving.saver import Write
from strategies.pytorch import Single
from strategies.strategy import poisoned

try:
    from lightning.fabric.plugins.environments.cluster_environment import ClusterEnvironment
    from lightning.pytorch import Callback, LightningModule, Trainer
    from lightning.pytorch.plugins import TorchCheckpointIO
    from lightning.pytorch.strategies import DDPStrategy
except ImportError as error:
    raise reporting.UsageError(
        f"PyTorch Lightning can't be imported ({error}). Install `lightning` into the job's "
        "environment, or take ddp.py, which trains the same without it."
    ) from error

CHECKPOINT = "lightning.ckpt"


class Launched(ClusterEnvironment):
    """The ranks as the launcher has started them."""

    creates_processes_externally = True

    def __init__(self, me: ranks.Ranks, node: int) -> None:
        """Take this process's place; `node` is its node's number."""
        super().__init__()
        self._me, self._node = me, node

    @property
    def main_address(self) -> str:
        """The first rank's host; the ranks have met already."""
        return os.environ.get("MASTER_ADDR", "127.0.0.1")

    @property
    def main_port(self) -> int:
        """Where they met."""
        return int(os.environ.get("MASTER_PORT", "0"))

    @staticmethod
    def detect() -> bool:
        """Return False: it is named, not found."""
        return False

    def world_size(self) -> int:
        """How many ranks there are."""
        return self._me.world_size

    def set_world_size(self, size: int) -> None:
        """Nothing: the launcher has decided it."""

    def global_rank(self) -> int:
        """This rank."""
        return self._me.rank

    def set_global_rank(self, rank: int) -> None:
        """Nothing: the launcher has decided it."""

    def local_rank(self) -> int:
        """This rank on its node."""
        return self._me.local_rank

    def node_rank(self) -> int:
        """The node's number."""
        return self._node


class Taking(TorchCheckpointIO):
    """Takes what Lightning would write. A full disk met here would leave the others waiting."""

    taken: dict[str, Any]

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, *_: Any, **__: Any) -> None:
        """Keep it for saving/saver.py, which writes it with checksums."""
        self.taken = checkpoint


class Lightning(Single):
    """The model and its optimizer, which Lightning's Trainer moves along."""

    name = "lightning"
    trainer: Trainer
    continues: Path | None = None
    """The checkpoint to go on from."""

    def scaled(self, loss: Tensor) -> Tensor:
        """What Lightning is to differentiate."""
        return poisoned(loss) * self._scale.scale

    def stage(self, folder: Path, copy: bool) -> Write:
        """Take Lightning's checkpoint, which rank 0 writes."""
        self.trainer.save_checkpoint(folder / CHECKPOINT)
        taking = self.trainer.strategy.checkpoint_io
        if self._me.rank or not isinstance(taking, Taking):
            return list
        tree = self._staging.copied(taking.taken) if copy else taking.taken

        def write() -> list[str]:
            torch.save(tree, folder / CHECKPOINT)
            return [CHECKPOINT]

        return write

    def load(self, folder: Path, saved_by: int) -> None:
        """Remember the checkpoint: Lightning's fit() reads it.

        Raises:
            UsageError: it isn't one that Lightning has made.
        """
        if not (folder / CHECKPOINT).is_file():
            raise reporting.UsageError(
                f"{folder} has no {CHECKPOINT}: another trainer made it. Resume with that one, or "
                "start in an empty run folder."
            )
        self.continues = folder / CHECKPOINT

    def loss_scale(self) -> on_disk.Tree:
        """What a checkpoint keeps of fp16's scale."""
        return self._loss_scale()

    def take_loss_scale(self, tree: dict[str, Any]) -> None:
        """Take it back."""
        if self._scale.moves and "loss scale" in tree:
            self._scale.load(tree["loss scale"])

    def configured(self) -> torch.optim.Optimizer:
        """The optimizer, for Lightning to save and restore."""
        return self._optimizer


class Rest:
    """What is left of the epoch that the training is in, each time Lightning asks for it."""

    def __init__(self, of: Training) -> None:
        """Read the data of this training."""
        self._of = of
        self._open: Batches | None = None

    def __len__(self) -> int:
        """Micro batches of a whole epoch: Lightning subtracts those that it knows to be done."""
        steps = self._of.at.train_samples // self._of.global_batch
        return steps * self._of.strategy.accumulate

    def __iter__(self) -> Iterator[Batch]:
        """Begin at the training's next sample."""
        self.close()
        self._open = self._of.batches()
        return self._timed(iter(self._open))

    def _timed(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        while True:
            with self._of.clock.part(DATA):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def close(self) -> None:
        """End the worker processes."""
        if self._open:
            self._open.close()

    def state_dict(self) -> dict[str, Any]:
        """Nothing: the position is the training's. With it Lightning believes in a resume."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing."""


class Module(LightningModule):
    """What Lightning asks of a model."""

    def __init__(self, of: Training, strategy: Lightning) -> None:
        """Train this; the network becomes a part of it, so that DDP finds the weights."""
        super().__init__()
        self.net = strategy.module
        self._of, self._with = of, strategy
        self.loss, self.norm = torch.zeros((), device=of.device), torch.zeros(())
        """Of the last step: the sum over its micro batches, and the gradient's length."""
        self.lr = strategy.lr

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """The one that ddp.py takes."""
        return self._with.configured()

    def training_step(self, batch: Batch, number: int) -> Tensor:
        """The loss of a micro batch."""
        inputs, targets = batch
        loss = self._of.task.loss(self._with.forward(inputs, last=True), inputs, targets)
        self.loss = self.loss + loss.detach()
        return self._with.scaled(loss)

    def optimizer_step(
        self,
        epoch: int,
        number: int,
        optimizer: object,
        optimizer_closure: Callable[[], Any] | None = None,
    ) -> None:
        """Run the last forward and backward pass, then change the weights if all is finite."""
        if optimizer_closure:
            optimizer_closure()
        self.norm = self._with.step(self.lr)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add fp16's scale."""
        checkpoint.update(self._with.loss_scale())

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take it back, and tell Lightning how far this number of ranks is in the epoch."""
        self._with.take_loss_scale(checkpoint)
        done = self._of.at.samples // self._of.global_batch * self._with.accumulate
        loops, epoch = checkpoint["loops"]["fit_loop"], self._of.at.epoch
        for kind, begun, ended in (
            ("epoch_progress", epoch + bool(done), epoch),
            ("epoch_loop.batch_progress", done, done),
        ):
            both = {"ready": begun, "started": begun, "processed": ended, "completed": ended}
            loops[kind]["current"] = loops[kind]["total"] = both


class Steps(Callback):
    """Says after each step how it went, and saves, tests and stops as ddp.py does."""

    def __init__(self, of: Training, report: reporting.Reporter, module: Module) -> None:
        """Watch this training."""
        self._of, self._report, self._module = of, report, module
        self._figure: float | None = None

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Hear signals again: Lightning's handler of SIGTERM waits for the other ranks in it."""
        STOP.listen()

    def on_train_batch_start(
        self, trainer: Trainer, module: LightningModule, batch: Batch, number: int
    ) -> None:
        """Begin a step with its first micro batch."""
        of = self._of
        HEART.move()
        if number % of.strategy.accumulate:
            return
        HEART.step(of.at.step + 1)
        of.window.begin()
        self._module.lr = of.begin_step()
        self._module.loss = torch.zeros((), device=of.device)

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Batch, number: int
    ) -> None:
        """End it with its last."""
        of, args = self._of, self._of.args
        if (number + 1) % of.strategy.accumulate:
            return
        mean = self._module.loss / of.strategy.accumulate
        of.end_step(self._module.lr, mean, self._module.norm)
        saves = of.at.step % args.save_every == 0
        over = not of.epoch_has_more() or of.at.step >= args.steps
        if saves or of.window.full or over:
            loop.read(of, self._report)
        if saves and not of.guard.in_a_row:
            loop.save(of, self._report)

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Go to the next epoch, and test."""
        of = self._of
        if of.epoch_has_more():
            return  # --steps ended it
        self._figure = loop.end_epoch(of, self._report)

    def on_train_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Save and test at the end."""
        loop.finish(self._of, self._report, self._figure)


def fit(of: Training, report: reporting.Reporter) -> None:
    """Let Lightning's Trainer train to the last epoch or to --steps."""
    args, me, strategy = of.args, of.me, of.strategy
    assert isinstance(strategy, Lightning)
    if args.profile:
        raise reporting.UsageError("--profile is for ddp.py. Leave it out, or profile there.")
    if not of.epoch_has_more():
        loop.end_epoch(of, report)  # it was stopped right after its last step
    if of.at.epoch >= args.epochs or of.at.step >= args.steps:
        loop.finish(of, report, None)
        return
    hosts = ranks.gather(os.uname().nodename)
    nodes = list(dict.fromkeys(hosts))
    module, rest = Module(of, strategy), Rest(of)
    strategy.trainer = Trainer(
        accelerator="gpu" if of.device.type == "cuda" else "cpu",
        # The device of this rank at each place: some launchers show a rank its own GPU only.
        strategy=DDPStrategy(parallel_devices=[of.device] * (len(hosts) // len(nodes))),
        num_nodes=len(nodes),
        plugins=[Launched(me, nodes.index(os.uname().nodename)), Taking()],
        callbacks=[Steps(of, report, module)],
        max_epochs=args.epochs,
        max_steps=-1 if args.steps == sys.maxsize else args.steps,
        accumulate_grad_batches=strategy.accumulate,
        default_root_dir=me.run_dir,
        use_distributed_sampler=False,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_autolog_hparams=False,
    )
    try:
        strategy.trainer.fit(module, rest, ckpt_path=strategy.continues, weights_only=True)
    finally:
        rest.close()
