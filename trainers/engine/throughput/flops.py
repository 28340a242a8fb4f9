"""How many floating-point operations a sample costs, as PyTorch counts them.

Counted are the matrix products, as is usual for MFU (Chowdhery et al. 2022, arXiv:2204.02311,
appendix B): a multiplication and an addition are two operations, and causal attention counts
whole. Norms, activations and what a checkpoint of activations computes again are not counted.
"""

from __future__ import annotations

import torch
from torch.utils.flop_counter import FlopCounterMode

from data.samples import Shape
from models.table import build

TRAINING = 3
"""A step costs a forward pass and, for two gradients each product, a backward pass of twice it."""


def flops(model: str, shape: Shape) -> int:
    """Operations of one sample's forward pass through a model of the table.

    A copy of it without memory (torch.device("meta")) runs once: the result is the same whatever
    the strategy, the precision and the device are.
    """
    counter = FlopCounterMode(display=False)
    kind = torch.float32 if shape.kind == "images" else torch.int64
    # The random numbers of the training must not depend on whether this was called.
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        net = build(model, shape, 0).eval()
        with counter:
            net(torch.zeros((1, *shape.input), dtype=kind))
    return counter.get_total_flops()
