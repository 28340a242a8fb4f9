"""A log's bytes as lines of text without control characters; colours stay. Pure.

A progress bar overwrites its line with carriage returns: only its last state is shown. Under `srun
--label`, srun splits a bar into pieces of 1,024 bytes, each with a label and a newline
(MAX_MSG_LEN in slurmstepd's io.c): here, each rank's bar is one line that is updated.
"""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.style import Style

from lumitui.app.runs import coloured_parts, log_line_of
from lumitui.app.tui.widgets.log.ansi import NOTHING, after
from lumitui.app.tui.widgets.log.line_kinds import ShownLine

MAX_LINE = 8000
"""Maximum bytes of a line; a longer one is split, so that it cannot fill the memory."""
_PIECE = 1024  # bytes of a task's output after which srun inserts a newline
# The label that srun --label writes.
_LABEL = re.compile(r" *\d{1,6}: ?")
_FULL = re.compile(r"\b100 ?%")


@dataclass(slots=True)
class _Bar:
    """A progress bar that may still grow."""

    line: ShownLine
    tail: str
    """The text after the last carriage return."""
    cut: bool
    """Whether the rest of `tail` is in the next piece."""


def collapse(line: str) -> str:
    r"""Return the final text of a line that overwrites itself with `\r`."""
    return line if "\r" not in line else line.rstrip("\r").rpartition("\r")[2]


@dataclass(frozen=True)
class Grown:
    """The lines resulting from further bytes."""

    lines: Sequence[ShownLine]
    """The newly completed lines."""
    partial: ShownLine | None
    """The unfinished last line."""
    updated: bool
    """Whether a bar of an earlier line has changed."""


class LogText:
    """Turns a stream of log bytes into lines."""

    def __init__(self, offset: int = 0, *, label_is_rank: bool = True) -> None:
        """Start at the beginning of a line, at byte `offset`.

        `label_is_rank`: whether srun's labels are ranks; otherwise they number launchers.
        """
        self._offset = offset
        self._rest = b""
        self._label_is_rank = label_is_rank
        self._bars: dict[str, _Bar] = {}
        self._updated = False

    def feed(self, data: bytes) -> Grown:
        """Add the next bytes, which may begin or end within a character or line."""
        *whole, rest = (self._rest + data).split(b"\n")
        lines: list[ShownLine] = []
        self._updated = False
        for line in whole:
            lines += self._pieces(line)
            self._offset += len(line) + 1
        if len(rest) > MAX_LINE:
            short = _without_overwritten(rest)
            self._offset += len(rest) - len(short)
            cut = len(short) - len(short) % MAX_LINE if len(short) > MAX_LINE else 0
            lines += self._pieces(short[:cut]) if cut else []
            self._offset += cut
            rest = short[cut:]
        self._rest = rest
        partial = None
        if rest:
            text = codecs.getincrementaldecoder("utf-8")("replace").decode(rest)
            partial = self._shown(_collapsed(text))
        return Grown(lines, partial, self._updated)

    def forget_bars(self, before: int) -> None:
        """Forget the bars of dropped lines, those that begin before byte `before`."""
        self._bars = {key: bar for key, bar in self._bars.items() if bar.line.offset >= before}

    def _pieces(self, data: bytes) -> list[ShownLine]:
        """Return a line, split if long; empty for a piece of an already displayed bar."""
        text = data.decode("utf-8", "replace")
        if len(data) <= MAX_LINE:
            line = self._bar(text, len(data)) if "\r" in text or self._bars else self._shown(text)
            return [line] if line else []
        text = _collapsed(text)
        pieces = [text[at : at + MAX_LINE] for at in range(0, len(text), MAX_LINE)]
        return [self._shown(piece) for piece in pieces] or [self._shown("")]

    def _bar(self, text: str, size: int) -> ShownLine | None:
        """Return a line with its bar collapsed; None if it updates its rank's bar."""
        label = _LABEL.match(text)
        if label is None:
            return self._shown(_collapsed(text))
        source, payload = label[0], text[label.end() :]
        old = self._bars.pop(source, None)
        if old is not None and old.cut:
            payload = old.tail + payload
        elif "\r" not in payload:
            return self._shown(text)
        parts = payload.rstrip("\r").split("\r")
        cut = size - label.end() >= _PIECE
        # The last part may continue in the next piece.
        shown = next((part for part in reversed(parts[:-1]) if part), parts[-1])
        shown = source + (shown if cut else parts[-1])
        line = self._shown(shown)
        if old is None or _FULL.search(old.line.text):
            self._bars[source] = _Bar(line, parts[-1], cut)
            return line
        self._updated |= old.line.text != line.text
        old.line.text, old.line.spans = line.text, line.spans
        self._bars[source] = _Bar(old.line, parts[-1], cut)
        return None

    def _shown(self, text: str) -> ShownLine:
        whole, spans = _styled(coloured_parts(text))
        line = log_line_of(whole, label_is_rank=self._label_is_rank)
        label = len(whole.rstrip()) - len(line.text) if line.source else 0
        return ShownLine(self._offset, whole, line.source, line.rank, label, spans)


def _styled(parts: list[tuple[str, str]]) -> tuple[str, tuple[tuple[int, int, Style], ...]]:
    if len(parts) == 1:
        return parts[0][1], ()
    text, spans, style = "", list[tuple[int, int, Style]](), NOTHING
    for codes, part in parts:
        style = after(style, codes) if codes else style
        if part and style:
            spans.append((len(text), len(text) + len(part), style))
        text += part
    return text, tuple(spans)


def _collapsed(text: str) -> str:
    """Return the final text of a line, including its label."""
    if "\r" not in text:
        return text
    label = _LABEL.match(text)
    return (label[0] if label else "") + collapse(text[label.end() :] if label else text)


def _without_overwritten(rest: bytes) -> bytes:
    # A "\r" at the very end has not overwritten anything yet.
    before, sign, last = rest.rstrip(b"\r").rpartition(b"\r")
    del before
    return last + rest[len(rest.rstrip(b"\r")) :] if sign else rest
