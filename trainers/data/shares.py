"""Which samples each rank takes in each step, the same whatever the number of ranks.

A training's place in an epoch is a number of samples. The order of an epoch follows from its seed
alone, and the samples of a global batch are the next ones in that order, so any number of ranks
and of workers finds the next sample without any further state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


def seed_of(number: int) -> int:
    """A number of any size as a seed for torch, which says Overflow beyond 64 bits."""
    return number % 2**63


def epoch_seed(seed: int, epoch: int) -> int:
    """The seed of everything that is random in one epoch of a training with `seed`."""
    return seed_of(seed * 100_003 + epoch)


def epoch_order(count: int, seed: int, epoch: int) -> Tensor:
    """The order in which one epoch visits the samples: the same on every rank."""
    generator = torch.Generator().manual_seed(epoch_seed(seed, epoch))
    return torch.randperm(count, generator=generator)


def share(order: Tensor, start: int, global_batch: int, rank: int, world_size: int) -> Tensor:
    """One rank's samples of the global batch that starts at `start`.

    All ranks' shares together are order[start : start + global_batch] for every world size, so
    that a training can continue with another number of ranks and see the same samples.
    """
    return order[start : start + global_batch][rank::world_size]


class Shares(Protocol):
    """One rank's micro batches, as places in the data; every rank has as many."""

    def __len__(self) -> int:
        """How many micro batches there are."""

    def __getitem__(self, number: int) -> Tensor:
        """The places of one micro batch."""


@dataclass(frozen=True)
class TrainingShares:
    """The micro batches of what is left of an epoch; what fills no global batch is dropped.

    A step takes the next `accumulate` of them. A global batch is batch x accumulate x world_size.
    """

    order: Tensor
    """The epoch's (see epoch_order)."""
    start: int
    """Samples of the epoch that are used already."""
    batch: int
    """Samples that a rank takes at once."""
    accumulate: int
    rank: int
    world_size: int

    @property
    def global_batch(self) -> int:
        """Samples a step, over all ranks."""
        return self.batch * self.accumulate * self.world_size

    def __len__(self) -> int:
        """How many micro batches this rank takes."""
        return max(0, len(self.order) - self.start) // self.global_batch * self.accumulate

    def __getitem__(self, number: int) -> Tensor:
        """The places of one micro batch."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        part = self.batch * self.world_size
        return share(self.order, self.start + number * part, part, self.rank, self.world_size)


@dataclass(frozen=True)
class TestingShares:
    """The batches of a test, which leaves out nothing.

    Every rank has as many, the last perhaps smaller or empty: ZeRO stage 3 gathers weights in each.
    """

    count: int
    batch: int
    rank: int
    world_size: int

    def __len__(self) -> int:
        """How many batches each rank takes."""
        return -(-self.count // (self.batch * self.world_size))

    def __getitem__(self, number: int) -> Tensor:
        """The places of one batch."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        part = self.batch * self.world_size
        everything = torch.arange(number * part, min(self.count, (number + 1) * part))
        return everything[self.rank :: self.world_size]
