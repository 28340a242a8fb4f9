"""The tracebacks of a log, and which of them ended the job. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lumitui.app.explain.failure.rules import CONSEQUENCES
from lumitui.app.explain.log.lines import LogLine

_BEGIN = "Traceback (most recent call last)"
# A traceback ends at its first line that is not indented; in torchrun's report all of it is.
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(?::|$)|^\s+[A-Za-z_][\w.]*(?:Error|Exception)(?::|$)")
# traceback.py, _cause_message and _context_message.
_CAUSED = "The above exception was the direct cause of the following exception"
_DURING = "During handling of the above exception, another exception occurred"
# Printed by a process that goes on, or that is ending already: CPython's PyErr_WriteUnraisable,
# threading.excepthook, logging.Handler.handleError, atexit.
_ASIDE = ("Exception ignored in", "Exception in thread", "--- Logging error ---", "Error in atexit")
_FRAME = re.compile(r'^\s*File "([^"]{1,500})", line (\d{1,9})(?:, in (\S{1,100}))?')
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python3|^<frozen ")
_ROOT = re.compile(r"Root Cause \(first observed failure\)")
_ROOT_RANK = re.compile(r"^\s*rank\s*: (\d{1,6}) \(local_rank")
_ROOT_SIGNAL = re.compile(r"^\s*exitcode\s*: -(?!6\b)\d")
_ROOT_END = re.compile(r"^\s*={20}")
# What a process may still write after the exception that ends it: a tracker's summary, the
# stack of a C++ abort. Behind a handled exception the training goes on.
_LAST_WORDS = 100


@dataclass(frozen=True)
class Raised:
    """One exception that was printed with its traceback."""

    line: LogLine
    """Its last line: the class and the message."""
    causes: tuple[LogLine, ...]
    """The same of the exceptions it was raised from, the last first."""
    handled: tuple[LogLine, ...]
    """The same of those that were being handled when it was raised, the last first."""
    number: int
    """Where in the log `line` is."""
    place: str = ""
    """The line of code, as `train.py:5 (attention)`; the program's own before a library's."""


@dataclass(frozen=True)
class Culprit:
    """The exception that is likeliest to have ended the job."""

    raised: Raised
    rank: int | None
    its_own: bool
    """Whether it may be of the rank that failed first; else that one left no traceback."""


def culprit(lines: Sequence[LogLine], failed_rank: int | None) -> Culprit | None:
    """Return the exception that ended the job; None where the log shows none.

    torchrun, else srun (`failed_rank`), names the rank that failed first: its last exception
    counts, since earlier ones were handled. Without a name it is the first in time of all ranks'
    last ones. An exception that only reports another rank's end does not count.
    """
    root_rank, block = _root(lines)
    if any(_ROOT_SIGNAL.match(lines[number].text) for number in block):
        # A signal ended it, no exception; one may still do before PyTorch aborts (signal 6).
        return None
    named = failed_rank if root_rank is None else root_rank
    found = sorted(_raised(lines), key=lambda raised: raised.number)
    if reported := [raised for raised in found if raised.number in block]:
        return Culprit(reported[-1], named, its_own=True)
    # A rank's own [rankN] lines are the same process as what srun labels N.
    last = {
        raised.line.source if raised.line.rank is None else raised.line.rank: raised
        for raised in found
    }
    final = sorted(
        (raised for raised in last.values() if _ended(raised, lines) and not _is_echo(raised)),
        key=lambda raised: raised.number,
    )
    if not final:
        return None
    # A traceback without a rank may be the named one's.
    for rank in () if named is None else (named, None):
        if own := [raised for raised in final if raised.line.rank == rank]:
            # Without ranks each process has its last one here: the others ended by the first.
            return Culprit(own[0] if rank is None else own[-1], named, its_own=True)
    # The named rank may only have been the first to notice.
    noticed = any(raised.line.rank == named for raised in last.values())
    return Culprit(final[0], final[0].line.rank, its_own=named is None or noticed)


def _is_echo(raised: Raised) -> bool:
    return any(rule.pattern.search(raised.line.text) for rule in CONSEQUENCES)


def _ended(raised: Raised, lines: Sequence[LogLine]) -> bool:
    """Return whether its process may have ended with it: little follows of the same rank."""
    if raised.line.rank is None:
        return True
    after = sum(line.rank == raised.line.rank for line in lines[raised.number + 1 :])
    return after <= _LAST_WORDS


def _raised(lines: Sequence[LogLine]) -> Iterator[Raised]:
    """Yield the exceptions in the order in which their tracebacks ended.

    One raised from another, or while another was handled, is one with it.
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
            continue
        if _BEGIN in text:
            open_sources.add(source)
            frames[source] = []
            if source not in link and source in ended:
                yield ended.pop(source)
        elif source in open_sources and _RAISED.match(text):
            open_sources.remove(source)
            before, how = ended.pop(source, None), link.pop(source, "")
            # torchrun's own: a rank ended, or Slurm ended the agent.
            if "ChildFailedError" in text or ("elastic" in text and "SignalException" in text):
                continue
            earlier = (before.line, *before.causes) if before else ()
            causes = earlier if how == _CAUSED else ()
            handled = (*(earlier if how == _DURING else ()), *(before.handled if before else ()))
            own = replace(line, text=text.strip())
            place = _place(frames.pop(source, []))
            ended[source] = Raised(own, causes, handled if how else (), number, place)
        elif source in open_sources and (frame := _FRAME.match(text)):
            frames.setdefault(source, []).append(frame)
        elif source in ended:
            for words in (_CAUSED, _DURING):
                if text.strip().startswith(words):
                    link[source] = words
    yield from ended.values()


def _place(frames: Sequence[re.Match[str]]) -> str:
    """Return where an exception was raised: in the program's own code, if any of it is named."""
    own = [frame for frame in frames if not _LIBRARY.search(frame[1])] or frames
    if not own:
        return ""
    path, line, name = own[-1].groups()
    where = f"{path.rpartition('/')[2]}:{line}"
    return f"{where} ({name})" if name and name != "<module>" else where


def _root(lines: Sequence[LogLine]) -> tuple[int | None, range]:
    """Return the rank in torchrun's block of the first observed failure, and where that is."""
    for number, line in enumerate(lines):
        if _ROOT.search(line.text):
            rank = None
            for at in range(number + 1, len(lines)):
                if rank is None and (match := _ROOT_RANK.match(lines[at].text)):
                    rank = int(match[1])
                if _ROOT_END.match(lines[at].text) or at == len(lines) - 1:
                    return rank, range(number, at)
    return None, range(0)
