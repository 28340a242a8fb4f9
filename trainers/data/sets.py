"""Opens the data of a training: what the folder or file holds decides how it is read."""

from __future__ import annotations

import re
from pathlib import Path

from data import mnist, synthetic
from data.samples import BadData, DataSet, InMemory, Range, Samples, View
from models.table import Shape

__all__ = ["BadData", "DataSet", "InMemory", "Range", "Samples", "View", "open_data"]


def open_data(where: str, *, shape: Shape | None = None, limit: int | None = None) -> DataSet:
    """Open the data in a folder or a file, or make some up.

    Args:
        where: a folder or a file of a known format; or `synthetic`, or `synthetic:COUNT`.
        shape: what the model was made for. Synthetic data look like this; photos are cropped to
            this size.
        limit: use only that many training samples, the first ones.

    Raises:
        UsageError: there is nothing there, the format is unknown, or a file is damaged.
    """
    made_up = re.fullmatch(rf"{synthetic.NAME}(?::([1-9]\d{{0,11}}))?", where)
    if made_up:
        how_many = int(made_up[1] or synthetic.COUNT)
        return synthetic.open_synthetic(shape or mnist.SHAPE, min(how_many, limit or how_many))
    return mnist.open_mnist(Path(where), limit)
