"""Photos in folders, and decoding a file to pixels, the same in training and packing.

Pillow is imported when the first photo is read, so that only a training run with photos needs it.
A folder has one subfolder per class, optionally below `train` and `val`. Each image is a file that
must be found, opened and decoded in each epoch. That suits a few thousand images; for more, pack.py
makes shards.
"""

from __future__ import annotations

import hashlib
import io
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from data.samples import BadData, DataSet, Range, Samples, Shape
from engine.exits import UsageError

ENDINGS = (".jpeg", ".jpg", ".png", ".webp", ".bmp", ".ppm", ".gif", ".tif", ".tiff")
"""Suffixes of images, in lower case."""
SIDE = 224
"""Side in pixels, unless the model expects another."""
MODES = {1: "L", 3: "RGB"}
"""Pillow's modes for grey and colour, by number of channels."""

TESTS = ("val", "valid", "validation", "test")
"""Names of a folder or group with test images beside `train`, and prefixes of such tars."""
HELD_OUT = 10
"""Without test images, one in this many samples is used for evaluation."""
MEAN = {1: (0.449,), 3: (0.485, 0.456, 0.406)}
DEVIATION = {1: (0.226,), 3: (0.229, 0.224, 0.225)}
"""Mean and standard deviation of ImageNet's training images, as in PyTorch's examples; grey uses
their average."""


def pixels(content: bytes, name: str, channels: int, side: int) -> bytes:
    """Decode the largest centred square of a photo, at side x side pixels.

    Args:
        content: the file's bytes.
        name: the photo's name for errors.
        channels: 1 or 3.
        side: of the result.

    Returns:
        Rows of interleaved pixels: height x width x channels bytes.

    Raises:
        BadData: it can't be decoded.
    """
    image_module = pillow()  # outside `try`: a missing Pillow is not a damaged photo
    try:
        with image_module.open(io.BytesIO(content)) as image:
            # A JPEG can be decoded at a half, quarter or eighth of its size. Twice the needed size
            # leaves the smoothing to the resize below.
            image.draft(MODES[channels], (2 * side, 2 * side))
            return scaled(image, channels, side)
    except Exception as error:  # Pillow's decoders raise OSError, SyntaxError, ValueError and more
        raise BadData(
            f"{name} can't be read as an image ({error}). Copy it again, or remove it."
        ) from error


def scaled(image: Any, channels: int, side: int) -> bytes:
    """Return the largest centred square of a Pillow image, in the form of `pixels`."""
    picture = image.convert(MODES[channels])
    width, height = picture.size
    square = min(width, height)
    left, top = (width - square) // 2, (height - square) // 2
    box = (left, top, left + square, top + square)
    if (width, height) != (side, side):
        picture = picture.resize((side, side), pillow().Resampling.BILINEAR, box=box)
    found: bytes = picture.tobytes()
    return found


def pillow() -> Any:
    """Return Pillow's module Image."""
    return library("PIL.Image", "pillow")


def batch(pictures: bytearray, shape: Shape) -> Tensor:
    """Return (count, channels, height, width) from concatenated results of `pixels`."""
    channels, height, width = shape.input
    if not pictures:
        return torch.empty((0, *shape.input), dtype=torch.uint8)
    found = torch.frombuffer(pictures, dtype=torch.uint8).view(-1, height, width, channels)
    return found.permute(0, 3, 1, 2)


def wanted(shape: Shape) -> tuple[int, int]:
    """Return the channels and side of the photos that a model expects."""
    if shape.kind != "images" or shape.input[0] not in MODES:
        return 3, SIDE
    return shape.input[0], shape.input[1]


def photo_set(train: Samples, test: Samples, shape: Shape) -> DataSet:
    """Return photos cropped to the model's size, if the number of channels matches."""
    channels, side = wanted(shape)
    stored = train.shape.input
    crops = channels == stored[0] and stored[1] == stored[2]
    mean = MEAN.get(stored[0], (0.5,) * stored[0])
    deviation = DEVIATION.get(stored[0], (0.25,) * stored[0])
    return DataSet(train, test, mean, deviation, side if crops else None)


