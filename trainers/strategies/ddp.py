"""PyTorch's DistributedDataParallel: each rank has the whole model, gradients are averaged."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from engine.throughput import clock
from strategies import precision
from strategies.pytorch import Single


class Ddp(Single):
    """A model that is the same on every rank."""

    name = "ddp"

    def placed(self, net: nn.Module) -> nn.Module:
        """Wrap it; tests and checkpoints get the model itself."""
        module = self.on_device(net)
        on_gpu = [self._device] if self._device.type == "cuda" else None
        self._wrapped = DistributedDataParallel(
            module, device_ids=on_gpu, gradient_as_bucket_view=True
        )
        if self._args.compile:  # as a whole: it is cut where gradients can be sent
            self._wrapped.compile()
        return module

    def model(self, inputs: Tensor) -> Tensor:
        """One forward pass."""
        outputs: Tensor = self._wrapped(inputs)
        return outputs

    def exchange(self, last: bool) -> AbstractContextManager[None]:
        """Ranks meet in the last backward pass of a step only.

        DDP decides in the forward pass whether the backward pass after it sends gradients: around
        the backward pass alone, no_sync() changes nothing (4 times the bytes with 4 micro batches).
        """
        return nullcontext() if last else self._wrapped.no_sync()

    def communication(self) -> dict[str, float]:
        """As DDP has measured it."""
        return clock.communication(self._wrapped) if self._me.world_size > 1 else {}

    def prepared(self, example: Tensor) -> None:
        """Let DDP sort its buckets by one backward pass, and forget what it computed.

        DDP orders them anew after the first one, so that the sums of the steps after it are rounded
        in another order: without this, a training of 4 ranks that was resumed differed by 6e-8.
        """
        # As many samples as in a step: another number would be compiled a second time.
        batch = example[torch.arange(self.micro_batch, device=example.device) % len(example)]
        buffers = [buffer.clone() for buffer in self.module.buffers()]
        with precision.autocast(self._args.precision, self._device):
            answer = self.model(self.input(batch))
        answer.float().sum().backward()  # type: ignore[no-untyped-call]
        self._optimizer.zero_grad()
        with torch.no_grad():
            for buffer, before in zip(self.module.buffers(), buffers, strict=True):
                buffer.copy_(before)  # running means of batch norm
