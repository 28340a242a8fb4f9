"""Tracebacks that many ranks print alike, as one. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

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
