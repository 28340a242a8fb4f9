"""The lines of a job's log: its end, who wrote each, its errors, its repeated tracebacks. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Protocol

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


_TAIL = 4_000_000
"""How many bytes of the end of a log are explained."""
_MOST = 1_000_000_000
"""How many bytes are read to count the lines before the end: about a second."""
_CHUNK = 4_000_000


def log_end(file: BinaryIO) -> tuple[str, int | None]:
    """Return the end of a log, and how many lines stand before it; None: it is not known.

    Of a pipe no more than a gigabyte is read.
    """
    before, left = 0, _MOST
    if file.seekable():
        size = file.seek(0, 2)
        start = max(0, size - _TAIL)
        if start > _MOST:
            file.seek(start)
            return file.read(_TAIL).decode(errors="replace"), None
        file.seek(0)
        left = size
    kept = b""
    while left > 0 and (chunk := file.read(min(_CHUNK, left))):
        left -= len(chunk)
        kept += chunk
        if len(kept) > _TAIL:
            before += kept.count(b"\n", 0, len(kept) - _TAIL)
            kept = kept[-_TAIL:]
    return kept.decode(errors="replace"), before


BEGIN = "Traceback (most recent call last)"
# A traceback ends at its first line that is not indented.
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(?::|$)")
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_LONGEST = 2000
"""Lines of a traceback; one that is longer has no end."""


class Labelled(Protocol):
    """A line of a log whose labels are known."""

    offset: int
    text: str
    source: str
    rank: int | None
    label: int
    fold: "Fold | None"


@dataclass(eq=False)
class Fold:
    """One traceback as all ranks that have it print it."""

    first: Sequence[Labelled]
    """Its lines at the first of them; the last is the exception."""
    sources: set[str] = field(default_factory=set)
    """The others that print the same; their lines are hidden while it is closed."""
    open: bool = False

    @property
    def head(self) -> Labelled:
        """The line that says how many are the same: the exception."""
        return self.first[-1]

    def hides(self, line: Labelled) -> bool:
        """Return whether `line`, which is a part of it, is not shown."""
        return not self.open and line.source != self.head.source

    @property
    def words(self) -> str:
        """What follows its exception; "" while only one rank has it."""
        if not self.sources:
            return ""
        others = f"\N{MULTIPLICATION SIGN}{len(self.sources) + 1} ranks the same"
        return f"  {others} {'▾' if self.open else '▸'}"


class TracebackFolder:
    """Finds equal tracebacks as lines come; those of different ranks may be mixed."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._open: dict[str, list[Labelled]] = {}
        self._found: dict[tuple[str, ...], Fold] = {}

    def feed(self, line: Labelled) -> bool:
        """Take the next line; return whether lines before it are folded now."""
        text = line.text[line.label :]
        if BEGIN in text:
            self._open[line.source] = [line]
            return False
        block = self._open.get(line.source)
        if block is None:
            return False
        block.append(line)
        if len(block) > _LONGEST:
            del self._open[line.source]
            return False
        if not _RAISED.match(text):
            return False
        del self._open[line.source]
        key = tuple(_alike(part) for part in block)
        fold = self._found.get(key)
        if fold is None:
            fold = self._found[key] = Fold(tuple(block))
            line.fold = fold
            return False
        if line.source in fold.sources or line.source == fold.head.source:
            return False  # the same rank again: later, so it is worth a line of its own
        fold.sources.add(line.source)
        for part in (*fold.first, *block):
            part.fold = fold
        return True


def _alike(line: Labelled) -> str:
    """Return the text of a line without what differs from rank to rank."""
    text = _ADDRESS.sub("0x", line.text[line.label :]).strip()
    if line.rank is None or text.startswith('File "'):  # the number of a line of code
        return text
    # Not of `2.00 GiB`, which each rank writes.
    return re.sub(rf"(?<![\w.]){line.rank}(?!\w|\.\d)", "N", text)
