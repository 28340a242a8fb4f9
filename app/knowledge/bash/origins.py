"""The origin of each character of a text, through quotes, variables and `bash -c`.

A value is a tuple of pieces. Each piece knows the file and the offset of its first character, so
that a word inside `bash -c "$CMD"` has its position where `CMD` was written.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from lumitui.app.knowledge.script_job import Shell
from lumitui.remote.site.source_position import NOWHERE, Position


class File:
    """A text as its user wrote it, addressed by lines and columns."""

    def __init__(self, text: str, name: str = "") -> None:
        """Keep `text` of the file `name` ("": the script itself)."""
        self.text, self.name = text, name
        self._starts = [0]
        for line in text.split("\n")[:-1]:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def position(self, start: int, end: int) -> Position:
        """Return the position of the characters from `start` to before `end`."""
        line, column = self._place(start)
        end_line, end_column = self._place(max(start, end))
        return Position(line, column, end_line, end_column, self.name)

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


Kind = Literal["literal", "split", "unknown", "break"]
"""`literal`: known, and never split. `split`: known, from an unquoted variable; white space splits
it. `unknown`: an expansion as written. `break`: the end of a word."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a value whose characters are consecutive in one file."""

    text: str
    file: File
    start: int
    kind: Kind = "literal"
    shell: Shell = "batch"
    """The shell that expands an unknown piece."""
    inert: bool = False
    """Whether it is a literal in which no shell expands variables: quoted or after a backslash."""


Pieces = tuple[Piece, ...]


def plain(pieces: Iterable[Piece]) -> str:
    """Return the text of pieces, with unknown ones as written."""
    return "".join(piece.text for piece in pieces)


def known(pieces: Iterable[Piece]) -> str | None:
    """Return the text of pieces, or None if any is unknown."""
    held = tuple(pieces)
    return None if any(piece.kind == "unknown" for piece in held) else plain(held)


class ParsedSource:
    """A text to parse: a file, or the input of a shell within the script."""

    def __init__(self, pieces: Pieces) -> None:
        """Keep `pieces`, whose joined texts are the text."""
        self.pieces = tuple(piece for piece in pieces if piece.text)
        self.text = plain(self.pieces)
        self._starts, at = [], 0
        for piece in self.pieces:
            self._starts.append(at)
            at += len(piece.text)

    @classmethod
    def of(cls, file: File) -> "ParsedSource":
        """Return a file as a source."""
        return cls((Piece(file.text, file, 0),))

    def cut(self, start: int, end: int, *, inert: bool = False) -> Pieces:
        """Return the characters from `start` to before `end` as literal pieces."""
        found = []
        index = bisect_right(self._starts, start) - 1
        while 0 <= index < len(self.pieces) and self._starts[index] < end:
            piece, at = self.pieces[index], self._starts[index]
            low, high = max(0, start - at), min(len(piece.text), end - at)
            if low < high:
                found.append(
                    Piece(piece.text[low:high], piece.file, piece.start + low, inert=inert)
                )
            index += 1
        return tuple(found)

    def unknown(self, start: int, end: int, shell: Shell) -> Piece:
        """Return the expansion from `start` to before `end` as one piece that `shell` expands.

        If an outer shell has already made the expansion, it stays that shell's.
        """
        index = max(0, bisect_right(self._starts, start) - 1)
        if not self.pieces:
            return Piece("", File(""), 0, "unknown", shell)
        piece = self.pieces[index]
        outer = piece.shell if piece.kind == "unknown" else shell
        offset = piece.start + start - self._starts[index]
        return Piece(self.text[start:end], piece.file, offset, "unknown", outer)

    def made_outside(self, start: int) -> bool:
        """Return whether an outer shell inserted the text at `start`."""
        index = bisect_right(self._starts, start) - 1
        return 0 <= index < len(self.pieces) and self.pieces[index].kind == "unknown"

    def position(self, start: int, end: int) -> Position:
        """Return the position at which the characters from `start` to before `end` were written."""
        return span(self.cut(start, end)) if self.pieces else NOWHERE


def span(pieces: Pieces) -> Position:
    """Return the position from the first piece to the last, if both are in one file."""
    held = [piece for piece in pieces if piece.text]
    if not held:
        return NOWHERE
    first, last = held[0], held[-1]
    end = last.start + len(last.text)
    if last.file is not first.file or end <= first.start:
        end = first.start + len(first.text)
    return first.file.position(first.start, end)


def unsplit(pieces: Pieces) -> Pieces:
    """Return pieces as a variable stores them: white space does not split them."""
    return tuple(
        replace(piece, kind="literal") if piece.kind == "split" else piece
        for piece in pieces
        if piece.kind != "break"
    )
