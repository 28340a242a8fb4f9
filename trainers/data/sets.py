"""Opens the data of a training: what the folder holds decides how it is read."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from data.samples import SYNTHETIC, SYNTHETIC_COUNT, BadData, DataSet, Shape, first, made_up
from engine.exits import UsageError

FOLDERS = {
    "*-ubyte.gz": "mnist",
    "pack.json": "shards",
    "pack.journal": "shards",
    "*train*.bin": "tokens",
}
"""What a folder holds, and the module here that reads it; the first that is found counts. A folder
with subfolders has photos."""
KNOWN = (
    "MNIST's four .gz files, a pack.json with its shards, train.bin with val.bin, or a subfolder "
    "of images for each class. HDF5 and tars of images become shards by pack.py"
)
"""What a folder may hold."""


def open_data(where: str, *, shape: Shape, limit: int | None = None) -> DataSet:
    """Open the data in a folder, or make some up.

    Args:
        where: a folder of a known format; or `synthetic`, or `synthetic:COUNT`.
        shape: what the model was made for. Synthetic data look like this; photos are cropped to
            this size, and texts cut into windows of this length.
        limit: use only that many training samples, the first ones.

    Raises:
        UsageError: there is nothing there, the format is unknown, or a file is damaged.
    """
    if named := re.fullmatch(rf"{SYNTHETIC}(?::([1-9]\d{{0,11}}))?", where):
        how_many = int(named[1] or SYNTHETIC_COUNT)
        return made_up(shape, min(how_many, limit or how_many))
    if not where:
        raise UsageError("--data is empty. Give it a folder, or leave it out for the sample.")
    if where.startswith(f"{SYNTHETIC}:"):
        raise UsageError(
            f"--data {where} has no whole number of at least 1, with 12 digits at most, behind its "
            f"colon. Write it like {SYNTHETIC}:1000."
        )
    path = Path(where)
    try:
        found: DataSet = import_module(f"data.{_module(path)}").open_set(path, shape)
    except OSError as error:
        raise BadData(
            f"The data {error.filename or path} can't be read ({error.strerror}). Is --data right, "
            "and is the folder there on the compute node, in the container?"
        ) from error
    return replace(found, train=first(found.train, limit))


def _module(path: Path) -> str:
    """Name the module that reads a folder."""
    if not path.exists():
        raise UsageError(
            f"There is no data folder {path}. Give --data a folder that is there on the compute "
            "node, in the container; or leave it out for the sample."
        )
    if not path.is_dir():
        with path.open("rb") as file:
            if file.read(4) == b"hsqs":
                raise UsageError(
                    f"{path} is a squashfs, which has to be mounted before it is read. Let the "
                    f"container do it, with `-B {path}:/data:image-src=/` (in a job file: "
                    "container: binds:), and give --data /data."
                )
        raise UsageError(f"{path} is not a folder. A folder may hold {KNOWN}.")
    for pattern, name in FOLDERS.items():
        if any(path.glob(pattern)):
            return name
    if any(each.is_dir() and each.name[0] != "." for each in path.iterdir()):
        return "photos"
    raise UsageError(f"{path} holds no data of a known format. A folder may hold {KNOWN}.")
