"""Token files: the numbers of a text's tokens, one after the other, as uint16 or uint32.

A folder with train.bin and val.bin (or test.bin), and beside each a train.json and val.json that
say how to read it: {"dtype": "uint16", "vocabulary": 50257}. A sample is a window of as many tokens
as the model reads, its target the same window one token further. Windows do not overlap.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from data.samples import BadData, DataSet, OpenFiles, Shape

TRAIN = "train.bin"
TESTS = ("val.bin", "test.bin")
LENGTH = 1024
"""Tokens of a window, unless the model was made for others."""
DTYPES = {"uint16": (torch.int16, 2, 0xFFFF), "uint32": (torch.int32, 4, 0xFFFFFFFF)}
"""How the bytes are read, bytes of a token, and what makes them unsigned (PyTorch 2.2 has no
unsigned numbers of 16 and 32 bits). The lowest byte comes first."""


@dataclass(frozen=True)
class Sidecar:
    """What the JSON beside a token file says."""

    dtype: str
    vocabulary: int


class TokenWindows:
    """The windows of one token file."""

    in_threads = True

    def __init__(self, path: Path, length: int) -> None:
        """Check the file and what is said of it.

        Raises:
            BadData: it is shorter than a window, or its JSON is missing or wrong.
        """
        self._files = OpenFiles([path])
        says = read_sidecar(path)
        self._dtype, self._bytes, self._mask = DTYPES[says.dtype]
        found = self._files.size(0)
        self._count = max(0, found // self._bytes - 1) // length
        if found % self._bytes or not self._count:
            raise BadData(
                f"{path} has {found} bytes, which is no whole number of {says.dtype} tokens or "
                f"less than a window of {length}. Copy it again, or take a longer text."
            )
        self.shape = Shape("tokens", (length,), says.vocabulary)

    def __len__(self) -> int:
        """How many windows there are; the rest of the file is not used."""
        return self._count

    def read(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Read the windows at these places."""
        length = self.shape.input[0]
        size = (length + 1) * self._bytes
        whole = bytearray(size * len(places))
        into = memoryview(whole)
        for at, place in enumerate(places.tolist()):
            offset = place * length * self._bytes
            self._files.read_into(0, offset, into[at * size : (at + 1) * size])
        if not whole:
            empty = torch.empty((0, length), dtype=torch.int64)
            return empty, empty
        text = torch.frombuffer(whole, dtype=self._dtype).view(-1, length + 1).long() & self._mask
        if int(text.max()) >= self.shape.classes:
            raise BadData(
                f"{self._files.paths[0]} has a token {int(text.max())}, but its vocabulary is "
                f"{self.shape.classes}. Correct the .json beside it, or make the tokens again."
            )
        return text[:, :-1], text[:, 1:]


def read_sidecar(path: Path) -> Sidecar:
    """Read the JSON beside a token file.

    Raises:
        BadData: it is missing or wrong.
    """
    beside = path.with_suffix(".json")
    hint = 'It has to say what the tokens are, like {"dtype": "uint16", "vocabulary": 50257}.'
    try:
        tree = json.loads(beside.read_bytes())
        found = Sidecar(tree["dtype"], tree["vocabulary"])
    except OSError as error:
        raise BadData(f"{beside} can't be read ({error.strerror}). {hint}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadData(f"{beside} lacks what is needed ({error}). {hint}") from error
    if found.dtype not in DTYPES or type(found.vocabulary) is not int or found.vocabulary < 2:
        raise BadData(f"{beside} says {found.dtype!r} and {found.vocabulary!r}. {hint}")
    return found


def open_set(folder: Path, shape: Shape) -> DataSet:
    """Open a folder with token files.

    Raises:
        BadData: there is none to test on, or one is damaged.
    """
    length = shape.input[0] if shape.kind == "tokens" else LENGTH
    tests = [folder / name for name in TESTS if (folder / name).is_file()]
    if not tests:
        raise BadData(f"{folder} has a {TRAIN}, but no {' or '.join(TESTS)} to test on. Add one.")
    train, test = TokenWindows(folder / TRAIN, length), TokenWindows(tests[0], length)
    if train.shape != test.shape:
        raise BadData(
            f"{folder / TRAIN} and {tests[0]} have vocabularies of {train.shape.classes} and "
            f"{test.shape.classes} tokens. Make both with the same one."
        )
    return DataSet(train, test)
