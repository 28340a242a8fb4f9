"""The interface of all data: samples read by position, and a view of them.

A view turns a whole batch of stored images into model input, on the model's device. Random crops
depend only on a seed and the sample's position in the data, so they are the same for any split into
ranks and batches, and after a resume.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from io import FileIO
from pathlib import Path
from threading import Lock
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from engine.exits import UsageError


@dataclass(frozen=True)
class Shape:
    """The shape of one sample of the data."""

    kind: str
    """"images" or "tokens"."""
    input: tuple[int, ...]
    """(channels, height, width) of an image, or (length,) of a text."""
    classes: int
    """The number of classes, or of words in the vocabulary."""


class BadData(UsageError):
    """Unreadable data: the message names the file and the fix."""

    by_every_rank = True  # a single rank may raise it in the middle of an epoch


class Samples(Protocol):
    """Samples of one shape. Thread-safe: reading changes no state."""

    @property
    def shape(self) -> Shape:
        """The shape of one sample."""

    def __len__(self) -> int:
        """Return the number of samples."""

    def read(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Read the samples at these positions (int64, from 0 to the length - 1).

        Returns:
            Inputs, as uint8 (count, channels, height, width) or int64 (count, length); and
            targets, as int64 (count) or (count, length).

        Raises:
            BadData: a file is damaged or missing.
        """


