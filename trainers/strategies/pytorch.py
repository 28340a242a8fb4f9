"""What the strategies with PyTorch's own optimizers share: all but where the weights are."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
from torch import Tensor, nn

from engine import precision, schedule
from engine.ranks import Ranks
from saving import files as on_disk
from strategies import optimizers
from strategies.optimizers import local
from strategies.strategy import poisoned

STATE = "state.pt"


class Single:
    """One rank with the whole model. A strategy of several ranks overrides what differs."""

    name = "single"
    resumes_at_other_size = True

    def __init__(
        self,
        args: argparse.Namespace,
        me: Ranks,
        device: torch.device,
        net: nn.Module,
        example: Tensor,
    ) -> None:
        """Take the model to the device; `example` is two of its inputs there."""
        self.optimizer_name, self.lr = str(args.optimizer), float(args.lr)
        self.micro_batch, self.accumulate = int(args.batch_size), int(args.accumulate)
        self._args, self._me, self._device = args, me, device
        self._scale = precision.LossScale(args.precision, device)
        self.module: nn.Module = self.placed(net)
        self._optimizer = optimizers.make(args, self.module.parameters())
        self.prepared(example)

    # ------------------------------------------------------------- what a strategy overrides

    def placed(self, net: nn.Module) -> nn.Module:
        """The model with its weights where they are to be."""
        return net.to(self._device)

    def prepared(self, example: Tensor) -> None:
        """Make ready for the first step what takes an input to do so."""

    def model(self, inputs: Tensor) -> Tensor:
        """One forward pass."""
        outputs: Tensor = self.module(inputs)
        return outputs

    def averaging(self, last: bool) -> AbstractContextManager[None]:
        """The context of a backward pass, in which the ranks' gradients are averaged if `last`."""
        return nullcontext()

    def over_ranks(self, squares: Tensor) -> Tensor:
        """The sum of squares of all gradients, from that of this rank's."""
        return squares

    def state(self) -> on_disk.Tree:
        """All of model and optimizer, on rank 0 at least."""
        return {"model": self.module.state_dict(), "optimizer": self._optimizer.state_dict()}

    def take(self, tree: on_disk.Tree) -> None:
        """Continue from what `state` gave, on any number of ranks."""
        self.module.load_state_dict(tree["model"])
        optimizers.load(self._optimizer, tree["optimizer"])

    # --------------------------------------------------------------------- what the loop asks

    def rate(self, done: float) -> float:
        """Warm up, then fall to 0 along a cosine, or stay, as the arguments say."""
        return schedule.SCHEDULES[self._args.schedule](self.lr, done)

    def forward(self, inputs: Tensor) -> Tensor:
        """The model's answer to a micro batch."""
        with precision.autocast(self._args.precision, self._device):
            return self.model(inputs).float()

    def backward(self, loss: Tensor, last: bool) -> None:
        """Add to the gradient; after the step's last micro batch it is averaged over the ranks."""
        with self.averaging(last):
            scaled = poisoned(loss) / self.accumulate * self._scale.scale
            scaled.backward()  # type: ignore[no-untyped-call]

    def step(self, lr: float) -> Tensor:
        """Change the weights, unless the gradient is not finite; return the gradient's length."""
        for group in self._optimizer.param_groups:
            group["lr"] = lr
        grads = list(self._gradients())
        squares = torch.stack(torch._foreach_norm(grads)).double().square().sum()
        norm = (self.over_ranks(squares).sqrt() / self._scale.scale).float()
        factor = 1 / self._scale.scale if self._scale.moves else None
        if self._args.clip:
            clipped = (self._args.clip / (norm + 1e-6)).clamp(max=1.0)
            factor = clipped if factor is None else factor * clipped
        if factor is not None:
            torch._foreach_mul_(grads, factor)
        finite = torch.isfinite(norm)
        optimizers.step(self._optimizer, finite)
        self._scale.update(finite)
        self._optimizer.zero_grad()
        return norm

    def _gradients(self) -> Iterator[Tensor]:
        """This rank's part of each."""
        for weight in self.module.parameters():
            if weight.grad is not None:
                yield local(weight.grad)

    def save(self, folder: Path) -> list[str]:
        """Write everything on rank 0."""
        tree = self.state()
        if self._me.rank:
            return []
        if self._scale.moves:
            tree["loss scale"] = self._scale.state()
        torch.save(tree, folder / STATE)
        return [STATE]

    def load(self, folder: Path) -> None:
        """Continue from it, with any number of ranks."""
        tree = on_disk.load(folder / STATE, self._device)
        self.take(tree)
        if self._scale.moves and "loss scale" in tree:
            self._scale.load(tree["loss scale"])