def library(module: str, name: str) -> Any:
    """Return a module of the package `name`; UsageError if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(
            f"Reading these images needs {name}, which is not installed here. Install {name}, or "
            "run pack.py on a machine that has it: packed images do not need it."
        ) from error


def parts(folder: Path) -> tuple[Path, Path | None]:
    """Return the folders of training and test images; None for a missing test folder."""
    if not (folder / "train").is_dir():
        return folder, None
    tests = [folder / name for name in TESTS if (folder / name).is_dir()]
    return folder / "train", tests[0] if tests else None


@dataclass(frozen=True)
class FolderImages:
    """Samples in separate files.

    Their order mixes the classes and depends only on their names, so the first thousand are a
    representative sample, and the last ones a representative test.
    """

    folder: Path
    names: list[str]
    """Paths below the folder."""
    targets: list[int]
    classes: tuple[str, ...]
    shape: Shape

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def files(self) -> list[Path]:
        """The paths of the images."""
        return [self.folder / name for name in self.names]

    def read(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Read and decode the images at these positions."""
        pictures = bytearray()
        for place in places.tolist():
            pictures += self.pixels(place)
        targets = [self.targets[place] for place in places.tolist()]
        return batch(pictures, self.shape), torch.tensor(targets, dtype=torch.int64)

    def pixels(self, number: int) -> bytes:
        """Read and decode one image; BadData if the image is damaged or missing."""
        path, (channels, side, _) = self.folder / self.names[number], self.shape.input
        try:
            content = path.read_bytes()
        except OSError as error:
            raise BadData(
                f"{path} can't be read ({error.strerror}). Copy it again, or remove it."
            ) from error
        return pixels(content, str(path), channels, side)


def folder_images(
    folder: Path, size: tuple[int, int], classes: tuple[str, ...] | None = None
) -> FolderImages:
    """Find the images in a folder with one subfolder per class.

    `size` has the channels and the side of the decoded images. For a test folder, `classes` are the
    training classes.

    Raises:
        BadData: the folder has no images, or a class is unknown.
    """
    known = tuple(sorted(_subfolders(folder))) if classes is None else classes
    unknown = sorted(set(_subfolders(folder)) - set(known))
    if unknown:
        raise BadData(
            f"{folder} has a folder {unknown[0]}, but the training images have no such class. "
            "Both need the same folders."
        )
    found = [
        (f"{name}/{inner}", target)
        for target, name in enumerate(known)
        for inner in _images(folder / name, "")
    ]
    if not found:
        raise BadData(
            f"{folder} has no images in its subfolders. It needs one subfolder for each class, "
            f"with image files such as {', '.join(ENDINGS[:3])}."
        )
    missing = sorted(set(range(len(known))) - {target for _, target in found})
    if missing and classes is None and (os.environ.get("RANK") or "0") == "0":
        print(
            f"{folder / known[missing[0]]} has no images; the model includes this class anyway"
            + (f", and {len(missing) - 1} more like it." if missing[1:] else "."),
            file=sys.stderr,
            flush=True,
        )
    found.sort(key=lambda one: (hashlib.blake2b(os.fsencode(one[0]), digest_size=8).digest(), one))
    names, targets = [name for name, _ in found], [target for _, target in found]
    channels, side = size
    shape = Shape("images", (channels, side, side), len(known))
    return FolderImages(folder, names, targets, known, shape)


def _subfolders(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        yield from (each.name for each in entries if each.is_dir() and each.name[0] != ".")


def _images(folder: Path, before: str) -> Iterator[str]:
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        for each in entries:
            if each.name.startswith("."):
                continue
            if each.name.lower().endswith(ENDINGS):
                yield before + each.name
            elif each.is_dir():
                yield from _images(Path(each.path), f"{before}{each.name}/")


def open_set(folder: Path, shape: Shape) -> DataSet:
    """Open a folder of images, scaled to the model's size."""
    learn, tests = parts(folder)
    whole = folder_images(learn, wanted(shape))
    if tests is None:
        return photo_set(*held_out(whole, folder), shape)
    return photo_set(whole, folder_images(tests, wanted(shape), whole.classes), shape)


def held_out(whole: Samples, where: Path) -> tuple[Samples, Samples]:
    """Split off the last tenth for evaluation; BadData if there are too few samples."""
    kept = len(whole) - len(whole) // HELD_OUT
    if kept == len(whole):
        raise BadData(
            f"{where} has {len(whole)} samples, too few to keep one of {HELD_OUT} for the test. "
            "Add a separate folder for the test, or more samples."
        )
    return Range(whole, 0, kept), Range(whole, kept, len(whole))
