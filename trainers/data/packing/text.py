"""Turns text files into token files: each byte is a token, and 256 ends a file."""

from __future__ import annotations

import json
from array import array
from dataclasses import dataclass
from pathlib import Path

from data.formats.tokens import TESTS, TRAIN
from data.samples import BadData
from saving.disk import write_whole

ENDINGS = (".txt", ".md", ".py")
"""How names of texts end."""
END = 256
"""The token after each file."""
HELD_OUT = 10
"""The last of that many parts of the tokens is for the test."""


@dataclass(frozen=True)
class Text:
    """What was made of texts."""

    files: int
    tokens: int


def pack_text(where: Path, out: Path) -> Text:
    """Write train.bin and val.bin with what says how to read them.

    Args:
        where: a file, or a folder with files below it.
        out: the folder to write to.

    Raises:
        BadData: there is no text.
    """
    paths = [where] if where.is_file() else sorted(_texts(where))
    tokens = array("H")
    for path in paths:
        tokens.extend(path.read_bytes())
        tokens.append(END)
    kept = len(tokens) - len(tokens) // HELD_OUT
    if kept == len(tokens):
        raise BadData(
            f"{where} has no text to pack. Name a file, or a folder with files that end in "
            f"{', '.join(ENDINGS)}."
        )
    out.mkdir(parents=True, exist_ok=True)
    says = json.dumps({"dtype": "uint16", "vocabulary": END + 1, "tokenizer": "bytes"})
    for name, part in ((TESTS[0], tokens[kept:]), (TRAIN, tokens[:kept])):
        write_whole((out / name).with_suffix(".json"), says.encode() + b"\n")
        write_whole(out / name, part.tobytes())
    return Text(len(paths), len(tokens))


def _texts(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.suffix in ENDINGS and path.is_file()]
