"""How values become words: without quotes, white space divides them."""

import re
from dataclasses import replace

from lumitui.app.knowledge.bash.words.origins import Piece, Pieces

MOST = 2_000
"""Words of one command."""


def splitting(pieces: Pieces) -> Pieces:
    """Return a value as it is without quotes: white space divides it."""
    return tuple(
        replace(piece, kind="split") if piece.kind == "literal" else piece for piece in pieces
    )


def listed(items: tuple[Pieces, ...], *, quoted: bool) -> Pieces:
    """Return `"${A[@]}"`: each item a word."""
    found: list[Piece] = []
    for item in items:
        if found:
            found.append(replace(found[-1], text="", kind="break"))
        found += item if quoted else splitting(item)
    return tuple(found)


def divided(pieces: Pieces) -> list[Pieces]:
    """Divide pieces into words, as bash does after its expansions."""
    words: list[Pieces] = []
    current: list[Piece] = []
    for piece in pieces:
        if piece.kind == "break":
            words.append(tuple(current))
            current = []
            continue
        if piece.kind != "split":
            current.append(piece)
            continue
        at = 0
        for match in re.finditer(r"\s+", piece.text):
            if match.start() > at:
                current.append(_part(piece, at, match.start()))
            if current:
                words.append(tuple(current))
                current = []
            at = match.end()
        if at < len(piece.text):
            current.append(_part(piece, at, len(piece.text)))
    if current:
        words.append(tuple(current))
    return words[:MOST]


def _part(piece: Piece, start: int, end: int) -> Piece:
    return replace(piece, text=piece.text[start:end], start=piece.start + start)
