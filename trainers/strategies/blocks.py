"""The repeated blocks of a model: what a strategy does with each of them."""

from __future__ import annotations

import argparse
from functools import partial

from torch import nn
from torch.utils.checkpoint import checkpoint

from engine.reporting import UsageError
from models.table import MODELS


def blocks(net: nn.Module, model: str) -> list[nn.Module]:
    """The blocks of a network that is this row of MODELS, in their order."""
    names = MODELS[model].blocks
    return [part for part in net.modules() if type(part).__name__ in names]


def prepare(net: nn.Module, args: argparse.Namespace) -> None:
    """Let the blocks compute again in the backward pass what they would keep for it, if asked to.

    Raises:
        UsageError: the model has no blocks.
    """
    if not args.recompute:
        return
    found = blocks(net, args.model)
    if not found:
        raise UsageError(
            f"The model {args.model} has no blocks that could be computed again. "
            "Leave --recompute out, or make --batch-size smaller."
        )
    for block in found:
        # The names of the weights stay, so that a checkpoint fits with and without it.
        block.forward = partial(checkpoint, block.forward, use_reentrant=False)
