"""The words of a vocabulary as vectors, and back."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


class TiedEmbedding(nn.Embedding):
    """One matrix that turns words into vectors and, transposed, vectors into logits.

    Both ways are a forward pass of this one module: fsdp and ZeRO gather its weight for it, and
    a checkpoint has it once (two layers that share a weight lose that when they leave "meta").
    """

    def forward(self, x: Tensor) -> Tensor:
        """Map words int64 (batch, length) to vectors, or vectors (batch, length, dim) to logits."""
        if x.is_floating_point():
            return functional.linear(x, self.weight)
        return super().forward(x)
