"""Opens the data of a training: what the folder or file holds decides how it is read."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from data import mnist, synthetic
from data.formats import hdf5, image_folder, shards, tar_shards, tokens
from data.samples import BadData, DataSet, InMemory, Range, Samples, Shape, first
from data.views import View
from engine.reporting import UsageError

__all__ = ["BadData", "DataSet", "InMemory", "Range", "Samples", "View", "open_data"]

KNOWN = (
    "MNIST's four .gz files, a pack.json with its shards, train.bin with val.bin, tars of "
    "images, or a subfolder of images for each class"
)
"""What a folder may hold."""


def open_data(where: str, *, shape: Shape | None = None, limit: int | None = None) -> DataSet:
    """Open the data in a folder or a file, or make some up.

    Args:
        where: a folder or a file of a known format; or `synthetic`, or `synthetic:COUNT`.
        shape: what the model was made for. Synthetic data look like this; photos are cropped to
            this size, and texts cut into windows of this length.
        limit: use only that many training samples, the first ones.

    Raises:
        UsageError: there is nothing there, the format is unknown, or a file is damaged.
    """
    made_up = re.fullmatch(rf"{synthetic.NAME}(?::([1-9]\d{{0,11}}))?", where)
    if made_up:
        how_many = int(made_up[1] or synthetic.COUNT)
        return synthetic.open_synthetic(shape or mnist.SHAPE, min(how_many, limit or how_many))
    if not where:
        raise UsageError(
            "--data is empty. Give it a folder or a file, or leave it out for the sample."
        )
    if where.startswith(f"{synthetic.NAME}:"):
        raise UsageError(
            f"--data {where} has no whole number of at least 1, with 12 digits at most, behind its "
            f"colon. Write it like {synthetic.NAME}:1000."
        )
    path = Path(where)
    try:
        found = _in_folder(path, shape) if path.is_dir() else _in_file(path, shape)
    except OSError as error:
        raise BadData(
            f"The data {error.filename or path} can't be read ({error.strerror}). Is --data right, "
            "and is the folder there on the compute node, in the container?"
        ) from error
    return replace(found, train=first(found.train, limit))


def _in_folder(folder: Path, shape: Shape | None) -> DataSet:
    if any(folder.glob("*-ubyte.gz")):
        return mnist.open_mnist(folder)
    if (folder / shards.MANIFEST).exists():
        return shards.open_shards(folder, shape)
    if (folder / shards.JOURNAL).exists():
        raise BadData(f"{folder} is not packed to its end. Run pack.py again: it goes on.")
    if (folder / tokens.TRAIN).exists():
        return tokens.open_tokens(folder, shape)
    if tar_shards.is_one(folder):
        return tar_shards.open_tars(folder, shape)
    if image_folder.is_one(folder):
        return image_folder.open_folder(folder, shape)
    raise UsageError(f"{folder} holds no data of a known format. A folder may hold {KNOWN}.")


def _in_file(path: Path, shape: Shape | None) -> DataSet:
    if not path.exists():
        raise UsageError(
            f"There is no data folder {path}. Give --data a folder or a file that is there on the "
            "compute node, in the container; or leave it out for the sample."
        )
    if hdf5.is_one(path):
        return hdf5.open_hdf5(path, shape)
    if path.name.endswith(tar_shards.ENDING):
        return tar_shards.open_tars(path, shape)
    _check_squashfs(path)
    raise UsageError(
        f"{path} is of no known format. A file may be HDF5 (.h5), a tar of images, or a squashfs; "
        f"a folder may hold {KNOWN}."
    )


MAGIC = b"hsqs"


def _check_squashfs(path: Path) -> None:
    """Say how to mount a file, if it is a squashfs: a job may not do it, its container does.

    Raises:
        UsageError: it is one.
    """
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return
    raise UsageError(
        f"{path} is a squashfs, which has to be mounted before it is read. Let the container do "
        f"it, with `-B {path}:/data:image-src=/` (in a job file: container: binds:), and give "
        "--data /data."
    )
