"""The tracebacks of a log, and the one that ended the job. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lumitui.app.knowledge.causes.cause_table import CONSEQUENCES, RULES
from lumitui.app.knowledge.failure.message_lines import Read
from lumitui.app.knowledge.log_lines import LogLine

_BEGIN = "Traceback (most recent call last)"
# A traceback ends at its first unindented line; torchrun's report indents all lines. The name of an
# exception has a capital letter or a module, so `srun: ` and `wandb: ` are not names.
_RAISED = re.compile(
    r"^(?!(?:INFO|WARNING|ERROR|DEBUG|CRITICAL|Epoch|Step|Loss|Iter|File)\b)(?=[\w.]*[A-Z.])[A-Za-z_][\w.]*(?::|$)"
    r"|^\s+[A-Za-z_][\w.]*(?:Error|Exception)(?::|$)"
)
# Lines that end an exception's message: of another program, or another traceback.
_NEXT = re.compile(
    r"^(?:srun|slurmstepd\S*): |^\[?[IWEF]\d{3,4} |^(?:INFO|WARNING|ERROR|DEBUG)\b|^\s*$"
    r"|^={10}|^-{10}|Sending process \d+ closing signal|^\s*\d{1,3}%\|"
)
_LONGEST_MESSAGE = 12
# Exceptions that a launcher raises after a process has ended; the process's own error counts.
LAUNCHERS = re.compile(
    r"^\s*(?:[\w.]+\.)?(?:ChildFailedError|ProcessExitedException|FailedJobError"
    r"|UncompletedJobError)\b|elastic.*SignalException"
    r"|^Exception: process \d+ terminated with signal"
    r"|CalledProcessError: Command .*(?:python|train|deepspeed|torchrun|srun|bash)"
)
# traceback.py, _cause_message and _context_message.
_CAUSED = "The above exception was the direct cause of the following exception"
_DURING = "During handling of the above exception, another exception occurred"
# Printed by a process that continues or is already ending: CPython's PyErr_WriteUnraisable,
# threading.excepthook, logging.Handler.handleError, atexit. Python 3.14 writes "ignored while".
_ASIDE = ("Exception ignored ", "Exception in thread", "--- Logging error ---", "Error in atexit")
_FRAME = re.compile(r'^\s*File "([^"]{1,500})", line (\d{1,9})(?:, in (\S{1,100}))?')
LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python3|^<frozen ")
_ROOT = re.compile(r"Root Cause \(first observed failure\)")
_ROOT_RANK = re.compile(r"^\s*rank\s*: (\d{1,6}) \(local_rank")
_ROOT_SIGNAL = re.compile(r"^\s*exitcode\s*: -(?!6\b)\d")
_ROOT_END = re.compile(r"^\s*={20}")
# Lines that a process may still write after the exception that ends it, such as a tracker's summary
# or the stack of a C++ abort. After a handled exception, the training continues.
_LAST_WORDS = 100


@dataclass(frozen=True)
class Raised:
    """An exception that was printed with its traceback."""

    line: LogLine
    """Its last line: the class and the message."""
    causes: tuple[LogLine, ...]
    """The last lines of the exceptions it was raised from, latest first."""
    handled: tuple[LogLine, ...]
    """The last lines of the exceptions being handled when it was raised, latest first."""
    number: int
    """Index of `line` in the log."""
    place: str = ""
    """The line of code, like `train.py:5 (attention)`: the program's rather than a library's."""
    message: tuple[LogLine, ...] = ()
    """The lines of its message after the first."""
    frames: tuple[str, ...] = ()
    """Files and functions, like `/a/torch/serialization.py load`; the raising frame is last."""


@dataclass(frozen=True)
class Culprit:
    """The exception that most likely ended the job."""

    raised: Raised
    rank: int | None
    its_own: bool
    """Whether it may belong to the first failed rank; if not, that rank left no traceback."""


def culprit(log: Read, failed_rank: int | None) -> Culprit | None:
    """Return the exception that ended the job; None if the log shows none.

    torchrun, otherwise srun (`failed_rank`), names the rank that failed first; its last exception
    counts, because earlier ones were handled. If neither names a rank, the earliest of all ranks'
    last exceptions counts, by the lines' timestamps if all have them. An exception is ignored if it
    only reports another rank's end, or if the program continued after it.
    """
    lines = log.lines
    root_rank, block = _root(lines)
    if any(_ROOT_SIGNAL.match(lines[number].text) for number in block):
        # A signal ended the rank, not an exception; only PyTorch's abort (signal 6) may follow one.
        return None
    named = failed_rank if root_rank is None else root_rank
    candidates = sorted(
        (
            raised
            for raised in _raised(lines)
            if not log.survived(raised.number)
            and not log.went_on(raised.number)
            and not _lost_its_parent(raised)
        ),
        key=lambda raised: raised.number,
    )
    if reported := [raised for raised in candidates if raised.number in block]:
        return Culprit(reported[-1], named, its_own=True)
    # A rank's own [rankN] lines come from the process that srun labels N. Lines without labels come
    # from many processes, so the last exception that is not an echo counts.
    last = {
        raised.line.source if raised.line.rank is None else raised.line.rank: raised
        for raised in candidates
        if raised.line.source or not _is_echo(raised)
    }
    final = [raised for raised in last.values() if _ended(raised, lines) and not _is_echo(raised)]
    final.sort(key=lambda raised: raised.number)
    moments = [log.moment(raised.number) for raised in final]
    if all(moments):
        final.sort(key=lambda raised: log.moment(raised.number) or ())
    if not final:
        return None
    # A traceback without a rank may belong to the named rank.
    for rank in () if named is None else (named, None):
        if own := [raised for raised in final if raised.line.rank == rank]:
            # Without ranks, each source's last exception is here; the first one ended the others.
            return Culprit(own[0] if rank is None else own[-1], named, its_own=True)
    # The named rank may only have been the first to notice.
    noticed = any(raised.line.rank == named for raised in last.values())
    return Culprit(final[0], final[0].line.rank, its_own=named is None or noticed)


def raised_lines(log: Read) -> frozenset[int]:
    """Return the indices of the last lines of tracebacks and of their messages."""
    raised = list(_raised(log.lines))
    said = {id(line) for one in raised for line in one.message}
    of_messages = (number for number, line in enumerate(log.lines) if id(line) in said)
    return frozenset((*(one.number for one in raised), *of_messages))


def aside_lines(log: Read) -> frozenset[int]:
    """Return the last lines of tracebacks whose exceptions Python reports as ignored."""
    numbers: set[int] = set()
    inside: set[str] = set()
    before_it: dict[str, str] = {}
    for number, line in enumerate(log.lines):
        text, source = line.text, line.source
        previous, before_it[source] = before_it.get(source, ""), text.strip()
        if _BEGIN in text:
            (inside.add if previous.startswith(_ASIDE) else inside.discard)(source)
        elif source in inside and _RAISED.match(text):
            inside.discard(source)
            numbers.add(number)
    return frozenset(numbers)


def orphaned_lines(log: Read) -> frozenset[int]:
    """Return the last lines of tracebacks of children that started after their parent's end."""
    return frozenset(one.number for one in _raised(log.lines) if _lost_its_parent(one))


