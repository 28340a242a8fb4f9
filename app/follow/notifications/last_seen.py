"""When the TUI was last open, and which runs were unfinished then: a small local file."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lumitui.remote.site.answer_fields import moment

_MOST_BYTES = 1 << 20
"""A run's id has about 30 bytes, and a user has at most some hundred unfinished runs."""


@dataclass(frozen=True)
class LastSeen:
    """The state that the user last saw in the TUI."""

    at: float
    """Epoch seconds."""
    unfinished: tuple[str, ...]
    """The ids of the runs that had not ended."""


def read_last_seen(file: Path) -> LastSeen | None:
    """Return the last record; None if the TUI was never open, or the file is unreadable."""
    try:
        with file.open("rb") as opened:
            lines = opened.read(_MOST_BYTES).decode("utf-8", "replace").split("\n")
    except OSError:
        return None
    at = moment(lines[0])
    return None if at is None else LastSeen(at, tuple(filter(None, lines[1:])))


def write_last_seen(file: Path, now: float, unfinished: Iterable[str]) -> None:
    """Write the record atomically, readable only by its owner.

    Raises:
        OSError: the file cannot be written.
    """
    import tempfile

    number, part = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)  # mode 0600
    try:
        with os.fdopen(number, "w", encoding="utf-8") as opened:
            opened.write("\n".join([str(int(now)), *unfinished]))
        os.replace(part, file)
    except OSError:
        Path(part).unlink(missing_ok=True)
        raise
