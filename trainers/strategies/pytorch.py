"""What the strategies with PyTorch's own optimizers share: all but where the weights are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from engine.reporting import UsageError
from saving import files as on_disk
from saving.saver import Write
from saving.staging import Staging, local
from strategies import blocks, optimizers, precision
from strategies.strategy import Setup, poisoned

if TYPE_CHECKING:
    from saving.sharded import Sharded

STATE = "state.pt"


class Single:
    """One rank with the whole model. A strategy of several ranks overrides what differs."""

    name = "single"
    saves = "whole"
    """How, when the arguments don't say: as one file, or as one of each rank (sharded)."""

    def __init__(self, setup: Setup) -> None:
        """Build the model, and take it to the device."""
        args, device = setup.args, setup.device
        self.optimizer_name, self.lr = str(args.optimizer), float(args.lr)
        self.micro_batch, self.accumulate = int(args.batch_size), int(args.accumulate)
        self._args, self._me, self._device = args, setup.me, device
        self.precision = str(args.precision)
        self._scale = precision.LossScale(args.precision, device)
        self.trials = precision.TRIALS if self._scale.moves else 0
        wanted = {"yes": True, "no": False, "auto": device.type == "cuda"}[args.channels_last]
        self._channels_last = wanted and setup.example.dim() == 4
        net = self.built(setup.build)
        blocks.prepare(net, args)
        self.module: nn.Module = self.placed(net)
        self._optimizer = optimizers.make(args, self.module.parameters())
        self._sharded: Sharded | None = None
        self._staging = Staging()
        self.prepared(setup.example)

    # ------------------------------------------------------------- what a strategy overrides

    def built(self, build: Callable[[], nn.Module]) -> nn.Module:
        """The model before it is placed, with its first weights."""
        return build()

    def placed(self, net: nn.Module) -> nn.Module:
        """The model with its weights where they are to be."""
        module = self.on_device(net)
        if self._args.compile:
            module.compile()
        return module

    def on_device(self, net: nn.Module) -> nn.Module:
        """The whole model there, in the order of memory that suits its input."""
        there = net.to(self._device)
        if self._channels_last:
            there.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return there

    def prepared(self, example: Tensor) -> None:
        """Make ready for the first step what takes an input to do so."""

    def model(self, inputs: Tensor) -> Tensor:
        """One forward pass."""
        outputs: Tensor = self.module(inputs)
        return outputs

    def exchange(self, last: bool) -> AbstractContextManager[None]:
        """The context of both passes, in which the ranks' gradients are averaged if `last`."""
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

    def communication(self) -> dict[str, float]:
        """What is known of the time on the wire; nothing where it isn't measured."""
        return {}

    # --------------------------------------------------------------------- what the loop asks

    def rate(self, done: float) -> float:
        """Warm up, then fall to 0 along a cosine, or stay, as the arguments say."""
        return optimizers.SCHEDULES[self._args.schedule](self.lr, done)

    def forward(self, inputs: Tensor, last: bool) -> Tensor:
        """The model's answer to a micro batch."""
        with self.exchange(last), precision.autocast(self._args.precision, self._device):
            return self.model(self.input(inputs)).float()

    def predict(self, inputs: Tensor) -> Tensor:
        """The same in a test: only fsdp's ranks need each other there."""
        with precision.autocast(self._args.precision, self._device):
            outputs: Tensor = self.module(self.input(inputs))
            return outputs.float()

    def input(self, inputs: Tensor) -> Tensor:
        """The input in the order of memory that the model has."""
        return (
            inputs.contiguous(memory_format=torch.channels_last) if self._channels_last else inputs
        )

    def backward(self, loss: Tensor, last: bool) -> None:
        """Add to the gradient; after the step's last micro batch it is averaged over the ranks."""
        with self.exchange(last):
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

    def stage(self, folder: Path, copy: bool) -> Write:
        """Take everything on rank 0, or each rank's part where checkpoints are in parts."""
        if (self._args.save or self.saves) == "sharded":
            return self._parts().stage(folder, self._loss_scale(), copy)
        tree: object = self.state() | self._loss_scale()
        if self._me.rank:
            return list
        whole = self._staging.copied(tree) if copy else tree

        def write() -> list[str]:
            torch.save(whole, folder / STATE)
            return [STATE]

        return write

    def load(self, folder: Path, saved_by: int) -> None:
        """Continue from it, with any number of ranks."""
        if (folder / on_disk.METADATA).is_file():
            scale = self._parts().load(folder, self._loss_scale())
        else:
            if not (folder / STATE).is_file():
                raise UsageError(
                    f"{folder} has no {STATE}: another trainer made it. Resume with that one, or "
                    "start in an empty run folder."
                )
            scale = on_disk.load(folder / STATE, self._device)
            self.take(scale)
        if self._scale.moves and "loss scale" in scale:
            self._scale.load(scale["loss scale"])

    def _loss_scale(self) -> on_disk.Tree:
        return {"loss scale": self._scale.state()} if self._scale.moves else {}

    def _parts(self) -> Sharded:
        from saving.sharded import Sharded  # takes a second, and not every training needs it

        if not self._sharded:
            self._sharded = Sharded(self._me, self.module, self._optimizer)
        return self._sharded
