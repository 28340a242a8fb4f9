"""The lines of a log that say what went wrong, each kind once. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lumitui.app.knowledge.log.log_lines import log_line_of
from lumitui.remote.site.safe_text import plain

ERROR_PATTERN = (
    r"^ *([0-9]+: ?)?(\[[a-z]+[0-9]+\]: ?)*"
    r"[A-Za-z_][A-Za-z0-9_.]*(Error|Exception|Interrupt|Timeout|Expired)(:|$)"
    r"|^ *([0-9]+: )?(srun|slurmstepd[^:]*): error: "
    r"|Segmentation fault|Bus error|: Killed$"
)
"""A POSIX extended expression that finds such lines, and few others: an exception's last line,
what Slurm reports, and what a shell says of a signal."""

# torchrun's own report of ranks that ended, and Slurm's of tasks it ended itself.
_ECHO = re.compile(r"ChildFailedError|SignalException|STEP .* CANCELLED|Job step aborted")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class LogError:
    """An error as it is in a log for the first time."""

    offset: int
    rank: int | None
    text: str


def first_errors(found: Iterable[tuple[int, bytes]], *, label_is_rank: bool) -> list[LogError]:
    """Return the errors of (offset, line) pairs in the order of the log, alike ones once."""
    errors: dict[str, LogError] = {}
    for offset, data in sorted(found):
        line = log_line_of(plain(data.decode("utf-8", "replace")), label_is_rank=label_is_rank)
        if not _ECHO.search(line.text):
            alike = _NUMBER.sub("N", line.text)
            errors.setdefault(alike, LogError(offset, line.rank, line.text))
    return list(errors.values())
