"""PyTorch's DistributedDataParallel: each rank has the whole model, gradients are averaged."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from engine import schedule
from engine.ranks import Ranks
from saving import files as on_disk
from strategies.strategy import poisoned

STATE = "state.pt"


class Ddp:
    """A model that is the same on every rank, and its optimizer."""

    name = "ddp"
    resumes_at_other_size = True

    def __init__(
        self,
        args: argparse.Namespace,
        me: Ranks,
        device: torch.device,
        net: nn.Module,
        example: Tensor,
    ) -> None:
        """Take the model to the device; `example` is two of its inputs."""
        self.optimizer_name, self.lr = str(args.optimizer), float(args.lr)
        self.micro_batch, self.accumulate = int(args.batch_size), 1
        self._me, self._device = me, device
        self.module: nn.Module = net.to(device)
        on_gpu = [device] if device.type == "cuda" else None
        self._model = DistributedDataParallel(self.module, device_ids=on_gpu)
        self._optimizer = make_optimizer(args, self.module)
        warm_up(self._model, example)

    def rate(self, done: float) -> float:
        """Warm up, then fall to 0 along a cosine."""
        return schedule.learning_rate(self.lr, done)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits of a micro batch."""
        logits: Tensor = self._model(inputs)
        return logits

    def backward(self, loss: Tensor, last: bool) -> None:
        """Add to the gradient; after the step's last micro batch it is averaged over the ranks."""
        with nullcontext() if last else self._model.no_sync():
            (poisoned(loss) / self.accumulate).backward()  # type: ignore[no-untyped-call]

    def step(self, lr: float) -> Tensor:
        """Change the weights, unless the gradient is not finite; return the gradient's length."""
        for group in self._optimizer.param_groups:
            group["lr"] = lr
        norm = gradient_norm(self.module)
        if bool(torch.isfinite(norm)):
            self._optimizer.step()
        self._optimizer.zero_grad()
        return norm

    def save(self, folder: Path) -> list[str]:
        """Write everything on rank 0."""
        if self._me.rank:
            return []
        parts = {"model": self.module.state_dict(), "optimizer": self._optimizer.state_dict()}
        torch.save(parts, folder / STATE)
        return [STATE]

    def load(self, folder: Path) -> None:
        """Continue from it, with any number of ranks."""
        tree = on_disk.load(folder / STATE, self._device)
        self.module.load_state_dict(tree["model"])
        self._optimizer.load_state_dict(tree["optimizer"])


def make_optimizer(args: argparse.Namespace, model: nn.Module) -> torch.optim.Optimizer:
    """The optimizer that the arguments name."""
    if args.optimizer == "adam":
        return torch.optim.Adam(model.parameters(), args.lr)
    return torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)


def gradient_norm(model: nn.Module) -> Tensor:
    """The length of the gradient of all weights together."""
    norms = [weight.grad.norm() for weight in model.parameters() if weight.grad is not None]
    norm: Tensor = torch.stack(norms).norm()
    return norm


def warm_up(model: DistributedDataParallel, example: Tensor) -> None:
    """Let DDP sort its buckets by one backward pass, and forget what it computed.

    DDP orders them anew after the first one, so that the sums of the steps after it are rounded
    in another order: without this, a training of 4 ranks that was resumed differed by 6e-8.
    """
    buffers = [buffer.clone() for buffer in model.buffers()]
    model(example).sum().backward()
    model.zero_grad(set_to_none=True)
    with torch.no_grad():
        for buffer, before in zip(model.buffers(), buffers, strict=True):
            buffer.copy_(before)  # running means of batch norm
