"""A log's bytes as lines of text that can do nothing to a terminal. Pure.

What a terminal would hide or obey is made visible (ESC as ␛); colours are dropped, and of a
progress bar that writes over itself with carriage returns the last state is kept.
"""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass

MAX_LINE = 8000
"""Characters; a longer line is shown in pieces, so that one line cannot fill the memory."""
_COLOUR = re.compile("\x1b\\[[0-9;:]*m")
_PICTURES = {code: 0x2400 + code for code in range(32) if code != 9} | {0x7F: 0x2421}
# C1 controls, what ends a line, and what turns the direction of the text around it.
_PICTURES |= dict.fromkeys(
    [*range(0x80, 0xA0), 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)], 0xFFFD
)
STEERING = frozenset(map(chr, _PICTURES))
"""Characters that a terminal may obey; none of them is ever drawn."""


def visible(line: str) -> str:
    """Return `line` with nothing left in it that a terminal obeys."""
    return _COLOUR.sub("", line).translate(_PICTURES).expandtabs(8)


def collapse(line: str) -> str:
    r"""Return what stays of a line that was written over with `\r`."""
    return line if "\r" not in line else line.rstrip("\r").rpartition("\r")[2]


@dataclass(frozen=True)
class Grown:
    """What some more bytes came to."""

    lines: Sequence[str]
    """Lines that are complete now."""
    partial: str
    """The last line as far as it is there."""


class LogText:
    """Takes a log's bytes as they come."""

    def __init__(self) -> None:
        """Nothing was read yet."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def feed(self, data: bytes) -> Grown:
        """Take the next bytes; a character or a line may be cut anywhere."""
        *whole, rest = (self._rest + self._decoder.decode(data)).split("\n")
        if len(rest) > MAX_LINE:
            rest = _without_overwritten(rest)
        cut = len(rest) - len(rest) % MAX_LINE if len(rest) > MAX_LINE else 0
        self._rest = rest[cut:]
        lines = [piece for line in whole for piece in _pieces(visible(collapse(line)))]
        lines += _pieces(visible(collapse(rest[:cut]))) if cut else []
        return Grown(lines, visible(collapse(self._rest)))


def _without_overwritten(rest: str) -> str:
    # "\r" at the very end has written nothing over it yet.
    before, sign, last = rest.rstrip("\r").rpartition("\r")
    del before
    return last + rest[len(rest.rstrip("\r")) :] if sign else rest


def _pieces(line: str) -> list[str]:
    return [line[at : at + MAX_LINE] for at in range(0, len(line), MAX_LINE)] or [""]
