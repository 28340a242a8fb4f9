"""Opens the data of a training run, by the folder's contents; or generates synthetic data."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path

import torch
from torch import Tensor

from data.samples import BadData, DataSet, Samples, Shape, first
from engine.exits import UsageError

FOLDERS = {
    "*-ubyte.gz": "mnist",
    "pack.json": "shards",
    "pack.journal": "shards",
    "*train*.bin": "tokens",
}
"""Typical files in a folder and the module that reads it; the first match counts. A folder with
subfolders has photos."""
KNOWN = (
    "MNIST's four .gz files, a pack.json with its shards, train.bin with val.bin, or a subfolder "
    "of images for each class. HDF5 and tars of images become shards by pack.py"
)
"""The possible contents of a data folder, in words."""
SYNTHETIC = "synthetic"
"""The value of `--data` for synthetic data; `synthetic:1000` makes 1000 training samples."""
SYNTHETIC_COUNT = 65_536
"""Number of training samples, unless `--data` sets it."""
PICTURES = 64
"""Maximum number of different images, which stay in memory."""


def open_data(where: str, *, shape: Shape, limit: int | None = None) -> DataSet:
    """Open the data in a folder (`where`), or generate them for `synthetic` or `synthetic:COUNT`.

    Synthetic data have the model's input `shape`, photos are cropped to it, and texts are cut into
    windows of its length. Only the first `limit` training samples are used.

    Raises:
        UsageError: the folder is missing, its format is unknown, or a file is damaged.
    """
    if named := re.fullmatch(rf"{SYNTHETIC}(?::([1-9]\d{{0,11}}))?", where):
        how_many = int(named[1] or SYNTHETIC_COUNT)
        return made_up(shape, min(how_many, limit or how_many))
    if not where:
        raise UsageError("--data is empty. Give it a folder, or omit it to use the sample.")
    if where.startswith(f"{SYNTHETIC}:"):
        raise UsageError(
            f"--data {where} needs a whole number from 1, of at most 12 digits, after its colon. "
            f"Write it like {SYNTHETIC}:1000."
        )
    path = Path(where)
    try:
        found: DataSet = import_module(f"data.{_module(path)}").open_set(path, shape)
    except OSError as error:
        raise BadData(
            f"The data {error.filename or path} can't be read ({error.strerror}). Check --data, "
            "and that the folder exists on the compute node, in the container."
        ) from error
    return replace(found, train=first(found.train, limit))


def _module(path: Path) -> str:
    """Return the module that reads a folder."""
    if not path.exists():
        raise UsageError(
            f"There is no data folder {path}. Give --data a folder that exists on the compute "
            "node, in the container; or omit it to use the sample."
        )
    if not path.is_dir():
        with path.open("rb") as file:
            if file.read(4) == b"hsqs":
                raise UsageError(
                    f"{path} is a squashfs, which must be mounted before it can be read. Let the "
                    f"container do it, with `-B {path}:/data:image-src=/` (in a job file: "
                    "container: binds:), and give --data /data."
                )
        raise UsageError(f"{path} is not a folder. A folder may contain {KNOWN}.")
    for pattern, name in FOLDERS.items():
        if any(path.glob(pattern)):
            return name
    if any(each.is_dir() and each.name[0] != "." for each in path.iterdir()):
        return "photos"
    raise UsageError(f"{path} contains no data of a known format. A folder may contain {KNOWN}.")


def made_up(shape: Shape, count: int) -> DataSet:
    """Return synthetic data: `count` training samples, and an eighth of that for evaluation."""
    tests = max(1, count // 8)
    train: Samples = Synthetic(shape, count, 0)
    test: Samples = Synthetic(shape, tests, count)
    channels = shape.input[0] if shape.kind == "images" else 0
    return DataSet(train, test, (0.5,) * channels, (0.25,) * channels)


@dataclass(frozen=True)
class Synthetic:
    """Samples of a shape, from that number on.

    Each class has an image of random pixels, which each sample makes slightly lighter. A text
    counts up from a token in constant steps, so the next token is predictable.
    """

    shape: Shape
    count: int
    start: int

    def __len__(self) -> int:
        return self.count

    @cached_property
    def _pictures(self) -> Tensor:
        how_many = min(self.shape.classes, PICTURES)
        generator = torch.Generator().manual_seed(0)
        size = (how_many, *self.shape.input)
        return torch.randint(0, 224, size, dtype=torch.uint8, generator=generator)

    def read(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Generate the samples at these positions; a text's target is the token after its input."""
        numbers = (places + self.start) * 2_654_435_761  # Knuth's: neighbours have other classes
        if self.shape.kind == "tokens":
            numbers = numbers.unsqueeze(1)
            steps = torch.arange(self.shape.input[0] + 1).unsqueeze(0) * (1 + (numbers >> 12) % 5)
            text = ((numbers >> 16) + steps) % self.shape.classes
            return text[:, :-1].contiguous(), text[:, 1:].contiguous()
        targets = (numbers >> 12) % self.shape.classes
        images = self._pictures[targets % len(self._pictures)]
        return images.add_((numbers >> 20 & 31).to(torch.uint8).view(-1, 1, 1, 1)), targets
