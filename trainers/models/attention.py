"""Common parts of the transformers: self-attention and token embeddings."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class SelfAttention(nn.Module):
    """Multi-head self-attention, with one matrix for queries, keys and values."""

    def __init__(self, dim: int, heads: int, *, causal: bool = False) -> None:
        """Build it; `dim` must be a multiple of `heads`.

        With `causal`, a position attends only to itself and earlier positions.
        """
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, length, dim) to the same shape."""
        # (batch, length, 3 * dim) -> three of (batch, heads, length, width of a head)
        queries, keys, values = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        # PyTorch's fused kernel: flash attention where available.
        attended = functional.scaled_dot_product_attention(
            queries, keys, values, is_causal=self.causal
        )
        mixed: Tensor = self.proj(merge_heads(attended))
        return mixed


def merge_heads(x: Tensor) -> Tensor:
    """Merge the heads of (batch, heads, length, width) into (batch, length, dim)."""
    return x.transpose(1, 2).flatten(2)


@torch.no_grad()
def fill_normal(layer: nn.Linear | nn.Embedding, deviation: float) -> None:
    """Draw a layer's weights from a normal distribution with mean 0, and set its bias to 0."""
    nn.init.normal_(layer.weight, std=deviation)
    if isinstance(layer, nn.Linear) and layer.bias is not None:
        nn.init.zeros_(layer.bias)


WORDS_OF_A_ROW = 64
"""A multiple that suits all kernels."""


def logits(x: Tensor, weight: Tensor, multiple: int) -> Tensor:
    """Map vectors to logits, with the number of rows in the product rounded up to a multiple."""
    words = len(weight)
    padded = functional.pad(weight, (0, 0, 0, -words % multiple)) if words % multiple else weight
    return functional.linear(x, padded)[..., :words]


class TiedEmbedding(nn.Embedding):
    """One matrix that maps tokens to vectors and, transposed, vectors to logits.

    Both directions are a forward pass of this module, so that fsdp and ZeRO gather its weight, and
    a checkpoint contains it once (two layers that share a weight no longer do when they leave
    "meta").
    """

    def forward(self, x: Tensor) -> Tensor:
        """Map tokens (batch, length) to vectors, or vectors (batch, length, dim) to logits."""
        if not x.is_floating_point():
            return super().forward(x)
        # A matrix product on a GPU uses a slow kernel if a row's length is not a multiple of 16
        # bytes, as with the 50,257 tokens of GPT-2. The weight itself is not padded.
        return logits(x, self.weight, WORDS_OF_A_ROW if x.is_cuda else 1)


def loss_in_parts(head: nn.Module, x: Tensor, targets: Tensor, parts: int) -> Tensor:
    """Return the mean next-token loss, computed for a part of the positions at a time.

    A part's logits are recomputed in the backward pass instead of kept: those of 16 x 1024
    positions and 50,257 tokens take 3.3 GB in float32, and so does their gradient.
    """

    def summed(vectors: Tensor, words: Tensor) -> Tensor:
        return functional.cross_entropy(head(vectors).float(), words, reduction="sum")

    places = zip(x.flatten(0, 1).chunk(parts), targets.flatten().chunk(parts), strict=True)
    losses = [checkpoint(summed, *part, use_reentrant=False) for part in places]
    return torch.stack(losses).sum() / targets.numel()