def _lost_its_parent(raised: Raised) -> bool:
    """Return whether multiprocessing's child found no data from its parent."""
    # multiprocessing/spawn.py starts a child with `python -c`.
    begun = raised.place == "<string>:1" or raised.place.startswith("spawn.py:")
    return begun and raised.line.text == "EOFError: Ran out of input"


def ended_by_signal(log: Read) -> bool:
    """Return whether torchrun reports that a signal ended the first failed rank."""
    _, block = _root(log.lines)
    return any(_ROOT_SIGNAL.match(log.lines[number].text) for number in block)


def _is_echo(raised: Raised) -> bool:
    if any(rule.pattern.search(line.text) for line in raised.message for rule in RULES):
        return False
    return any(rule.pattern.search(raised.line.text) for rule in CONSEQUENCES)


def _ended(raised: Raised, lines: Sequence[LogLine]) -> bool:
    """Return whether the exception may have ended its process: few lines of its rank follow."""
    if raised.line.rank is None:
        return True
    after = sum(line.rank == raised.line.rank for line in lines[raised.number + 1 :])
    return after <= _LAST_WORDS


def _raised(lines: Sequence[LogLine]) -> Iterator[Raised]:
    """Yield the exceptions in the order in which their tracebacks ended.

    An exception raised from another, or while handling another, includes that one.
    """
    open_sources: set[str] = set()
    ended: dict[str, Raised] = {}
    link: dict[str, str] = {}
    before_it: dict[str, str] = {}
    frames: dict[str, list[re.Match[str]]] = {}
    for number, line in enumerate(lines):
        text, source = line.text, line.source
        previous, before_it[source] = before_it.get(source, ""), text.strip()
        if _BEGIN in text and previous.startswith(_ASIDE):
            # A traceback that was cut off has no end.
            open_sources.discard(source)
            continue
        if _BEGIN in text:
            open_sources.add(source)
            frames[source] = []
            if source not in link and source in ended:
                yield ended.pop(source)
        elif source in open_sources and _RAISED.match(text):
            open_sources.remove(source)
            before, how = ended.pop(source, None), link.pop(source, "")
            if LAUNCHERS.search(text):
                continue
            earlier = (before.line, *before.causes) if before else ()
            causes = earlier if how == _CAUSED else ()
            handled = (*(earlier if how == _DURING else ()), *(before.handled if before else ()))
            own = replace(line, text=text.strip())
            passed = frames.pop(source, [])
            said, names = _message(lines, number), tuple(f"{at[1]} {at[3] or ''}" for at in passed)
            of_it = handled if how else ()
            ended[source] = Raised(own, causes, of_it, number, _place(passed), said, names)
        elif source in open_sources and (frame := _FRAME.match(text)):
            frames.setdefault(source, []).append(frame)
        elif source in ended:
            for words in (_CAUSED, _DURING):
                if text.strip().startswith(words):
                    link[source] = words
    yield from ended.values()