@dataclass(frozen=True)
class InMemory:
    """Samples small enough to be kept as tensors."""

    shape: Shape
    inputs: Tensor
    targets: Tensor

    def __len__(self) -> int:
        return len(self.targets)

    def read(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Read the samples at these positions."""
        return self.inputs[places], self.targets[places]


@dataclass(frozen=True)
class Range:
    """The part of other samples from `start` up to, but not including, `end`."""

    whole: Samples
    start: int
    end: int

    @property
    def shape(self) -> Shape:
        """The shape of one sample."""
        return self.whole.shape

    def __len__(self) -> int:
        return self.end - self.start

    def read(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Read the samples at these positions."""
        return self.whole.read(places + self.start)


def first(samples: Samples, limit: int | None) -> Samples:
    """At most that many of them."""
    return samples if limit is None or limit >= len(samples) else Range(samples, 0, limit)


@dataclass(frozen=True)
class DataSet:
    """The data of a training run: training samples and test samples."""

    train: Samples
    test: Samples
    mean: tuple[float, ...] = ()
    """Mean and deviation per channel of the training images, scaled to 0 to 1; empty for tokens."""
    deviation: tuple[float, ...] = ()
    side: int | None = None
    """Photos are cropped to side x side pixels for the model."""

    @property
    def shape(self) -> Shape:
        """The shape of one sample at the model's input."""
        stored = self.train.shape
        if self.side is None:
            return stored
        return replace(stored, input=(stored.input[0], self.side, self.side))

    def view(self, dtype: torch.dtype = torch.float32, seed: int | None = None) -> View:
        """Return the model's view: random with a seed, for training; else for evaluation."""
        return View(self.mean, self.deviation, dtype, self.side, seed)


MOST_OPEN = 256
"""Maximum number of open files; a process may have 1024."""


class OpenFiles:
    """Reads parts of many files by their numbers.

    Uses pread instead of a memory map: a truncated file or a failing disk causes an error with the
    file's name, where a map would kill the process. On cached files both are equally fast, and a
    parallel file system gets one request per sample instead of one per page.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        """Use the files; each is opened on its first read."""
        self.paths = list(paths)
        self._open: dict[int, FileIO] = {}
        self._opening = Lock()

    def read_into(self, number: int, offset: int, into: memoryview) -> None:
        """Fill `into` from the file at this offset; BadData if it is unreadable or too short."""
        path = self.paths[number]
        try:
            file = self._file(number)
            while into:
                got = os.preadv(file.fileno(), [into], offset)
                if not got:
                    raise BadData(f"{path} is truncated: it ends at byte {offset}. Copy it again.")
                into, offset = into[got:], offset + got
        except OSError as error:
            raise BadData(
                f"{path} can't be read ({error.strerror}). Copy it again, or pack it again."
            ) from error

    def read(self, number: int, offset: int, length: int) -> bytearray:
        """Read `length` bytes at this offset; BadData if the file is unreadable or too short."""
        found = bytearray(length)
        self.read_into(number, offset, memoryview(found))
        return found

    def size(self, number: int) -> int:
        """Return the size of a file in bytes; BadData if it does not exist."""
        try:
            return self.paths[number].stat().st_size
        except OSError as error:
            raise BadData(
                f"{self.paths[number]} can't be read ({error.strerror}). Copy it again."
            ) from error

    def _file(self, number: int) -> FileIO:
        # File positions are never used, so threads may share a file. A file that another thread is
        # reading is closed only after that read, because the thread keeps a reference.
        with self._opening:
            if number not in self._open:
                if len(self._open) >= MOST_OPEN:
                    del self._open[next(iter(self._open))]
                self._open[number] = FileIO(self.paths[number])
            return self._open[number]


# ------------------------------------------------------------------------------- views

AREA = (0.08, 1.0)
"""Smallest and largest share of a photo's area in a random crop."""
RATIO = (3 / 4, 4 / 3)
"""Width over height of a random crop.

Source of both: "Going Deeper with Convolutions" (2015), section 6; torchvision's
RandomResizedCrop has them too."""
CENTRE = 7 / 8
"""Share of a side used in evaluation: 224 of 256 pixels."""


@dataclass(frozen=True)
class View:
    """A model's view of stored images. Tokens, which have no mean, stay unchanged."""

    mean: tuple[float, ...] = ()
    """Mean and deviation per channel, scaled to 0 to 1."""
    deviation: tuple[float, ...] = ()
    dtype: torch.dtype = torch.float32
    """The model's."""
    side: int | None = None
    """Photos are cropped to side x side pixels; None: images keep their stored size."""
    seed: int | None = None
    """Seed of random crops and flips (see loading.epoch_seed); None: the centre, for evaluation."""

    def __call__(self, inputs: Tensor, places: Tensor) -> Tensor:
        """Return the input for these samples from these positions in the data."""
        if not self.mean:
            return inputs
        images = inputs.float()
        if self.side is not None and len(images):
            if self.seed is None:
                images = centre(images, self.side)
            else:
                images = random_crops(images, self.side, draws(self.seed, places))
        mean = _channels(self.mean, inputs.device)
        images = (images / 255 - mean) / _channels(self.deviation, inputs.device)
        return images.to(self.dtype, memory_format=torch.contiguous_format)


@cache
def _channels(numbers: tuple[float, ...], device: torch.device) -> Tensor:
    """One number a channel, sent to a GPU once: a copy from pageable memory waits for the GPU."""
    return torch.tensor(numbers, device=device).view(1, -1, 1, 1)


def centre(images: Tensor, side: int) -> Tensor:
    """Return the centre of square images, at side x side pixels."""
    stored = images.shape[-1]
    seen = min(stored, max(side, round(stored * CENTRE)))
    start = (stored - seen) // 2
    images = images[..., start : start + seen, start : start + seen]
    if seen == side:
        return images
    scaled: Tensor = functional.interpolate(images, (side, side), mode="bilinear", antialias=True)
    return scaled


def random_crops(images: Tensor, side: int, random: Tensor) -> Tensor:
    """Return a random part of each image, scaled to side x side pixels and mirrored at random.

    Pixels are interpolated without smoothing, so photos should be packed at no more than twice the
    model's size. `images` are floats (count, channels, height, width); `random` has (count, 5)
    numbers from 0 to 1.
    """
    area = AREA[0] + (AREA[1] - AREA[0]) * random[:, 0]
    low, high = torch.tensor(RATIO).log().tolist()
    ratio = torch.exp(low + (high - low) * random[:, 1])
    width = (area * ratio).sqrt().clamp(max=1)
    height = (area / ratio).sqrt().clamp(max=1)
    mirrored = torch.where(random[:, 2] < 0.5, -1.0, 1.0)
    # In affine_grid's coordinates, the image extends from -1 to 1.
    across = (1 - width) * (2 * random[:, 3] - 1)
    down = (1 - height) * (2 * random[:, 4] - 1)
    none = torch.zeros_like(width)
    rows = [width * mirrored, none, across, none, height, down]
    theta = torch.stack(rows, dim=1).view(-1, 2, 3).to(images.dtype)
    if images.is_cuda:  # a copy from pageable memory would wait for the GPU
        theta = theta.pin_memory().to(images.device, non_blocking=True)
    size = [len(images), images.shape[1], side, side]
    grid = functional.affine_grid(theta, size, align_corners=False)
    crops: Tensor = functional.grid_sample(images, grid, padding_mode="border", align_corners=False)
    return crops


def draws(seed: int, places: Tensor) -> Tensor:
    """Return five numbers from 0 to 1 per position, always the same for a position.

    SplitMix64's mixing of a counter, because torch's generators depend on the place in a batch.
    Source: "Fast splittable pseudorandom number generators" (2014), figure 17.
    """
    numbers = places.unsqueeze(1) * 5 + torch.arange(1, 6) + seed * 0x5851F42D4C957F2D % 2**62
    mixed = numbers * _signed(0x9E3779B97F4A7C15)
    for right, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ _right(mixed, right)) * _signed(factor)
    return _right(mixed ^ _right(mixed, 31), 11).double().mul(2**-53).float()


def _right(numbers: Tensor, bits: int) -> Tensor:
    """Shift right as unsigned numbers."""
    shifted: Tensor = (numbers >> bits) & (2 ** (64 - bits) - 1)
    return shifted


def _signed(number: int) -> int:
    """Return the int64 with the same bits."""
    return number - 2**64
