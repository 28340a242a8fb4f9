"""WebDataset: tar files with samples of two files each, like 000017.jpg and 000017.cls.

Each is read where it lies: the places of all files are found once, from the headers of the tar, and
kept beside it where that is allowed. So the samples come in an order of their own in each epoch.
"""

from __future__ import annotations

import json
import os
import tarfile
from array import array
from bisect import bisect_right
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

import torch
from torch import Tensor

from data import photos
from data.photos import held_out
from data.samples import BadData, DataSet, OpenFiles, Samples, Shape

ENDING = ".tar"
INDEX = ".index.json"
"""Ending of the file beside a tar that says where its samples are."""


class TarImages:
    """The samples of some tars, in the order of their names."""

    in_threads = False

    def __init__(self, tars: list[Path], shape: Shape) -> None:
        """Find the samples.

        Raises:
            BadData: a tar is damaged, or has no samples.
        """
        channels, side = photos.wanted(shape)
        self._files = OpenFiles(tars)
        indices = [index_of(path) for path in tars]
        self._ends = list(accumulate(len(each) // 3 for each in indices))
        self._index = array("q", (number for each in indices for number in each))
        classes = max(self._index[2::3]) + 1
        self.shape = Shape("images", (channels, side, side), classes)

    def __len__(self) -> int:
        """How many there are."""
        return self._ends[-1]

    def read(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Read and decode the images at these places."""
        channels, side, _ = self.shape.input
        pictures, targets = bytearray(), []
        for place in places.tolist():
            number = bisect_right(self._ends, place)
            offset, length, target = self._index[3 * place : 3 * place + 3]
            content = bytes(self._files.read(number, offset, length))
            name = f"{self._files.paths[number]} (the image at byte {offset})"
            pictures += photos.pixels(content, name, channels, side)
            targets.append(target)
        return photos.batch(pictures, self.shape), torch.tensor(targets, dtype=torch.int64)


def index_of(path: Path) -> array[int]:
    """Offset, length and class of each sample of a tar, in their order.

    Raises:
        BadData: the tar is damaged, or has no samples.
    """
    beside = path.with_name(path.name + INDEX)
    with suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(beside.read_bytes())
        about = path.stat()
        if known["of"] == [about.st_size, about.st_mtime_ns]:
            return array("q", known["samples"])
    found = _scan(path)
    with suppress(OSError):  # a folder that may not be written is looked through each time
        about = path.stat()
        aside = beside.with_name(f"{beside.name}.{os.uname().nodename}.{os.getpid()}")
        known = {"of": [about.st_size, about.st_mtime_ns], "samples": found.tolist()}
        aside.write_text(json.dumps(known))
        aside.rename(beside)
    return found


def _scan(path: Path) -> array[int]:
    images: dict[str, tuple[int, int]] = {}
    classes: dict[str, int] = {}
    try:
        # `r:` reads headers and jumps over what is between them.
        with tarfile.open(path, "r:") as tar:
            for member in tar:
                _, _, ending = member.name.rpartition("/")[2].partition(".")
                key = member.name.removesuffix(f".{ending}")
                if not member.isfile():
                    continue
                if f".{ending.lower()}" in photos.ENDINGS:
                    images[key] = (member.offset_data, member.size)
                elif ending == "cls":
                    file = tar.extractfile(member)
                    classes[key] = int(file.read(20)) if file else -1
    except (OSError, tarfile.TarError, ValueError) as error:
        raise BadData(f"{path} can't be read as a tar ({error}). Copy it again.") from error
    size = path.stat().st_size
    cut = [key for key, (offset, length) in images.items() if offset + length > size]
    if cut or not images or images.keys() != classes.keys() or min(classes.values()) < 0:
        missing = sorted(cut or images.keys() ^ classes.keys()) or ["any sample"]
        raise BadData(
            f"{path} lacks a whole image or its class for {missing[0]!r}. Each sample needs two "
            "files like 17.jpg and 17.cls; copy the tar again if it had them."
        )
    return array("q", (each for key in images for each in (*images[key], classes[key])))


def open_set(where: Path, shape: Shape) -> DataSet:
    """Open a tar, or a folder with tars.

    Raises:
        BadData: one is damaged.
    """
    tars = sorted(where.glob(f"*{ENDING}")) if where.is_dir() else [where]
    tests = [path for path in tars if path.name.startswith(photos.TESTS)]
    learn = [path for path in tars if path not in tests]
    if not learn or not tests:
        return photos.photo_set(*held_out(TarImages(tars, shape), where), shape)
    train: Samples = TarImages(learn, shape)
    return photos.photo_set(train, TarImages(tests, shape), shape)
