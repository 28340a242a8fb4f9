"""The code of a run around the line that raised, read on this laptop."""

import hashlib
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lumitui.app.history.run import Run
from lumitui.remote.source.manifest import Manifest

AROUND = 2
"""Lines before and after the one that raised."""
_PLACE = re.compile(r"(?P<name>[^/:]+):(?P<line>\d{1,9})(?: \(|$)")
_LARGEST = 1 << 20
"""Bytes of a file that is read: nobody writes a larger one by hand."""


@dataclass(frozen=True)
class RaisingCode:
    """Some lines of a file, as the run had it."""

    path: str
    """Below the project's root."""
    line: int
    """The one that raised, counted from 1."""
    first: int
    """The number of the first of `lines`."""
    lines: tuple[str, ...]

    @property
    def rows(self) -> list[str]:
        """The lines with their numbers; a mark is before the one that raised."""
        return [
            f"{'>' if number == self.line else ' '} {number:>4}  {text}"
            for number, text in enumerate(self.lines, self.first)
        ]


def code_around(run: Run, place: str, sent: str | None) -> RaisingCode | None:
    """Return the code around `place`, such as `train.py:88 (forward)`, of a run.

    `sent` is the list of the files that were sent last. None where it is not certain what ran: the
    list is another run's, two files have that name, or the project's file has changed since.
    """
    match = _PLACE.match(place)
    if match is None or sent is None or (manifest := Manifest.parse(sent)).id != run.snapshot:
        return None
    named = [one for one in manifest.files if one.path.rpartition("/")[2] == match["name"]]
    if len(named) != 1 or named[0].size > _LARGEST:
        return None
    with suppress(OSError, UnicodeDecodeError):
        data = (Path(run.project) / named[0].path).read_bytes()
        lines, line = data.decode().splitlines(), int(match["line"])
        if hashlib.sha256(data).hexdigest() == named[0].sha256 and 1 <= line <= len(lines):
            first = max(1, line - AROUND)
            return RaisingCode(named[0].path, line, first, tuple(lines[first - 1 : line + AROUND]))
    return None
