"""Samples that are made up as they are read: they measure a training without its disk.

They can be learned, so that a falling loss shows that a model works. Each follows from its place
alone, the same on every rank and in every process.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from data.samples import DataSet, Samples, Shape

NAME = "synthetic"
"""What `--data` says instead of a folder; `synthetic:1000` makes 1000 training samples."""
COUNT = 65_536
"""Training samples, unless the name says how many."""
PICTURES = 64
"""Different pictures at most: what is kept in memory."""


def open_synthetic(shape: Shape, count: int = COUNT) -> DataSet:
    """Make data of this shape: `count` samples to learn from, and an eighth of that to test."""
    tests = max(1, count // 8)
    if shape.kind == "tokens":
        return DataSet(SyntheticTokens(shape, count, 0), SyntheticTokens(shape, tests, count))
    channels = shape.input[0]
    train: Samples = SyntheticImages(shape, count, 0)
    test: Samples = SyntheticImages(shape, tests, count)
    return DataSet(train, test, (0.5,) * channels, (0.25,) * channels)


@dataclass(frozen=True)
class Synthetic:
    """Samples of a shape, from that number on."""

    shape: Shape
    count: int
    start: int
    in_threads = True

    def __len__(self) -> int:
        """How many there are."""
        return self.count


@dataclass(frozen=True)
class SyntheticImages(Synthetic):
    """Each class has a picture of random pixels; each sample makes it a little lighter."""

    @cached_property
    def _pictures(self) -> Tensor:
        how_many = min(self.shape.classes, PICTURES)
        generator = torch.Generator().manual_seed(0)
        size = (how_many, *self.shape.input)
        return torch.randint(0, 224, size, dtype=torch.uint8, generator=generator)

    def read(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Make the samples at these places."""
        numbers = (places + self.start) * 2_654_435_761  # Knuth's: neighbours have other classes
        targets = (numbers >> 12) % self.shape.classes
        images = self._pictures[targets % len(self._pictures)]
        return images.add_((numbers >> 20 & 31).to(torch.uint8).view(-1, 1, 1, 1)), targets


@dataclass(frozen=True)
class SyntheticTokens(Synthetic):
    """Each sample counts up from some token, in steps that it keeps: the next one can be known."""

    def read(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Make the samples at these places; a target is the token after its input."""
        numbers = ((places + self.start) * 2_654_435_761).unsqueeze(1)
        steps = torch.arange(self.shape.input[0] + 1).unsqueeze(0) * (1 + (numbers >> 12) % 5)
        text = ((numbers >> 16) + steps) % self.shape.classes
        return text[:, :-1].contiguous(), text[:, 1:].contiguous()
