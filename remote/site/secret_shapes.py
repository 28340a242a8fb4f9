"""Contents that have the shape of a key: a search that reads in pieces."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lumitui.remote.site.key_shapes import SHAPES, KeyShape


@dataclass(frozen=True)
class KeyMark:
    """One place in a file that has the shape of a key."""

    shape: str
    """The id of the shape."""
    line: int
    """Counted from 1."""


_AROUND = 1024
"""Bytes of the last piece that are searched again with the next one: no shape needs more."""
_MOST_MARKS = 5
_BY_ID = {shape.id: shape for shape in SHAPES}


def is_shape(name: str) -> bool:
    """Whether `name` is the id of a shape."""
    return name in _BY_ID


def shape_of(mark: KeyMark) -> KeyShape:
    """Return what the mark shows."""
    return _BY_ID[mark.shape]


@dataclass(frozen=True)
class _Group:
    """Shapes that begin with one character: one search finds all of them.

    A search for one character jumps from one to the next. Where any of several may come, the
    same search took ten times as long, and the words of detect-secrets a thousand times.
    """

    keyword: bytes
    anywhere: re.Pattern[bytes]
    shapes: tuple[tuple[re.Pattern[bytes], KeyShape], ...]

    @staticmethod
    def of(shapes: Sequence[KeyShape]) -> "_Group":
        first, rest = shapes[0].expression[:1], [shape.expression[1:] for shape in shapes]
        anywhere = re.compile(re.escape(first) + b"(?:" + b"|".join(rest) + b")")
        return _Group(
            shapes[0].keyword,
            anywhere,
            tuple((re.compile(shape.expression), shape) for shape in shapes),
        )

    def places(self, data: bytes) -> Iterator[tuple[int, KeyShape]]:
        """Yield where the shapes of the group are."""
        for place in self.anywhere.finditer(data):
            at = place.start()
            inside = _inside_a_word(data, at)
            for pattern, shape in self.shapes:
                if inside and not shape.within:
                    continue
                match = pattern.match(data, at)
                if match and not (match.lastindex and _is_placeholder(match[1])):
                    yield at, shape


def _grouped() -> tuple[_Group, ...]:
    groups: dict[bytes, list[KeyShape]] = {}
    for shape in SHAPES:
        groups.setdefault(shape.keyword or shape.expression[:1], []).append(shape)
    return tuple(map(_Group.of, groups.values()))


_GROUPS = _grouped()
RULES_ID = hashlib.sha256(repr(SHAPES).encode()).hexdigest()[:16]
"""Names this table: what was found with another one is not believed."""


def _inside_a_word(data: bytes, at: int) -> bool:
    """Whether a letter or digit comes before, as in `task-…`."""
    before = data[at - 1 : at]  # the n of a line end in quotes is not a letter
    return before.isalnum() and data[max(at - 2, 0) : at] not in (rb"\n", rb"\t", rb"\r")


_EXAMPLE = re.compile(rb"example|your|x{6}|\*{3}|\.{3}|<|dummy|placeholder", re.IGNORECASE)


def _is_placeholder(secret: bytes) -> bool:
    """Whether a user wrote it to show where a key goes: `hf_xxxxxxxx`, `AKIA…EXAMPLE`."""
    return _EXAMPLE.search(secret) is not None or len(set(secret.strip(b"-_."))) <= 2


def marks_in(text: bytes) -> tuple[KeyMark, ...]:
    """Return where a short text, which is not a file of settings, has the shape of a key."""
    search = ShapeSearch()
    search.feed(text)
    return tuple(mark for mark in search.marks if not shape_of(mark).settings_only)


class ShapeSearch:
    """Looks for shapes of keys in a file that is read piece by piece."""

    def __init__(self) -> None:
        """Nothing was read yet."""
        self._last = b""  # what was searched last
        self._line = 1
        self._wide = False
        self._found: dict[str, KeyMark] = {}

    def feed(self, piece: bytes) -> None:
        """Search the next piece."""
        if not self._last and piece[:2] in (b"\xff\xfe", b"\xfe\xff"):
            self._wide = True
        if self._wide:  # UTF-16, as Windows writes it: keys are ASCII, so half of it is zeros
            piece = piece.replace(b"\0", b"")
        data = self._beginning() + piece
        for group in _GROUPS:
            if group.keyword and group.keyword not in data:
                continue
            for at, shape in group.places(data):
                if shape.id not in self._found and len(self._found) < _MOST_MARKS:
                    line = self._line + data.count(b"\n", 0, at)
                    self._found[shape.id] = KeyMark(shape.id, line)
        self._last = data

    def _beginning(self) -> bytes:
        """Return the end of the last piece; the lines before it are counted."""
        passed = max(len(self._last) - _AROUND, 0)
        self._line += self._last.count(b"\n", 0, passed)
        return self._last[passed:]

    @property
    def marks(self) -> tuple[KeyMark, ...]:
        """The first place of each shape that was found, in the order of the lines."""
        return tuple(sorted(self._found.values(), key=lambda mark: mark.line))
