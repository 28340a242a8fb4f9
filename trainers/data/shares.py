"""Which images each rank takes in each step, the same whatever the number of ranks."""

from __future__ import annotations

import torch
from torch import Tensor


def seed_of(number: int) -> int:
    """A number of any size as a seed for torch, which says Overflow beyond 64 bits."""
    return number % 2**63


def epoch_order(count: int, seed: int, epoch: int) -> Tensor:
    """The order in which one epoch visits the images: the same on every rank."""
    generator = torch.Generator().manual_seed(seed_of(seed * 100_003 + epoch))
    return torch.randperm(count, generator=generator)


def share(order: Tensor, start: int, global_batch: int, rank: int, world_size: int) -> Tensor:
    """One rank's images of the global batch that starts at `start`.

    All ranks' shares together are order[start : start + global_batch] for every world size, so
    that a training can continue with another number of ranks and see the same images.
    """
    return order[start : start + global_batch][rank::world_size]
