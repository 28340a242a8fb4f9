"""The precision of the arithmetic: fp32, or autocast to bf16 or fp16.

Weights, gradients' sums and the optimizer's state stay float32; the matrix products get smaller
numbers. bf16 has float32's range. fp16 has not: small gradients become 0, so that the loss is
multiplied by a scale, which is found by trying.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

PRECISIONS: dict[str, torch.dtype | None] = {
    "fp32": None,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}
FIRST_SCALE = 2.0**16
TRIALS = 16
"""Steps that fp16 may skip in a row, more than another precision, until its scale has become 1."""
GROWS_AFTER = 2000
"""Steps. These are the values of torch.amp.GradScaler."""


def autocast(precision: str, device: torch.device) -> AbstractContextManager[None]:
    """The context of a forward pass."""
    dtype = PRECISIONS[precision]
    return torch.autocast(device.type, dtype) if dtype else nullcontext()


class LossScale:
    """fp16's scale, kept on the device: to see that a gradient overflowed, nobody waits for it.

    torch.amp.GradScaler does the same with another pass over the gradients, and asks the GPU.
    """

    def __init__(self, precision: str, device: torch.device) -> None:
        """Begin with the first scale; other precisions than fp16 have 1 and keep it."""
        self.moves = precision == "fp16"
        self.scale = torch.full((), FIRST_SCALE if self.moves else 1.0, device=device)
        self._good = torch.zeros((), device=device)

    def update(self, finite: Tensor) -> None:
        """Halve it after a step that was skipped, double it after enough good ones."""
        if not self.moves:
            return
        good = (self._good + 1) * finite
        grows = good >= GROWS_AFTER
        self._good = torch.where(grows, 0, good)
        self.scale = torch.where(finite, self.scale * (1 + grows.float()), self.scale / 2)

    def state(self) -> dict[str, object]:
        """What a checkpoint keeps."""
        return {"scale": float(self.scale), "good": float(self._good)}

    def load(self, state: dict[str, object]) -> None:
        """Take it back."""
        self.scale.fill_(float(str(state["scale"])))
        self._good.fill_(float(str(state["good"])))
