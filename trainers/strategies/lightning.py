"""PyTorch Lightning's Trainer around the same model, data and optimizer, with its hooks.

Written for Lightning 2.6.6. Each start creates a new Trainer for the remaining epochs; weights and
optimizer are read from its checkpoint.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from data.loading import Batch
from engine import ranks
from engine.exits import UsageError
from engine.training import DATA, Training
from monitor.heartbeat import HEART
from monitor.stop_request import STOP
from saving import files as on_disk
from saving.saver import Write
from strategies.pytorch import TorchStrategy, spread_nan

try:
    from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.plugins import TorchCheckpointIO
    from lightning.pytorch.strategies import DDPStrategy
except ImportError as error:
    raise UsageError(
        f"PyTorch Lightning can't be imported ({error}). Install `lightning` in the job's "
        "environment, or use ddp.py, which trains the same model without it."
    ) from error

CHECKPOINT = "lightning.ckpt"
NET = "net."
"""Lightning's prefix for the names of the weights: the network is a module's attribute."""


class HeldCheckpoint(TorchCheckpointIO):
    """Captures Lightning's writes: a full disk here would leave the other ranks waiting."""

    content: dict[str, Any]

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, *_: Any, **__: Any) -> None:
        """Keep the checkpoint for saving/saver.py, which writes it with checksums."""
        self.content = checkpoint


class Lightning(TorchStrategy):
    """The model and its optimizer, trained by Lightning's Trainer."""

    name = "lightning"
    trainer: Trainer

    def stage(self, folder: Path, copy: bool) -> Write:
        """Capture Lightning's checkpoint, which rank 0 writes."""
        self.trainer.save_checkpoint(folder / CHECKPOINT)
        held = self.trainer.strategy.checkpoint_io
        if self._me.rank or not isinstance(held, HeldCheckpoint):  # only rank 0 gets it
            return list
        return self._writer(held.content, folder / CHECKPOINT, copy)

    def load(self, folder: Path, saved_by: int) -> None:
        """Load weights and optimizer from Lightning's checkpoint, on any number of ranks."""
        path = on_disk.of_this_trainer(folder, CHECKPOINT)
        tree = torch.load(path, map_location=self._device, weights_only=True)
        weights = {name.removeprefix(NET): one for name, one in tree["state_dict"].items()}
        self.take({"model": weights, "optimizer": tree["optimizer_states"][0]})


class EpochBatches:
    """The rest of the current epoch, each time Lightning requests it."""

    def __init__(self, of: Training) -> None:
        self._of = of
        self.workers = ExitStack()
        """The open batches, to close if the training ends early."""

    def __iter__(self) -> Iterator[Batch]:
        """Yield batches from the training's next sample on."""
        batches = self.workers.enter_context(self._of.batches())
        while True:
            with self._of.window.part(DATA):
                batch = next(batches, None)
            if batch is None:
                break
            yield batch
        self.workers.close()


class Module(LightningModule):
    """Lightning's interface to a model; reports, saves, evaluates and stops after each step."""

    def __init__(self, of: Training, strategy: Lightning) -> None:
        """Wrap `training`; the network becomes an attribute, so that DDP finds the weights."""
        super().__init__()
        self.net = strategy.module
        self._of, self._with = of, strategy
        self._loss, self._norm = torch.zeros((), device=of.device), torch.zeros(())
        self._rate = strategy.lr
        self._figure: float | None = None

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimizer of ddp.py."""
        return self._with.optimizer

    def on_train_start(self) -> None:
        """Listen for signals again: Lightning's SIGTERM handler would wait for the other ranks."""
        STOP.listen()

    def on_train_batch_start(self, batch: Batch, number: int) -> None:
        """Begin a step with its first micro batch."""
        HEART.move()
        if number % self._with.accumulate == 0:
            HEART.step(self._of.at.step + 1)
            self._rate = self._of.begin_step()
            self._loss = torch.zeros((), device=self._of.device)

    def training_step(self, batch: Batch, number: int) -> Tensor:
        """Return the loss of a micro batch."""
        inputs, targets = batch
        loss = self._with.loss(inputs, targets, last=True)
        self._loss = self._loss + loss.detach()
        return spread_nan(loss)

    def optimizer_step(
        self, epoch: int, number: int, optimizer: object, optimizer_closure: Any = None
    ) -> None:
        """Run the last forward and backward pass, then update the weights if all is finite."""
        if optimizer_closure:
            optimizer_closure()
        self._norm = self._with.step(self._rate)

    def on_train_batch_end(self, outputs: Any, batch: Batch, number: int) -> None:
        """End a step with its last micro batch."""
        if (number + 1) % self._with.accumulate == 0:
            self._of.end_step(self._rate, self._loss / self._with.accumulate, self._norm)
            self._of.after_step()

    def on_train_epoch_end(self) -> None:
        """Go to the next epoch and evaluate, unless --steps ended this one."""
        if not self._of.epoch_has_more():
            self._figure = self._of.end_epoch()

    def on_train_end(self) -> None:
        """Save and evaluate at the end."""
        self._of.finish(self._figure)


def fit(of: Training) -> None:
    """Run Lightning's Trainer to the last epoch or to --steps."""
    args, strategy = of.args, of.strategy
    assert isinstance(strategy, Lightning)
    if args.profile:
        raise UsageError("--profile is for ddp.py. Omit it, or profile there.")
    if not of.epoch_has_more():
        of.end_epoch()  # stopped right after its last step
    if of.at.epoch >= args.epochs or of.at.step >= args.steps:
        of.finish(None)
        return
    hosts = ranks.gather(os.uname().nodename)
    nodes = list(dict.fromkeys(hosts))
    ranks.name_alone()  # read by TorchElasticEnvironment; any launcher has set them
    os.environ["GROUP_RANK"] = str(nodes.index(os.uname().nodename))
    batches = EpochBatches(of)
    strategy.trainer = Trainer(
        accelerator="gpu" if of.device.type == "cuda" else "cpu",
        # This rank's device at each index: some launchers show a rank only its own GPU.
        strategy=DDPStrategy(parallel_devices=[of.device] * (len(hosts) // len(nodes))),
        num_nodes=len(nodes),
        plugins=[TorchElasticEnvironment(), HeldCheckpoint()],
        max_epochs=args.epochs - of.at.epoch,
        max_steps=-1 if args.steps == sys.maxsize else args.steps - of.at.step,
        accumulate_grad_batches=strategy.accumulate,
        default_root_dir=of.me.run_dir,
        use_distributed_sampler=False,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_autolog_hparams=False,
    )
    with batches.workers:
        strategy.trainer.fit(Module(of, strategy), batches)
