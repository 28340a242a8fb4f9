"""The lines of a job's log: who wrote each, without control characters; and its errors. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lumitui.remote.site.safe_text import plain

_LINES = 20_000
_WIDTH = 1000
# srun --label writes `3: `, padded.
_LABEL = re.compile(r"^ *(\d{1,6}): ?")
# torchrun's prefix holds the local rank (torch/distributed/elastic/multiprocessing/tail_log.py).
_LOCAL = re.compile(r"^\[[a-z]+\d{1,6}\]: ?")
# PyTorch's own, in tracebacks and messages, the rank (distributed_c10d.py, excepthook_prefix).
_RANK = re.compile(r"^\[rank(\d{1,6})\]: ?")
_LAUNCHER = re.compile(
    r"torch[./]distributed[./](?:elastic|run|launcher)|Root Cause \(first|^\d*:? ?\[.*\[launch\.py:"
)
# What is before one of these ended nothing: the job went on.
_WENT_ON = re.compile(
    r"^lumitui: the probe ended with \d+; the binding is not proven\."
    r"|^lumitui: .*; trying again in \d+ s\."
    r"|^lumitui: preflight: .*; the job goes on\.|^lumitui: preflight not run: "
    r"|^lumitui: launch \d+ of \d+: "
)
_NOT_LAUNCHED = re.compile(r"^lumitui: .*; nothing was launched\.")


@dataclass(frozen=True)
class LogLine:
    """One line of a log."""

    source: str
    """Whose output it is, as its labels say; "" for a line without any."""
    rank: int | None
    """The rank in the whole job; None where no label says it."""
    text: str
    """What follows the labels."""
    number: int = 0
    """Which line of the text that was read it is, counted from 1; 0: of none."""


@dataclass(frozen=True)
class Log:
    """The end of a log."""

    lines: Sequence[LogLine]
    """From where the launch began, as far as the log shows it."""
    label_is_rank: bool
    """Whether srun's labels, and the task it names as the first that failed, are ranks."""


def log_of(tail: str) -> Log:
    """Return the lines of `tail` that the launch wrote."""
    numbered = [(at, plain(text[: 4 * _WIDTH], _WIDTH)) for at, text in _split(tail)]
    # With one launcher on each node, srun's label is the node's, not the rank's.
    label_is_rank = not any(_LAUNCHER.search(text) for _, text in numbered)
    lines = [
        replace(log_line_of(text, label_is_rank=label_is_rank), number=at) for at, text in numbered
    ]
    return Log(_launched(lines), label_is_rank)


def _split(tail: str) -> Sequence[tuple[int, str]]:
    """Return the last lines with their numbers, as an editor counts them.

    A progress bar draws itself again after a carriage return: its states are texts of one line.
    """
    lines = tail.removesuffix("\n").split("\n")
    first = max(0, len(lines) - _LINES)
    numbered = enumerate(lines[first:], first + 1)
    found = [(at, text) for at, line in numbered for text in line.rstrip("\r").split("\r")]
    return found[-_LINES:]


def log_line_of(text: str, *, label_is_rank: bool) -> LogLine:
    """Return a line without its labels, and what they say."""
    whole, rank = text, None
    if label := _LABEL.match(text):
        text = text[label.end() :]
        rank = int(label[1]) if label_is_rank else None
    if not _RANK.match(text) and (local := _LOCAL.match(text)):
        text = text[local.end() :]
    if own := _RANK.match(text):
        text, rank = text[own.end() :], int(own[1])
    return LogLine(whole[: len(whole) - len(text)].strip(), rank, text.rstrip())


def _launched(lines: Sequence[LogLine]) -> Sequence[LogLine]:
    """Return the lines after what failed and ended nothing, unless nothing was launched."""
    ends = [number for number, line in enumerate(lines) if _WENT_ON.match(line.text)]
    if not ends or any(_NOT_LAUNCHED.match(line.text) for line in lines[ends[-1] :]):
        return lines
    return lines[ends[-1] + 1 :]


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
