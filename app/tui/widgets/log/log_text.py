"""A log's bytes as lines of text without control characters. Pure.

A progress bar that overwrites its line with carriage returns is shown in its last state.
"""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

from lumitui.app.explain.safe_text import log_line

MAX_LINE = 8000
"""Characters; a longer line is shown in pieces, so that one line cannot fill the memory."""


def collapse(line: str) -> str:
    r"""Return what stays of a line that overwrites itself with `\r`."""
    return line if "\r" not in line else line.rstrip("\r").rpartition("\r")[2]


@dataclass(frozen=True)
class Grown:
    """The lines that more bytes have added."""

    lines: Sequence[str]
    """Lines that are complete now."""
    partial: str
    """The last line as far as it has come."""


class LogText:
    """Turns a log's bytes into lines as they come."""

    def __init__(self) -> None:
        """Start at the beginning of a line."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def feed(self, data: bytes) -> Grown:
        """Take the next bytes; a character or a line may be cut anywhere."""
        *whole, rest = (self._rest + self._decoder.decode(data)).split("\n")
        if len(rest) > MAX_LINE:
            rest = _without_overwritten(rest)
        cut = len(rest) - len(rest) % MAX_LINE if len(rest) > MAX_LINE else 0
        self._rest = rest[cut:]
        lines = [piece for line in whole for piece in _pieces(log_line(collapse(line)))]
        lines += _pieces(log_line(collapse(rest[:cut]))) if cut else []
        return Grown(lines, log_line(collapse(self._rest)))


def _without_overwritten(rest: str) -> str:
    # After a "\r" at the very end nothing is overwritten yet.
    before, sign, last = rest.rstrip("\r").rpartition("\r")
    del before
    return last + rest[len(rest.rstrip("\r")) :] if sign else rest


def _pieces(line: str) -> list[str]:
    return [line[at : at + MAX_LINE] for at in range(0, len(line), MAX_LINE)] or [""]
