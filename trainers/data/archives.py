"""Images in tars (WebDataset) and in HDF5 files, which pack.py converts to shards.

A tar has two files per sample, such as 000017.jpg and 000017.cls. A folder may contain several
tars; those named val* or test* are for evaluation.

An HDF5 file has `images` and `labels` at its top, or in its groups `train` and `test`. `images` is
(count, height, width), with 1 or 3 channels before or after height and width, as uint8 or as floats
from 0 to 1 (as in the LUMI AI Guide); or each entry is the bytes of an image file.
"""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

from data import photos
from data.samples import BadData, OpenFiles, Shape

HDF5_BEGINS = b"\x89HDF\r\n\x1a\n"
"""The magic bytes of an HDF5 file."""


class TarImages:
    """The samples of several tars, sorted by name."""

    def __init__(self, tars: list[Path], size: tuple[int, int]) -> None:
        """Find the samples, which are scaled to `size`; BadData if there are none, or damage."""
        self.files = tars
        self._open = OpenFiles(tars)
        self._places: list[tuple[int, int, int]] = []
        """For each image: its tar, offset and length."""
        self.targets: list[int] = []
        for number in range(len(tars)):
            self._scan(number)
        self.classes = tuple(map(str, range(max(self.targets) + 1)))
        channels, side = size
        self.shape = Shape("images", (channels, side, side), len(self.classes))

    def _scan(self, number: int) -> None:
        path = self.files[number]
        images: dict[str, tuple[int, int]] = {}
        classes: dict[str, int] = {}
        try:
            # `r:` reads the headers and skips the contents.
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
                f"{path} has no complete image, or no class, for {missing[0]!r}. Each sample needs "
                "two files like 17.jpg and 17.cls; if the original tar has them, copy it again."
            )
        self._places += [(number, *place) for place in images.values()]
        self.targets += [classes[key] for key in images]

    def pixels(self, number: int) -> bytes:
        """Read and decode one image."""
        tar, offset, length = self._places[number]
        content = bytes(self._open.read(tar, offset, length))
        name = f"{self.files[tar]} (the image at byte {offset})"
        channels, side, _ = self.shape.input
        return photos.pixels(content, name, channels, side)


class Hdf5Images:
    """The samples of one group of a file, scaled to one size."""

    def __init__(self, file: Any, group: str, size: tuple[int, int]) -> None:
        """Read the sizes of the datasets; BadData if the group lacks matching images and labels."""
        path = Path(file.filename)
        self.files = [path]
        try:
            images, labels = file[group]["images"], file[group]["labels"]
        except KeyError as error:
            raise BadData(
                f"{path} has no datasets `images` and `labels` in {group!r}. Rename them."
            ) from error
        self._images, self._encoded = images, images.ndim == 1
        self._floats = str(images.dtype) == "float32"
        self._channels_first = images.ndim == 4 and images.shape[3] not in (1, 3)
        axes = images.shape[1:] if images.ndim == 4 else (*images.shape[1:], 1)
        channels = axes[0] if self._channels_first else axes[-1]
        known = self._encoded or self._floats or str(images.dtype) == "uint8"
        right = self._encoded or (len(axes) == 3 and channels in (1, 3))
        if not known or not right or len(images) != len(labels) or not len(labels):
            raise BadData(
                f"{path} has images of {images.dtype} in the shape {images.shape} and "
                f"{len(labels)} labels. It needs one label per image, and uint8 images (count, "
                "height, width, channels) or files."
            )
        self.targets: list[int] = labels[:].tolist()
        self.classes = tuple(map(str, range(max(self.targets) + 1)))
        channels, side = size
        self.shape = Shape("images", (channels, side, side), len(self.classes))

    def pixels(self, number: int) -> bytes:
        """Read and scale one image; BadData if it cannot be read, or has floats outside 0 to 1."""
        (path,), (channels, side, _) = self.files, self.shape.input
        try:
            stored = self._images[number]
        except (OSError, RuntimeError) as error:
            raise BadData(
                f"{path}: image {number} can't be read ({error}). Copy the file again."
            ) from error
        name = f"{path}: image {number}"
        if self._encoded:
            return photos.pixels(bytes(stored), name, channels, side)
        if self._floats:
            least, most = float(stored.min()), float(stored.max())
            if not (least >= 0 and most <= 1):  # also refuses NaN
                raise BadData(
                    f"{name} has floats from {least:.4g} to {most:.4g} instead of 0 to 1. "
                    "Store uint8, or divide by 255, and do not normalize."
                )
            stored = (stored * 255).round().astype("uint8")
        if self._channels_first:
            stored = stored.transpose(1, 2, 0)
        if stored.shape[-1] == 1:
            stored = stored[..., 0]
        return photos.scaled(photos.pillow().fromarray(stored), channels, side)


def tar_images(where: Path, size: tuple[int, int]) -> tuple[TarImages, TarImages | None]:
    """Return the training and test samples of a tar or a folder of tars; BadData if damaged."""
    tars = sorted(where.glob("*.tar")) if where.is_dir() else [where]
    tests = [path for path in tars if path.name.startswith(photos.TESTS)]
    learn = [path for path in tars if path not in tests]
    if not learn or not tests:
        return TarImages(tars, size), None
    return TarImages(learn, size), TarImages(tests, size)


def hdf5_images(path: Path, size: tuple[int, int]) -> tuple[Hdf5Images, Hdf5Images | None]:
    """Return the training and test samples of an HDF5 file; BadData if it has no such data."""
    try:
        file = photos.library("h5py", "h5py").File(path, "r")
    except OSError as error:
        raise BadData(f"{path} can't be opened as HDF5 ({error}). Copy it again.") from error
    tests = [name for name in photos.TESTS if name in file and "train" in file]
    if not tests:
        return Hdf5Images(file, "/", size), None
    return Hdf5Images(file, "train", size), Hdf5Images(file, tests[0], size)


def is_hdf5(path: Path) -> bool:
    """Return whether a file starts like HDF5."""
    with path.open("rb") as file:
        return file.read(8) == HDF5_BEGINS
