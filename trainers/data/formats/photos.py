"""Photos: how a file becomes pixels, the same when it is read in a training and when it is packed.

Pillow is imported when the first photo is read: without photos, a training needs no Pillow.
"""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from data.samples import BadData, DataSet, Samples, Shape
from engine.reporting import UsageError

ENDINGS = (".jpeg", ".jpg", ".png", ".webp", ".bmp", ".ppm", ".gif", ".tif", ".tiff")
"""How names of images end, in small letters."""
SIDE = 224
"""Pixels of a side, unless the model was made for others."""
MODES = {1: "L", 3: "RGB"}
"""Pillow's names for grey and colour, by the number of channels."""

MEAN = {1: (0.449,), 3: (0.485, 0.456, 0.406)}
DEVIATION = {1: (0.226,), 3: (0.229, 0.224, 0.225)}
"""Of ImageNet's training images, as published with PyTorch's examples; grey is their average."""


def pixels(content: bytes, name: str, channels: int, side: int) -> bytes:
    """Decode a photo: its largest square in the middle, at side x side pixels.

    Args:
        content: the file.
        name: what an error calls it.
        channels: 1 or 3.
        side: of the result.

    Returns:
        Rows of pixels with their channels together: height x width x channels bytes.

    Raises:
        BadData: it can't be decoded.
    """
    image_module = pillow()
    try:
        with image_module.open(io.BytesIO(content)) as image:
            # A JPEG can be decoded at a half, quarter or eighth of its size. Twice what is needed
            # leaves the smoothing to the resize below.
            image.draft(MODES[channels], (2 * side, 2 * side))
            picture = image.convert(MODES[channels])
        width, height = picture.size
        square = min(width, height)
        left, top = (width - square) // 2, (height - square) // 2
        box = (left, top, left + square, top + square)
        if (width, height) != (side, side):
            bilinear = image_module.Resampling.BILINEAR
            picture = picture.resize((side, side), bilinear, box=box)
        found: bytes = picture.tobytes()
    except Exception as error:  # Pillow's decoders raise OSError, SyntaxError, ValueError and more
        raise BadData(
            f"{name} can't be read as an image ({error}). Copy it again, or take it out."
        ) from error
    return found


def pillow() -> Any:
    """Pillow's module Image.

    Raises:
        UsageError: it is not installed.
    """
    return library("PIL.Image", "Images are read with Pillow", "pillow", " elsewhere")


def batch(pictures: bytearray, shape: Shape) -> Tensor:
    """Make (count, channels, height, width) of what `pixels` returned, one after the other."""
    channels, height, width = shape.input
    if not pictures:
        return torch.empty((0, *shape.input), dtype=torch.uint8)
    found = torch.frombuffer(pictures, dtype=torch.uint8).view(-1, height, width, channels)
    return found.permute(0, 3, 1, 2)


def wanted(shape: Shape | None) -> tuple[int, int]:
    """Channels and side of the photos that a model was made for."""
    if shape is None or shape.kind != "images" or shape.input[0] not in MODES:
        return 3, SIDE
    return shape.input[0], shape.input[1]


def photo_set(train: Samples, test: Samples, shape: Shape | None) -> DataSet:
    """Photos that are cropped to what a model was made for, if it has as many channels."""
    channels, side = wanted(shape)
    stored = train.shape.input
    crops = shape is not None and channels == stored[0] and stored[1] == stored[2]
    mean, deviation = MEAN.get(stored[0]), DEVIATION.get(stored[0])
    return DataSet(
        train,
        test,
        mean or (0.5,) * stored[0],
        deviation or (0.25,) * stored[0],
        side if crops else None,
    )


def library(module: str, reads: str, name: str, where: str = "") -> Any:
    """A module, or what to do without it.

    Args:
        module: to import.
        reads: what it reads, in an error.
        name: under which it is installed.
        where: the images are to be packed when it can't be.

    Raises:
        UsageError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(
            f"{reads}, which is not installed here. Install {name}, or pack the images"
            f"{where} with pack.py: packed ones need nothing."
        ) from error
