"""Train a network with PyTorch Lightning; the lines for lumitui are numbered."""

import argparse

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import lumitui_run as run  # 1

INPUTS, OUTPUTS = 42, 3


class Learner(pl.LightningModule):
    """One linear layer, which learns another one."""

    def __init__(self, lr: float) -> None:
        """Make it, the same on every rank."""
        super().__init__()
        torch.manual_seed(1)
        self.layer, self.lr = nn.Linear(INPUTS, OUTPUTS), lr

    def training_step(self, batch: list[torch.Tensor], number: int) -> torch.Tensor:
        """Return the loss of a batch."""
        loss = nn.functional.mse_loss(self.layer(batch[0]), batch[1])
        self.log("loss", loss, sync_dist=True)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return what changes the weights."""
        return torch.optim.SGD(self.parameters(), self.lr)


def samples(count: int = 1280) -> TensorDataset:
    """Return the same samples on every rank; Lightning gives each its part."""
    made = torch.Generator().manual_seed(0)
    inputs = torch.randn(count, INPUTS, generator=made)
    return TensorDataset(inputs, inputs @ torch.randn(INPUTS, OUTPUTS, generator=made))


def main() -> None:
    """Train from the beginning or the newest checkpoint."""
    parser = argparse.ArgumentParser(description="Train a linear layer with Lightning.")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=32, help="samples per rank")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    each_epoch = ModelCheckpoint(run.checkpoint_dir(), "step-{step:08}", save_top_k=-1,
                                 auto_insert_metric_name=False)  # fmt: skip
    trainer = pl.Trainer(
        devices=run.LOCAL_WORLD_SIZE,  # 2
        num_nodes=run.WORLD_SIZE // run.LOCAL_WORLD_SIZE,
        max_epochs=args.epochs,
        callbacks=[each_epoch, run.lightning_callback(log_every=1)],  # 3
        logger=False,
        enable_progress_bar=False,
    )
    data = DataLoader(samples(), args.batch_size, shuffle=True)
    trainer.fit(
        Learner(args.lr),
        data,
        ckpt_path=run.newest("step-*.ckpt") if args.resume else None,  # 4
    )
    run.finish()  # 5


if __name__ == "__main__":
    main()
