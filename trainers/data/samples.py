"""What every kind of data offers: samples that are read by their places."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from data.views import View
from engine.reporting import UsageError


@dataclass(frozen=True)
class Shape:
    """What one sample of the data is like."""

    kind: str
    """"images" or "tokens"."""
    input: tuple[int, ...]
    """(channels, height, width) of an image, or (length,) of a text."""
    classes: int
    """How many classes there are, or how many words the vocabulary has."""


class BadData(UsageError):
    """Data that can't be read: says which file, and what to do."""

    by_every_rank = True  # one rank may meet it alone, in the middle of an epoch


class Samples(Protocol):
    """Samples of one shape. Reading changes nothing, so worker processes may do it."""

    @property
    def in_threads(self) -> bool:
        """Whether reading is waiting and copying, so that threads do it at once.

        What is decoded needs processes, which take a core for handing over 3,000 photos a second.
        """

    @property
    def shape(self) -> Shape:
        """What one sample is like."""

    def __len__(self) -> int:
        """How many there are."""

    def read(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Read the samples at these places (int64, each from 0 to the length - 1).

        Returns:
            Inputs, as uint8 (count, channels, height, width) or int64 (count, length); and
            targets, as int64 (count) or (count, length).

        Raises:
            BadData: a file is damaged or gone.
        """


@dataclass(frozen=True)
class InMemory:
    """Samples that are small enough to be tensors."""

    shape: Shape
    inputs: Tensor
    targets: Tensor
    in_threads = True

    def __len__(self) -> int:
        """How many there are."""
        return len(self.targets)

    def read(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Read the samples at these places."""
        return self.inputs[places], self.targets[places]


@dataclass(frozen=True)
class Range:
    """The samples from `start` to before `end` of others."""

    whole: Samples
    start: int
    end: int

    @property
    def in_threads(self) -> bool:
        """Whether threads read them at once."""
        return self.whole.in_threads

    @property
    def shape(self) -> Shape:
        """What one sample is like."""
        return self.whole.shape

    def __len__(self) -> int:
        """How many there are."""
        return self.end - self.start

    def read(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Read the samples at these places."""
        return self.whole.read(places + self.start)


def first(samples: Samples, limit: int | None) -> Samples:
    """At most that many of them."""
    return samples if limit is None or limit >= len(samples) else Range(samples, 0, limit)


@dataclass(frozen=True)
class DataSet:
    """What a training reads: samples to learn from, and others to be tested on."""

    train: Samples
    test: Samples
    mean: tuple[float, ...] = ()
    """Of each channel of the training images, on a scale of 0 to 1; empty for tokens."""
    deviation: tuple[float, ...] = ()
    side: int | None = None
    """Photos are cropped to side x side pixels on their way to the model."""

    @property
    def shape(self) -> Shape:
        """What one sample is like when it reaches the model."""
        stored = self.train.shape
        if self.side is None:
            return stored
        return replace(stored, input=(stored.input[0], self.side, self.side))

    def view(self, dtype: torch.dtype = torch.float32, seed: int | None = None) -> View:
        """How the model gets them: with a seed at random, as for training, else as for a test."""
        return View(self.mean, self.deviation, dtype, self.side, seed)