def _message(lines: Sequence[LogLine], number: int) -> tuple[LogLine, ...]:
    """Return the lines of an exception's message after its first line, which is at `number`."""
    said: list[LogLine] = []
    for line in lines[number + 1 : number + 200]:
        if line.source != lines[number].source:
            continue
        text = line.text
        if _NEXT.search(text) or _BEGIN in text or _CAUSED in text or _DURING in text:
            break
        said.append(line)
        if len(said) == _LONGEST_MESSAGE:
            break
    return tuple(said)


def _place(frames: Sequence[re.Match[str]]) -> str:
    """Return the line of code that raised an exception, in the program's own code if possible."""
    own = [frame for frame in frames if not LIBRARY.search(frame[1])] or frames
    if not own:
        return ""
    path, line, name = own[-1].groups()
    where = f"{path.rpartition('/')[2]}:{line}"
    return f"{where} ({name})" if name and name != "<module>" else where


def _root(lines: Sequence[LogLine]) -> tuple[int | None, range]:
    """Return the rank in torchrun's block of the first observed failure, and the block's lines."""
    for number, line in enumerate(lines):
        if _ROOT.search(line.text):
            rank = None
            for at in range(number + 1, len(lines)):
                if rank is None and (match := _ROOT_RANK.match(lines[at].text)):
                    rank = int(match[1])
                if _ROOT_END.match(lines[at].text) or at == len(lines) - 1:
                    return rank, range(number, at)
    return None, range(0)
