"""HDF5: `images` and `labels`, at the top of a file or in its groups `train` and `test`.

`images` is (count, height, width), with 1 or 3 channels before or after height and width: uint8,
or floats from 0 to 1, as the LUMI AI Guide makes them. Or it has the bytes of an image file each.
h5py reads one sample at a time, in one thread: pack.py's shards are faster.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from data import photos
from data.photos import held_out, library
from data.samples import BadData, DataSet, Shape

TESTS = ("test", "val", "valid", "validation")
"""Names of a group with samples to test on, beside `train`."""


class Hdf5Images:
    """The samples of one group of a file."""

    in_threads = False

    def __init__(self, path: Path, group: str, shape: Shape) -> None:
        """Look at the sizes.

        Raises:
            BadData: the group has no images and labels that fit together.
        """
        self._path, self._group = path, group
        self._file: Any = None
        self._opened_by = 0
        images, labels = self._datasets()
        self._encoded = images.ndim == 1
        self._floats = str(images.dtype) == "float32"
        self._first = images.ndim == 4 and images.shape[3] not in (1, 3)
        """Whether the channels come before height and width."""
        if self._encoded:
            channels, side = photos.wanted(shape)
            size: tuple[int, ...] = (channels, side, side)
        else:
            around = images.shape[1:] if images.ndim == 4 else (*images.shape[1:], 1)
            size = around if self._first else (around[-1], *around[:-1])
        known = self._encoded or self._floats or str(images.dtype) == "uint8"
        whole = known and len(size) == 3 and size[0] in (1, 3)
        if not whole or len(images) != len(labels) or not len(labels):
            raise BadData(
                f"{path} has images of {images.dtype} in the shape {images.shape} and "
                f"{len(labels)} labels. It needs as many uint8 images (count, height, width, "
                "channels), or files, as labels."
            )
        self._labels = torch.tensor(labels[:].tolist(), dtype=torch.int64)
        self.shape = Shape("images", size, int(self._labels.max()) + 1)

    def _datasets(self) -> tuple[Any, Any]:
        # h5py's files can't be shared with forked processes: each opens its own.
        if self._opened_by != os.getpid():
            try:
                self._file = h5py().File(self._path, "r")
            except OSError as error:
                raise BadData(
                    f"{self._path} can't be opened as HDF5 ({error}). Copy it again."
                ) from error
            self._opened_by = os.getpid()
        try:
            group = self._file[self._group]
            return group["images"], group["labels"]
        except KeyError as error:
            raise BadData(
                f"{self._path} lacks the datasets images and labels in {self._group!r}. Name them "
                "so, or pack the images with pack.py."
            ) from error

    def __len__(self) -> int:
        """How many there are."""
        return len(self._labels)

    def read(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Read the images at these places, one after the other: HDF5 wants its indices sorted."""
        images, _ = self._datasets()
        pictures = bytearray()
        for place in places.tolist():
            try:
                stored = images[place]
            except (OSError, RuntimeError) as error:
                raise BadData(
                    f"{self._path}: image {place} can't be read ({error}). Copy the file again."
                ) from error
            pictures += self._pixels(stored, place)
        return photos.batch(pictures, self.shape), self._labels[places]

    def _pixels(self, stored: Any, place: int) -> bytes:
        """Rows of pixels with their channels together, of what h5py gave: an array of numpy."""
        if self._encoded:
            channels, side, _ = self.shape.input
            name = f"{self._path}: image {place}"
            return photos.pixels(bytes(stored), name, channels, side)
        if self._floats:
            least, most = float(stored.min()), float(stored.max())
            if not (least >= 0 and most <= 1):  # nor may it be no number
                raise BadData(
                    f"{self._path}: image {place} has floats from {least:.4g} to {most:.4g}, and "
                    "0 to 1 is needed. Store uint8, or divide by 255, and do not normalise."
                )
            stored = (stored * 255).round().astype("uint8")
        if self._first:
            stored = stored.transpose(1, 2, 0)
        found: bytes = stored.tobytes()
        return found


def h5py() -> Any:
    """The module h5py."""
    return library("h5py", "HDF5 files are read with h5py", "h5py")


def open_set(path: Path, shape: Shape) -> DataSet:
    """Open a file with images.

    Raises:
        BadData: it is damaged, or has other datasets.
    """
    try:
        with h5py().File(path, "r") as file:
            tests = [name for name in TESTS if name in file and "train" in file]
    except OSError as error:
        raise BadData(f"{path} can't be opened as HDF5 ({error}). Copy it again.") from error
    if not tests:
        return photos.photo_set(*held_out(Hdf5Images(path, "/", shape), path), shape)
    train, test = Hdf5Images(path, "train", shape), Hdf5Images(path, tests[0], shape)
    return photos.photo_set(train, test, shape)
