"""What every kind of data offers: samples that are read by their places."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from io import FileIO
from pathlib import Path
from threading import Lock
from typing import Protocol

import torch
from torch import Tensor

from data.views import View
from engine.exits import UsageError


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
    """Samples of one shape. Reading changes nothing, so several threads may do it."""

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


MOST_OPEN = 256
"""Files that are open at a time; a process may have 1024."""


class OpenFiles:
    """Reads parts of many files by their numbers.

    With pread, not with a memory map: a file that was cut short, or a disk that fails, is an error
    with the file's name, where a map kills the process. On cached files both are as fast, and a
    parallel file system gets one request a sample instead of one a page.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        """Know the files; each is opened when it is read first."""
        self.paths = list(paths)
        self._open: dict[int, FileIO] = {}
        self._opening = Lock()

    def read_into(self, number: int, offset: int, into: memoryview) -> None:
        """Fill `into` from this offset on.

        Raises:
            BadData: the file can't be read, or ends before.
        """
        path = self.paths[number]
        try:
            file = self._file(number)
            while into:
                got = os.preadv(file.fileno(), [into], offset)
                if not got:
                    raise BadData(f"{path} is cut short: it ends at byte {offset}. Copy it again.")
                into, offset = into[got:], offset + got
        except OSError as error:
            raise BadData(
                f"{path} can't be read ({error.strerror}). Copy it again, or pack it again."
            ) from error

    def read(self, number: int, offset: int, length: int) -> bytearray:
        """Read that many bytes from this offset on.

        Raises:
            BadData: the file can't be read, or ends before.
        """
        found = bytearray(length)
        self.read_into(number, offset, memoryview(found))
        return found

    def size(self, number: int) -> int:
        """How many bytes a file has.

        Raises:
            BadData: there is no such file.
        """
        try:
            return self.paths[number].stat().st_size
        except OSError as error:
            raise BadData(
                f"{self.paths[number]} can't be read ({error.strerror}). Copy it again."
            ) from error

    def _file(self, number: int) -> FileIO:
        # A file's position is never used, so threads may share it. One that another thread still
        # reads is closed when that has its bytes: it holds on to the file.
        with self._opening:
            if number not in self._open:
                if len(self._open) >= MOST_OPEN:
                    del self._open[next(iter(self._open))]
                self._open[number] = FileIO(self.paths[number])
            return self._open[number]


SYNTHETIC = "synthetic"
"""What `--data` says instead of a folder; `synthetic:1000` makes 1000 training samples."""
SYNTHETIC_COUNT = 65_536
"""Training samples, unless the name says how many."""
PICTURES = 64
"""Different pictures at most: what is kept in memory."""


def made_up(shape: Shape, count: int) -> DataSet:
    """Make data of this shape: `count` samples to learn from, and an eighth of that to test."""
    tests = max(1, count // 8)
    train: Samples = Synthetic(shape, count, 0)
    test: Samples = Synthetic(shape, tests, count)
    channels = shape.input[0] if shape.kind == "images" else 0
    return DataSet(train, test, (0.5,) * channels, (0.25,) * channels)


@dataclass(frozen=True)
class Synthetic:
    """Samples of a shape, from that number on.

    Each class of images has a picture of random pixels, and each sample makes it a little lighter.
    A text counts up from some token, in steps that it keeps: the next one can be known.
    """

    shape: Shape
    count: int
    start: int

    def __len__(self) -> int:
        """How many there are."""
        return self.count

    @cached_property
    def _pictures(self) -> Tensor:
        how_many = min(self.shape.classes, PICTURES)
        generator = torch.Generator().manual_seed(0)
        size = (how_many, *self.shape.input)
        return torch.randint(0, 224, size, dtype=torch.uint8, generator=generator)

    def read(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Make the samples at these places; a text's target is the token after its input."""
        numbers = (places + self.start) * 2_654_435_761  # Knuth's: neighbours have other classes
        if self.shape.kind == "tokens":
            numbers = numbers.unsqueeze(1)
            steps = torch.arange(self.shape.input[0] + 1).unsqueeze(0) * (1 + (numbers >> 12) % 5)
            text = ((numbers >> 16) + steps) % self.shape.classes
            return text[:, :-1].contiguous(), text[:, 1:].contiguous()
        targets = (numbers >> 12) % self.shape.classes
        images = self._pictures[targets % len(self._pictures)]
        return images.add_((numbers >> 20 & 31).to(torch.uint8).view(-1, 1, 1, 1)), targets
