"""The lines of a job's log: their writers, the errors, and repeated tracebacks. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Protocol

from lumitui.remote.site.safe_text import plain

_LINES = 20_000
_WIDTH = 1000
# srun --label writes `3: `, padded.
_LABEL = re.compile(r"^ *(\d{1,6}): ?")
# torchrun's prefix contains the local rank (torch/distributed/elastic/multiprocessing/tail_log.py).
_LOCAL = re.compile(r"^\[[a-z]+\d{1,6}\]: ?")
# PyTorch's own prefix contains the global rank (distributed_c10d.py, excepthook_prefix).
_RANK = re.compile(r"^\[rank(\d{1,6})\]: ?")
_LAUNCHER = re.compile(
    r"torch[./]distributed[./](?:elastic|run|launcher)|Root Cause \(first|^\d*:? ?\[.*\[launch\.py:"
)
# Errors before such a line ended nothing: the job continued.
_WENT_ON = re.compile(
    r"^lumitui: the probe ended with \d+; the binding is not proven\."
    r"|^lumitui: .*; trying again in \d+ s\."
    r"|^lumitui: preflight: .*; the job (?:goes on|continues)\.|^lumitui: preflight not run: "
    r"|^lumitui: launch \d+ of \d+: "
)
_NOT_LAUNCHED = re.compile(r"^lumitui: .*; nothing was launched\.")


@dataclass(frozen=True)
class LogLine:
    """One line of a log."""

    source: str
    """The writer of the line according to its labels; "" without labels."""
    rank: int | None
    """The global rank; None if no label contains it."""
    text: str
    """The text after the labels."""
    number: int = 0
    """Line number in the text read, from 1; 0 if it is not from a text."""


@dataclass(frozen=True)
class Log:
    """The end of a log."""

    lines: Sequence[LogLine]
    """The lines since the launch, as far as the log shows its beginning."""
    label_is_rank: bool
    """Whether srun's labels, and the first failed task that srun names, are ranks."""


def log_of(tail: str) -> Log:
    """Return the lines of `tail` that the launch wrote."""
    numbered = [(at, plain(text[: 4 * _WIDTH], _WIDTH)) for at, text in _split(tail)]
    # With one launcher per node, srun's label is that of the node, not of the rank.
    label_is_rank = not any(_LAUNCHER.search(text) for _, text in numbered)
    lines = [
        replace(log_line_of(text, label_is_rank=label_is_rank), number=at) for at, text in numbered
    ]
    return Log(_launched(lines), label_is_rank)


def _split(tail: str) -> Sequence[tuple[int, str]]:
    """Return the last lines with their line numbers in an editor.

    A progress bar redraws itself after a carriage return, so all its states share one number.
    """
    lines = tail.removesuffix("\n").split("\n")
    first = max(0, len(lines) - _LINES)
    numbered = enumerate(lines[first:], first + 1)
    found = [(at, text) for at, line in numbered for text in line.rstrip("\r").split("\r")]
    return found[-_LINES:]


def log_line_of(text: str, *, label_is_rank: bool) -> LogLine:
    """Return a line split into its labels, rank and text."""
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
    """Return the lines after the last failure that the job survived, unless it launched nothing."""
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
"""A POSIX extended regular expression for error lines: an exception's last line, Slurm's errors,
and a shell's message about a signal. It matches few other lines."""

# torchrun's report of failed ranks, and Slurm's of tasks that it ended itself.
_ECHO = re.compile(r"ChildFailedError|SignalException|STEP .* CANCELLED|Job step aborted")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class LogError:
    """The first occurrence of an error in a log."""

    offset: int
    rank: int | None
    text: str


def first_errors(found: Iterable[tuple[int, bytes]], *, label_is_rank: bool) -> list[LogError]:
    """Return the errors in (offset, line) pairs in log order, similar ones once."""
    errors: dict[str, LogError] = {}
    for offset, data in sorted(found):
        line = log_line_of(plain(data.decode("utf-8", "replace")), label_is_rank=label_is_rank)
        if not _ECHO.search(line.text):
            alike = _NUMBER.sub("N", line.text)
            errors.setdefault(alike, LogError(offset, line.rank, line.text))
    return list(errors.values())


_TAIL = 4_000_000
"""Bytes to explain from the end of a log."""
_MOST = 1_000_000_000
"""Maximum number of bytes to read to count the lines before the end: about a second."""
_CHUNK = 4_000_000


def log_end(file: BinaryIO) -> tuple[str, int | None]:
    """Return the end of a log, and the number of lines before it, or None if unknown.

    Reads at most a gigabyte from a pipe.
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
# A traceback ends at the first unindented line.
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(?::|$)")
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_LONGEST = 2000
"""Maximum lines of a traceback; a longer one counts as unfinished."""


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
    """A traceback that several ranks print."""

    first: Sequence[Labelled]
    """Its lines from the first rank; the last line is the exception."""
    sources: set[str] = field(default_factory=set)
    """The other writers of the same traceback, whose lines are hidden while the fold is closed."""
    open: bool = False

    @property
    def head(self) -> Labelled:
        """The line that shows the number of ranks: the exception."""
        return self.first[-1]

    def hides(self, line: Labelled) -> bool:
        """Return whether `line`, a part of the fold, is hidden."""
        return not self.open and line.source != self.head.source

    @property
    def words(self) -> str:
        """The text after the exception; "" while only one rank has it."""
        if not self.sources:
            return ""
        others = f"\N{MULTIPLICATION SIGN}{len(self.sources) + 1} ranks the same"
        return f"  {others} {'▾' if self.open else '▸'}"


class TracebackFolder:
    """Finds equal tracebacks in a stream of lines; those of different ranks may be mixed."""

    def __init__(self) -> None:
        self._open: dict[str, list[Labelled]] = {}
        self._found: dict[tuple[str, ...], Fold] = {}

    def feed(self, line: Labelled) -> bool:
        """Read the next line; return whether it folds earlier lines."""
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
            return False  # the same rank again, later: show it separately
        fold.sources.add(line.source)
        for part in (*fold.first, *block):
            part.fold = fold
        return True


def _alike(line: Labelled) -> str:
    """Return the text of a line without the parts that differ between ranks."""
    text = _ADDRESS.sub("0x", line.text[line.label :]).strip()
    if line.rank is None or text.startswith('File "'):  # contains a line number of code
        return text
    # Does not match in `2.00 GiB`, which each rank writes.
    return re.sub(rf"(?<![\w.]){line.rank}(?!\w|\.\d)", "N", text)
