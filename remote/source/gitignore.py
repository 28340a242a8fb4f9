"""Patterns of ignore files as git reads them (gitignore(5)), one level of a tree at a time.

git works on bytes, so `?` is one byte here too.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_CLASSES = {
    b"alnum": b"0-9A-Za-z",
    b"alpha": b"A-Za-z",
    b"blank": b" \\t",
    b"cntrl": b"\\x00-\\x1f\\x7f",
    b"digit": b"0-9",
    b"graph": b"!-~",
    b"lower": b"a-z",
    b"print": b" -~",
    b"punct": rb"!-/:-@\[-`{-~",
    b"space": b"\\t-\\r ",
    b"upper": b"A-Z",
    b"xdigit": b"0-9A-Fa-f",
}


@dataclass(frozen=True)
class Pattern:
    """One line of a list."""

    negated: bool
    folders_only: bool
    expression: bytes
    """A regular expression for the whole path from the folder of the list, no slash at the end."""
    matches: re.Pattern[bytes]


class Patterns:
    """The patterns of one list; the last one that matches decides."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        """Read `lines`, without their ends; a line that can never match is skipped."""
        self._last_first = [item for line in lines if (item := _parsed(line))][::-1]
        # Most paths match nothing: one expression shows that.
        words = b"|".join(item.expression for item in self._last_first)
        self._any = re.compile(words, re.DOTALL) if words else None

    def ignored(self, path: bytes, *, folder: bool) -> bool | None:
        """Return true, false (`!`), or None: no pattern matches exactly this path."""
        if self._any is None or not self._any.fullmatch(path):
            return None
        for item in self._last_first:
            if (folder or not item.folders_only) and item.matches.fullmatch(path):
                return not item.negated
        return None


def _parsed(line: bytes) -> Pattern | None:
    if line.startswith(b"#"):
        return None
    line = _without_spaces(line)
    negated = line.startswith(b"!")
    line = line[negated:]
    folders_only = line.endswith(b"/")
    line = line[: len(line) - folders_only]
    anywhere = b"/" not in line
    expression = _translated(line.removeprefix(b"/"))
    if not line or expression is None:
        return None
    if anywhere:
        expression = b"(?:.*/)?" + expression
    # In a group, because the expressions are joined with "|".
    expression = b"(?:" + expression + b")"
    return Pattern(negated, folders_only, expression, re.compile(expression, re.DOTALL))


def _without_spaces(line: bytes) -> bytes:
    """Return `line` without trailing spaces that no backslash protects; other blanks stay."""
    bare = line.rstrip(b" ")
    backslashes = len(bare) - len(bare.rstrip(b"\\"))
    return bare + b" " if backslashes % 2 and len(bare) < len(line) else bare


def _translated(pattern: bytes) -> bytes | None:
    """Return a regular expression with the same meaning; None for what never matches."""
    out, at = b"", 0
    while at < len(pattern):
        char = pattern[at : at + 1]
        stars = re.match(rb"\*+", pattern[at:])
        if stars:
            begins = at == 0 or pattern[at - 1 : at] == b"/"
            at += stars.end()
            whole = begins and stars.end() > 1 and pattern[at : at + 1] in (b"", b"/")
            if whole and pattern[at : at + 1] == b"/":
                out, at = out + b"(?:.*/)?", at + 1
            else:
                out += b".*" if whole else b"[^/]*"
            continue
        if char == b"[":
            bracket = _bracket(pattern, at)
            if bracket is None:
                return None
            text, at = bracket
            out += text
            continue
        if char == b"\\":
            at += 1
            if at == len(pattern):
                return None
            char = pattern[at : at + 1]
            out += re.escape(char)
        else:
            out += b"[^/]" if char == b"?" else re.escape(char)
        at += 1
    return out


def _bracket(pattern: bytes, at: int) -> tuple[bytes, int] | None:
    """Return the class that begins at `at`, and where it ends; None: it never ends."""
    at += 1
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    inside: list[bytes] = []
    first = True
    while first or pattern[at : at + 1] != b"]":
        first = False
        named = re.match(rb"\[:(\w*):\]", pattern[at:])
        if named:
            if named[1] not in _CLASSES:
                return None
            inside.append(_CLASSES[named[1]])
            at += named.end()
            continue
        low = _literal(pattern, at)
        if low is None:
            return None
        char, at = low
        if pattern[at : at + 1] == b"-" and pattern[at + 1 : at + 2] not in (b"]", b""):
            high = _literal(pattern, at + 1)
            if high is None:
                return None
            end, at = high
            # A range that runs backwards is empty.
            inside += [re.escape(char) + b"-" + re.escape(end)] if char <= end else []
        else:
            inside.append(re.escape(char))
    body = b"".join(inside)
    if negated:
        return (b"[^/" + body + b"]"), at + 1
    return (b"(?!/)[" + body + b"]" if body else b"(?!)"), at + 1


def _literal(pattern: bytes, at: int) -> tuple[bytes, int] | None:
    at += pattern[at : at + 1] == b"\\"
    return (pattern[at : at + 1], at + 1) if at < len(pattern) else None
