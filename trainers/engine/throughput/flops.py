"""How many floating-point operations a sample costs.

Counted are the matrix products, as is usual for MFU (Chowdhery et al. 2022, arXiv:2204.02311,
appendix B): a multiplication and an addition are two operations, and causal attention counts
whole. Norms, activations and what a checkpoint of activations computes again are not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from models.attention import Attention, TiedEmbedding
from models.table import Shape, build

TRAINING = 3
"""A step costs a forward pass and, for two gradients each product, a backward pass of twice it."""


def flops(model: str, shape: Shape) -> int:
    """Operations of one sample's forward pass through a model of the table.

    A copy of it without memory (torch.device("meta")) runs once, with a hook on each module that
    has a rule in RULES. That is 1 s for the largest, and the same whatever the strategy, the
    precision and the device are.
    """
    total = 0

    def count(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        nonlocal total
        rule = next(RULES[kind] for kind in type(module).__mro__ if kind in RULES)
        total += rule(module, inputs, output)

    # The random numbers of the training must not depend on whether this was called.
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        net = build(model, shape, 0).eval()
        for module in net.modules():
            if isinstance(module, tuple(RULES)):
                module.register_forward_hook(count)
        kind = torch.float32 if shape.kind == "images" else torch.int64
        net(torch.zeros((1, *shape.input), dtype=kind))
    return total


def _linear(layer: nn.Linear, inputs: tuple[Tensor, ...], output: Tensor) -> int:
    return 2 * output.numel() * layer.in_features


def _convolution(layer: nn.Conv2d, inputs: tuple[Tensor, ...], output: Tensor) -> int:
    return 2 * output.numel() * layer.weight[0].numel()


def _attention(layer: Attention, inputs: tuple[Tensor, ...], output: Tensor) -> int:
    queries, keys, _ = inputs
    return 2 * 2 * queries.numel() * keys.shape[-2]  # QK', and its product with V


def _whole_attention(layer: nn.MultiheadAttention, inputs: tuple[Tensor, ...], output: Any) -> int:
    """PyTorch's own attention layer calls no module for its parts; the batch comes first."""
    queries, keys, values = inputs
    dim: int = layer.embed_dim
    projected = 2 * dim * (2 * queries.numel() + keys.numel() + values.numel())
    return projected + 2 * 2 * queries.numel() * keys.shape[-2]


def _tied(layer: TiedEmbedding, inputs: tuple[Tensor, ...], output: Tensor) -> int:
    """Looking a word up costs nothing, its logits do."""
    return 2 * output.numel() * layer.embedding_dim if inputs[0].is_floating_point() else 0


RULES: dict[type[nn.Module], Callable[[Any, tuple[Any, ...], Any], int]] = {
    nn.Linear: _linear,
    nn.Conv2d: _convolution,
    Attention: _attention,
    nn.MultiheadAttention: _whole_attention,
    TiedEmbedding: _tied,
}
"""What one call of a module costs, by its class. A new kind of layer needs a row."""
