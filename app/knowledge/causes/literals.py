"""The texts without which a line cannot fit a pattern: most lines of a log are passed over by them.

Python's own parser reads the pattern; of what has no text, the pattern is tried on every line.
"""

from re import _constants as kinds  # type: ignore[attr-defined]  # private, since Python 3.11
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

Texts = frozenset[str] | None


def literals(pattern: str) -> Texts:
    """Return texts in lower case, one of which is in every line that fits; None: not known."""
    return _texts_of(parser.parse(pattern))


def _texts_of(items: Any) -> Texts:
    """Return the texts of a sequence that rule out most lines: the longest ones."""
    best, run = None, ""
    for kind, value in items:
        if kind is kinds.LITERAL:
            run += chr(value).lower()
            continue
        repeated = kind is kinds.MAX_REPEAT and value[0] > 0 and list(value[2])
        if repeated and all(inner is kinds.LITERAL for inner, _ in repeated):
            run += "".join(chr(code).lower() for _, code in repeated)
        best = _better(best, frozenset({run}) if run else None)
        best, run = _better(best, _texts(kind, value)), ""
    return _better(best, frozenset({run}) if run else None)


def _texts(kind: Any, value: Any) -> Texts:
    """Return the texts of one part of a pattern; None for what may be empty, or fits many."""
    if kind is kinds.BRANCH:
        branches = [_texts_of(branch) for branch in value[1]]
        known = [texts for texts in branches if texts]
        return frozenset().union(*known) if len(known) == len(branches) else None
    if kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT):
        return _texts_of(value[2]) if value[0] else None
    if kind is kinds.SUBPATTERN:
        return _texts_of(value[3])
    return _texts_of(value) if kind is kinds.ATOMIC_GROUP else None


def _better(one: Texts, other: Texts) -> Texts:
    """Return the set whose shortest text is longer."""
    if one is None or other is None:
        return one if other is None else other
    return max(one, other, key=lambda texts: min(map(len, texts)))
