"""MNIST from its original IDX files.

The whole set is 11 MB on disk and 55 MB as bytes, so every rank holds it in memory. Nothing is
downloaded: compute nodes may have no internet.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from math import prod
from pathlib import Path

import torch
from torch import Tensor

from data.samples import DataSet, InMemory, Shape
from engine.exits import UsageError

SAMPLE = Path(__file__).resolve().parent / "sample"
"""8,000 training and 1,500 test digits, bundled with the trainers (see its LICENSE.md)."""

IMAGES, LABELS = 0x0803, 0x0801
"""Magic number of an IDX file with unsigned bytes in 3 or 1 dimensions.

Source: "File formats for the MNIST database", yann.lecun.com/exdb/mnist.
"""
MEAN, DEVIATION = 0.1307, 0.3081
"""Mean and standard deviation of MNIST's training pixels, scaled to 0 to 1 (computed from the
files)."""
SHAPE = Shape("images", (1, 28, 28), 10)


def open_set(folder: Path, shape: Shape = SHAPE) -> DataSet:
    """Open the four files; digits keep their size. UsageError if one is missing or invalid."""
    return DataSet(_part(folder, "train"), _part(folder, "t10k"), (MEAN,), (DEVIATION,))


def _part(folder: Path, part: str) -> InMemory:
    images = read_idx(folder / f"{part}-images-idx3-ubyte.gz", IMAGES)
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte.gz", LABELS).long()
    if images.shape[1:] != (28, 28) or len(images) != len(labels) or labels.max() > 9:
        raise UsageError(
            f"The {part} files in {folder} do not match: images "
            f"{tuple(images.shape)}, {len(labels)} labels up to {int(labels.max())}. "
            "They should be 28x28 images with one label of 0 to 9 each."
        )
    return InMemory(SHAPE, images.unsqueeze(1), labels)


def read_idx(path: Path, magic: int) -> Tensor:
    """Read a gzipped IDX file of unsigned bytes into a tensor of its declared shape.

    Raises:
        UsageError: the file is missing, truncated, not gzip, or not such an IDX file.
    """
    hint = "Copy MNIST's original .gz file there again."
    try:
        raw = gzip.decompress(path.read_bytes())
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(f"{path} is not a complete gzip file ({error}). {hint}") from error
    except OSError as error:
        raise UsageError(f"{path} can't be read ({error.strerror}). {hint}") from error
    axes = magic & 0xFF
    header = 4 + 4 * axes
    if len(raw) < header or struct.unpack(">I", raw[:4])[0] != magic:
        raise UsageError(f"{path} is not an IDX file of bytes in {axes} dimension(s). {hint}")
    shape = struct.unpack(f">{axes}I", raw[4:header])
    if len(raw) - header != prod(shape) or not prod(shape):
        raise UsageError(
            f"{path} declares {'x'.join(map(str, shape))} bytes but contains "
            f"{len(raw) - header}. {hint}"
        )
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8, offset=header).reshape(shape)
