"""Token files: the token numbers of a text in sequence, as uint16 or uint32.

A folder has train.bin and val.bin (or test.bin), or several files whose names contain these words,
such as fineweb_train_000001.bin. The format of a file is given by a JSON beside it, such as
train.json: {"dtype": "uint16", "vocabulary": 50257}; or by a header as in llm.c's files; otherwise
it is uint16 with the model's vocabulary, as written by nanoGPT. A sample is a window of the model's
length; its target is the same window shifted by one token. Windows neither overlap nor cross files.
"""

from __future__ import annotations

import json
import struct
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import torch
from torch import Tensor

from data.samples import BadData, DataSet, OpenFiles, Shape

TRAIN = "train.bin"
TESTS = ("val.bin", "test.bin")
LENGTH = 1024
"""Tokens per window, unless the model expects another length."""
DTYPES = {"uint16": torch.uint16, "uint32": torch.uint32}
"""The possible types, little-endian."""
HEADERS = {20240520: "uint16", 20240801: "uint32"}
"""First number of a header, which has 256 int32.

Source: github.com/karpathy/llm.c, dev/data/data_common.py."""
HEADER = 1024


@dataclass(frozen=True)
class TokenFormat:
    """The format of a token file."""

    dtype: str
    vocabulary: int
    header: int = 0
    """Number of bytes before the first token."""


class TokenWindows:
    """The windows of several token files, sorted by name."""

    def __init__(self, paths: list[Path], shape: Shape) -> None:
        """Check the files and their descriptions; BadData if one is invalid or too short."""
        self._files = OpenFiles(paths)
        length = shape.input[0] if shape.kind == "tokens" else LENGTH
        formats = [format_of(path, shape) for path in paths]
        unlike = [number for number, one in enumerate(formats) if one != formats[0]]
        if unlike:
            raise BadData(
                f"{paths[0]} and {paths[unlike[0]]} have tokens of different kinds. Create both "
                "with the same tokenizer."
            )
        self._format = formats[0]
        self._dtype = DTYPES[self._format.dtype]
        self._bytes = self._dtype.itemsize
        self._ends = list(accumulate(self._windows(number, length) for number in range(len(paths))))
        self.shape = Shape("tokens", (length,), self._format.vocabulary)

    def _windows(self, number: int, length: int) -> int:
        """Return the number of a file's windows; the rest is not used."""
        found = self._files.size(number)
        tokens, odd = divmod(found - self._format.header, self._bytes)
        windows = max(0, tokens - 1) // length
        if odd or not windows:
            raise BadData(
                f"{self._files.paths[number]} has {found} bytes, which is not a whole number of "
                f"{self._format.dtype} tokens or is shorter than a window of {length}. Copy it "
                "again, or use a longer text."
            )
        return windows

    def __len__(self) -> int:
        return self._ends[-1]

    def read(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Read the windows at these positions."""
        length = self.shape.input[0]
        size = (length + 1) * self._bytes
        whole = bytearray(size * len(places))
        into = memoryview(whole)
        for at, place in enumerate(places.tolist()):
            number = bisect_right(self._ends, place)
            first = self._ends[number - 1] if number else 0
            offset = self._format.header + (place - first) * length * self._bytes
            self._files.read_into(number, offset, into[at * size : (at + 1) * size])
        if not whole:
            empty = torch.empty((0, length), dtype=torch.int64)
            return empty, empty
        text = torch.frombuffer(whole, dtype=self._dtype).view(-1, length + 1).long()
        if int(text.max()) >= self.shape.classes:
            raise BadData(
                f"{self._files.paths[0]} has a token {int(text.max())}, but its vocabulary is "
                f"{self.shape.classes}. Correct the .json file beside it, or create the tokens "
                "again."
            )
        return text[:, :-1], text[:, 1:]


def format_of(path: Path, shape: Shape) -> TokenFormat:
    """Return a token file's format, from its JSON, its header, or else the model's `shape`.

    Raises:
        BadData: the JSON is invalid; or it is missing, and the model does not read tokens.
    """
    beside = path.with_suffix(".json")
    hint = 'It must describe the tokens, like {"dtype": "uint16", "vocabulary": 50257}.'
    if shape.kind == "tokens" and not beside.exists():
        with path.open("rb") as file:
            begins = file.read(4)
        magic = struct.unpack("<i", begins)[0] if len(begins) == 4 else 0
        header = HEADER if magic in HEADERS else 0
        return TokenFormat(HEADERS.get(magic, "uint16"), shape.classes, header)
    try:
        tree = json.loads(beside.read_bytes())
        found = TokenFormat(tree["dtype"], tree["vocabulary"])
    except OSError as error:
        raise BadData(f"{beside} can't be read ({error.strerror}). {hint}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadData(f"{beside} is incomplete ({error}). {hint}") from error
    if found.dtype not in DTYPES or type(found.vocabulary) is not int or found.vocabulary < 2:
        raise BadData(f"{beside} contains {found.dtype!r} and {found.vocabulary!r}. {hint}")
    return found


def open_set(folder: Path, shape: Shape) -> DataSet:
    """Open a folder with token files; BadData if there is no test file, or a file is damaged."""
    tests = [sorted(folder.glob(f"*{name.replace('.', '*.')}")) for name in TESTS]
    test_files = next((found for found in tests if found), [])
    if not test_files:
        raise BadData(f"{folder} has a {TRAIN}, but no {' or '.join(TESTS)} to test on. Add one.")
    train = TokenWindows(sorted(folder.glob("*train*.bin")), shape)
    test = TokenWindows(test_files, shape)
    if train.shape != test.shape:
        raise BadData(
            f"{folder / TRAIN} and {test_files[0]} have vocabularies of {train.shape.classes} and "
            f"{test.shape.classes} tokens. Create both with the same vocabulary."
        )
    return DataSet(train, test)
