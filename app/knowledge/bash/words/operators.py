"""The operators of `${X…}` on a value that is known."""

import re
from fnmatch import translate

_LONGEST = 1_000
"""Characters of a value from which a pattern is cut off: each place is tried."""


def changed(text: str, operator: str) -> str | None:
    """Return `text` after `%.py`, `##*/`, `/a/b`, `:0:4`, `^^` or `,,`; None: not understood."""
    if match := re.fullmatch(r"(%%?|##?)([^$]*)", operator, re.DOTALL):
        return _trimmed(text, match[1], match[2].strip("\"'"))
    if match := re.fullmatch(r"(//?)([^/$*?\[]+)/?([^$]*)", operator, re.DOTALL):
        return text.replace(match[2], match[3], -1 if match[1] == "//" else 1)
    if match := re.fullmatch(r": ?(-?\d{1,6})(?::(\d{1,6}))?", operator):
        start = int(match[1])
        rest = text[start:]
        return rest[: int(match[2])] if match[2] else rest
    return {"^^": text.upper(), ",,": text.lower()}.get(operator)


def _trimmed(text: str, operator: str, pattern: str) -> str | None:
    if len(text) > _LONGEST or pattern.count("*") > 4:
        return None
    matches = re.compile(translate(pattern)).match
    cuts = range(len(text) + 1)
    if operator[0] == "%":
        fits = [cut for cut in cuts if matches(text[cut:])]
        return text[: (fits[-1] if operator == "%" else fits[0])] if fits else text
    fits = [cut for cut in cuts if matches(text[:cut])]
    return text[(fits[0] if operator == "#" else fits[-1]) :] if fits else text
