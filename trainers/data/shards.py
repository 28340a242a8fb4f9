"""Packed shards: images as bytes, ready to copy, made by pack.py.

A folder has pack.json, the manifest, which is written last, and shards of about 256 MB:

    a line of JSON (see header), padded with spaces to 4096 bytes
    the images, one after the other: rows of pixels with their channels together
    the index: the class of each image, 8 bytes each, the lowest byte first
"""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import asdict, dataclass
from itertools import accumulate
from math import prod
from pathlib import Path

import torch
from torch import Tensor

from data import photos
from data.samples import BadData, DataSet, OpenFiles, Samples, Shape

MANIFEST = "pack.json"
JOURNAL = "pack.journal"
"""The packed part so far: without a manifest, packing is unfinished."""
FORMAT = "packed images 1"
"""The format in manifests and headers; each layout has its own number."""
HEADER = 4096
"""Number of bytes before the first image."""
LABEL = 8
"""Number of bytes per label."""


@dataclass(frozen=True)
class Shard:
    """A line of the manifest."""

    file: str
    part: str
    """"train" or "test"."""
    count: int
    """Number of images."""
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The content of pack.json."""

    channels: int
    side: int
    classes: tuple[str, ...]
    """Names of the classes; a label is an index into them."""
    shards: tuple[Shard, ...]
    format: str = FORMAT

    @property
    def shape(self) -> Shape:
        """The shape of one image."""
        return Shape("images", (self.channels, self.side, self.side), len(self.classes))

    def text(self) -> str:
        """Return the manifest as file text."""
        return json.dumps(asdict(self), indent=1) + "\n"


def header(count: int, shape: Shape) -> bytes:
    """Return the header of a shard."""
    says = {"format": FORMAT, "count": count, "input": shape.input}
    return json.dumps(says).encode().ljust(HEADER - 1) + b"\n"


def size(count: int, shape: Shape) -> int:
    """Return the size of a complete shard in bytes."""
    return HEADER + count * (prod(shape.input) + LABEL)


def read_manifest(folder: Path) -> Manifest:
    """Read pack.json; BadData if the file is not a manifest, or has another format."""
    path = folder / MANIFEST
    try:
        tree = json.loads(path.read_bytes())
        found = Manifest(
            int(tree["channels"]),
            int(tree["side"]),
            tuple(map(str, tree["classes"])),
            tuple(Shard(**each) for each in tree["shards"]),
            str(tree["format"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadData(f"{path} can't be read ({error}). Pack the images again.") from error
    if found.format != FORMAT:
        raise BadData(
            f"{path} is of the format {found.format!r}, not {FORMAT!r}. Pack the images again."
        )
    return found


class PackedImages:
    """The images of one part of a manifest, in the order of its shards."""

    def __init__(self, folder: Path, manifest: Manifest, part: str) -> None:
        """Check the shards against the manifest and read the labels; BadData if they differ."""
        shards = [each for each in manifest.shards if each.part == part]
        self.shape = manifest.shape
        self._files = OpenFiles([folder / each.file for each in shards])
        self._ends = list(accumulate(each.count for each in shards))
        labels = bytearray()
        for number, shard in enumerate(shards):
            labels += self._check(number, shard)
        self._labels = torch.frombuffer(labels or bytearray(LABEL), dtype=torch.int64)
        if not len(self) or not 0 <= self._labels.min() <= self._labels.max() < self.shape.classes:
            raise BadData(
                f"{folder / MANIFEST} has no {part} images, or their labels are not its classes. "
                "Pack the images again."
            )

    def _check(self, number: int, shard: Shard) -> bytearray:
        files, whole = self._files, size(shard.count, self.shape)
        found = files.size(number)
        if found != whole:
            raise BadData(
                f"{files.paths[number]} has {found} bytes instead of {whole}. Copy it again, or "
                "pack the images again."
            )
        if files.read(number, 0, HEADER) != header(shard.count, self.shape):
            raise BadData(
                f"{files.paths[number]} is not the shard that {MANIFEST} names. Copy both again."
            )
        return files.read(number, whole - shard.count * LABEL, shard.count * LABEL)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def read(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Read the images at these positions."""
        channels, height, width = self.shape.input
        each = channels * height * width
        whole = bytearray(len(places) * each)
        into = memoryview(whole)
        for at, place in enumerate(places.tolist()):
            number = bisect_right(self._ends, place)
            before = self._ends[number - 1] if number else 0
            offset = HEADER + (place - before) * each
            self._files.read_into(number, offset, into[at * each : (at + 1) * each])
        return photos.batch(whole, self.shape), self._labels[places]


def open_set(folder: Path, shape: Shape) -> DataSet:
    """Open a folder made by pack.py; BadData if packing is unfinished, or a shard is damaged."""
    if not (folder / MANIFEST).exists():
        raise BadData(f"{folder} is only partly packed. Run pack.py again to continue.")
    manifest = read_manifest(folder)
    train: Samples = PackedImages(folder, manifest, "train")
    return photos.photo_set(train, PackedImages(folder, manifest, "test"), shape)
