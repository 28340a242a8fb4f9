"""HDF5: `images` and `labels`, at the top of a file or in its groups `train` and `test`.

`images` is uint8, (count, height, width, channels) or (count, height, width); or the bytes of an
image file each. h5py reads one sample at a time, in one thread: pack.py's shards are faster.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from data.formats import photos
from data.formats.image_folder import held_out
from data.samples import BadData, DataSet
from engine.reporting import UsageError
from models.table import Shape

MAGIC = b"\x89HDF\r\n\x1a\n"
ENDINGS = (".h5", ".hdf5")
TESTS = ("test", "val", "valid", "validation")
"""Names of a group with samples to test on, beside `train`."""


class Hdf5Images:
    """The samples of one group of a file."""

    def __init__(self, path: Path, group: str, shape: Shape | None) -> None:
        """Look at the sizes.

        Raises:
            BadData: the group has no images and labels that fit together.
        """
        self._path, self._group = path, group
        self._file: Any = None
        self._opened_by = 0
        images, labels = self._datasets()
        self._encoded = images.ndim == 1
        channels, side = photos.wanted(shape)
        if self._encoded:
            size: tuple[int, ...] = (channels, side, side)
        else:
            height, width = images.shape[1:3]
            size = (images.shape[3] if images.ndim == 4 else 1, height, width)
        whole = images.ndim in (1, 3, 4) and (self._encoded or str(images.dtype) == "uint8")
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
        channels, side, _ = self.shape.input
        pictures = bytearray()
        for place in places.tolist():
            try:
                stored = bytes(images[place])
            except (OSError, RuntimeError) as error:
                raise BadData(
                    f"{self._path}: image {place} can't be read ({error}). Copy the file again."
                ) from error
            if self._encoded:
                stored = photos.pixels(stored, f"{self._path}: image {place}", channels, side)
            pictures += stored
        return photos.batch(pictures, self.shape), self._labels[places]


def h5py() -> Any:
    """The module.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import h5py  # type: ignore[import-untyped]
    except ImportError as error:
        raise UsageError(
            "HDF5 files are read with h5py, which is not installed here. Install h5py, or pack "
            "the images with pack.py: packed ones need nothing."
        ) from error
    return h5py


def is_one(path: Path) -> bool:
    """Whether a file is HDF5."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def open_hdf5(path: Path, shape: Shape | None) -> DataSet:
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
