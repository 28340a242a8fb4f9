"""The part of a log in memory: the lines between two bytes of the log. Pure.

The rest stays on the site, and is read in pages before or after the window.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lumitui.app.runs import TracebackFolder
from lumitui.app.tui.widgets.log.line_kinds import NoiseFolder, ShownLine
from lumitui.app.tui.widgets.log.log_text import LogText

KEPT_LINES = 10_000
"""Maximum number of lines in a window."""
PAGE = 65_536
"""Bytes to read at a time before or after the window; pages begin at multiples."""
_SLACK = 500  # lines above KEPT_LINES to drop at once: dropping single lines costs more


@dataclass(frozen=True)
class LineChange:
    """The changes to a window's lines."""

    added: Sequence[ShownLine] = ()
    """New lines at the end."""
    remade: bool = False
    """Whether other lines were added, changed or dropped."""


class LogWindow:
    """Lines of a log from byte `start` to byte `end`."""

    def __init__(self, start: int = 0, *, label_is_rank: bool = True) -> None:
        """Start empty, at byte `start`."""
        self._label_is_rank = label_is_rank
        self.size = start
        """Known size of the log, in bytes."""
        self.unseen = 0
        """Number of new lines since the user last followed the log."""
        self.ranks: set[int] = set()
        """The ranks seen so far in the window."""
        self.reset(start)

    def reset(self, start: int) -> None:
        """Forget all lines; the next bytes begin at `start`."""
        self.start = self.end = start
        self._head = b"" if start else None
        # If the window begins within a line, keep that line's bytes for the page before it. None:
        # the window begins with a whole line.
        self.lines: list[ShownLine] = []
        self.partial: ShownLine | None = None
        self._text = LogText(start, label_is_rank=self._label_is_rank)
        self._tracebacks, self._noise = TracebackFolder(), NoiseFolder()
        self.size = max(self.size, start)

    @property
    def is_at_end(self) -> bool:
        """Whether no part of the log is known beyond the window's end."""
        return self.end >= self.size

    def index(self, line: ShownLine) -> int:
        """Return the index of the first line that begins at the same byte as `line`."""
        return bisect_left(self.lines, line.offset, key=lambda other: other.offset)

    def before(self) -> tuple[int, int] | None:
        """Return the byte range of the page above the window; None at the log's beginning."""
        if not self.start:
            return None
        return (self.start - 1) // PAGE * PAGE, self.start

    def append_page(self, start: int, data: bytes) -> LineChange:
        """Add a page after the window, without counting its lines as new."""
        unseen = self.unseen
        change = self.append(start, data)
        self.unseen = unseen
        return change

    def append(self, start: int, data: bytes, *, grows: bool = True) -> LineChange:
        """Add `data` from byte `start` of the log on; after a gap, the window does not change.

        It does not change either unless it `grows`: the user may be reading the lines that it would
        drop at the top.
        """
        stop = start + len(data)
        new = data[max(0, self.size - start) :]
        self.size = max(self.size, stop)
        self.unseen += new.count(b"\n")
        if start > self.end or not grows:
            return LineChange()
        data = data[self.end - start :]
        if not data:
            return LineChange()
        self.end = stop
        self._note_head(data)
        grown = self._text.feed(data)
        folded = self._fold(grown.lines)
        self._note_ranks(grown.lines)
        self.lines += grown.lines
        self.partial = grown.partial
        trimmed = len(self.lines) > KEPT_LINES + _SLACK
        if trimmed:
            self._trim_top()
        return LineChange(grown.lines, remade=grown.updated or folded or trimmed)

    def prepend(self, start: int, data: bytes) -> LineChange:
        """Add `data` from byte `start` up to the window; drop lines at the end if needed."""
        if start + len(data) != self.start:
            return LineChange()
        joined = data + (self._head or b"")
        if self._head and not self._head.endswith(b"\n"):
            self.reset(start)  # everything so far is one unfinished line
            return replace(self.append(start, joined), remade=True)
        text = LogText(start, label_is_rank=self._label_is_rank)
        above = list(text.feed(joined if joined.endswith(b"\n") else joined + b"\n").lines)
        self._note_ranks(above)
        old = [line for line in self.lines if line.offset >= start + len(joined)]
        first, ended, _ = joined.partition(b"\n")
        self._head = first + ended if start else None
        if len(above) > KEPT_LINES // 2:
            above = above[-KEPT_LINES // 2 :]
            start, self._head = above[0].offset, None
        self.start = start
        self.lines = [*above, *old]
        if len(self.lines) > KEPT_LINES:
            self._trim_end()
        self._fold_again()
        return LineChange(remade=True)

    def _note_ranks(self, lines: Sequence[ShownLine]) -> None:
        self.ranks.update(line.rank for line in lines if line.rank is not None)

    def _note_head(self, data: bytes) -> None:
        """Keep the bytes of the line within which the window begins."""
        if self._head is None or self._head.endswith(b"\n"):
            return
        piece, ended, _ = data.partition(b"\n")
        self._head += piece + ended
        if len(self._head) > PAGE:
            self._head = None  # too long to show in full

    def _trim_top(self) -> None:
        dropped = self.lines[:-KEPT_LINES]
        del self.lines[:-KEPT_LINES]
        self.start, self._head = self.lines[0].offset, None
        self._text.forget_bars(self.start)
        if any(line.folds for line in dropped):
            self._fold_again()  # a fold needs its first line, which shows the text

    def _trim_end(self) -> None:
        """Drop lines at the end, because the user reads far above it."""
        self.end = self.lines[KEPT_LINES].offset
        del self.lines[KEPT_LINES:]
        self.partial = None
        self._text = LogText(self.end, label_is_rank=self._label_is_rank)

    def _fold(self, lines: Sequence[ShownLine]) -> bool:
        """Add new lines to the folds; return whether earlier lines changed."""
        return any([self._tracebacks.feed(line) | self._noise.feed(line) for line in lines])

    def _fold_again(self) -> None:
        """Fold again, because lines were added or dropped at the beginning."""
        opened = {line.offset for line in self.lines if line.folds and line.folds.open}
        self._tracebacks, self._noise = TracebackFolder(), NoiseFolder()
        for line in self.lines:
            line.fold = line.noise = None
        self._fold(self.lines)
        for line in self.lines:
            if line.folds and line.offset in opened:
                line.folds.open = True
