"""When the TUI was last open, and which runs were unfinished then: a small local file."""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lumitui.app.job.settings import write_whole
from lumitui.remote.site.answer_fields import moment

_TOLD = "told "
_MOST_BYTES = 1 << 20
"""A run's id has about 30 bytes, and a user has at most some hundred unfinished runs."""


@dataclass(frozen=True)
class LastSeen:
    """The state that the user last saw in the TUI."""

    at: float
    """Epoch seconds."""
    unfinished: tuple[str, ...]
    """The ids of the runs that had not ended."""
    told: frozenset[str] = frozenset()
    """The ids of runs whose end the command line has printed since then."""


def read_last_seen(file: Path) -> LastSeen | None:
    """Return the last record; None if the TUI was never open, or the file is unreadable."""
    try:
        with file.open("rb") as opened:
            lines = opened.read(_MOST_BYTES).decode("utf-8", "replace").split("\n")
    except OSError:
        return None
    at, told = moment(lines[0]), {line.removeprefix(_TOLD) for line in lines if _TOLD in line}
    unfinished = (line for line in lines[1:] if line and _TOLD not in line)
    return None if at is None else LastSeen(at, tuple(unfinished), frozenset(told))


def mark_told(file: Path, run_id: str) -> None:
    """Note that the user saw a run's end elsewhere; does nothing if the TUI was never open."""
    if (seen := read_last_seen(file)) is not None:
        told = (f"{_TOLD}{one}" for one in {*seen.told, run_id})
        with contextlib.suppress(OSError):  # the TUI reports it once more
            write_last_seen(file, seen.at, [*seen.unfinished, *told])


def write_last_seen(file: Path, now: float, unfinished: Iterable[str]) -> None:
    """Write the record atomically, readable only by its owner; OSError if that fails."""
    write_whole(file, "\n".join([str(int(now)), *unfinished]))
