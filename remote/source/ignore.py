"""The excluded files of a project: nested .gitignore and .lumituiignore files.

Works on bytes like git, so `?` matches one byte.
"""

import bisect
import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lumitui.remote.site.errors import InputError
from lumitui.remote.source.git import Repository, repository

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
    """One line of an ignore file."""

    negated: bool
    folders_only: bool
    expression: bytes
    """Regular expression for the whole path from the ignore file's folder, without a trailing
    slash."""
    matches: re.Pattern[bytes]


class Patterns:
    """The patterns of one ignore file; the last match decides."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        """Read `lines` without line ends; skips lines that can never match."""
        self._last_first = [item for line in lines if (item := _parsed(line))][::-1]
        # Most paths match no pattern, which one joined expression shows.
        words = b"|".join(item.expression for item in self._last_first)
        self._any = re.compile(words, re.DOTALL) if words else None

    def ignored(self, path: bytes, *, folder: bool) -> bool | None:
        """Return True, False (`!`), or None if no pattern matches exactly this path."""
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
    """Return `line` without unescaped trailing spaces; other white space stays."""
    bare = line.rstrip(b" ")
    backslashes = len(bare) - len(bare.rstrip(b"\\"))
    return bare + b" " if backslashes % 2 and len(bare) < len(line) else bare


def _translated(pattern: bytes) -> bytes | None:
    """Return an equivalent regular expression; None for a pattern that never matches."""
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
    """Return the character class at `at` and its end; None if it is not closed."""
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
            # A reversed range is empty.
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


_FILES = (".lumituiignore", ".gitignore")


@dataclass(frozen=True)
class Inclusion:
    """The decision on one file or folder."""

    sent: bool
    enter: bool = False
    """For an excluded folder: whether to enter it, because a pattern includes something inside."""


@dataclass(frozen=True)
class _Rules:
    """One ignore file."""

    below: str
    """Its folder, "" or "a/b/"."""
    patterns: Patterns
    brought_back: tuple[str, ...]
    """The paths of its `!` patterns, from the root, as written."""
    above: str = ""
    """The project's path from the file's folder, if the file is above the project."""

    def ignored(self, path: str) -> bool | None:
        """Return True, False (`!`), or None without a match; a folder's `path` ends in `/`."""
        seen = os.fsencode(self.above + path[len(self.below) :])
        folder = seen.endswith(b"/")
        return self.patterns.ignored(seen[: len(seen) - folder], folder=folder)


@dataclass(frozen=True)
class Ignoring:
    """The ignore files from the root down to one folder.

    Among files of one kind, the deepest one with a match decides, by its last match (gitignore(5));
    a .lumituiignore at any depth overrides every .gitignore. Nothing in an excluded folder is sent,
    unless a .lumituiignore pattern with `!` and a path includes it again.
    """

    own: tuple[_Rules, ...] = ()
    """The .lumituiignore files, outermost first."""
    git: tuple[_Rules, ...] = ()
    left_out: bool = False
    """Whether the folder itself is excluded, and entered only for included parts."""
    tracked: tuple[str, ...] = ()
    """Files to send, although a pattern excludes them, because git tracks them; sorted."""
    elsewhere: frozenset[str] = frozenset()
    """Files and folders sent in another way, from the root; no rule applies to them."""

    @staticmethod
    def of(root: Path, elsewhere: frozenset[str] = frozenset()) -> "Ignoring":
        """Return the rules from outside the project: those of its repository.

        Ignores rules that exclude the project itself, because the user named it.
        """
        repo = repository(root)
        if repo is None:
            return Ignoring(elsewhere=elsewhere)
        git = tuple(_outer(repo, root))
        if repo.below and _decided(git, ""):
            return Ignoring(elsewhere=elsewhere)
        return Ignoring(git=git, tracked=repo.tracked, elsewhere=elsewhere)

    def within(self, folder: Path, below: str, names: Collection[str]) -> "Ignoring":
        """Return these rules and those of the ignore files among `names` in `folder`."""
        own, git = (
            (*have, *([_read(folder / name, below)] if _usable(folder, name, names) else []))
            for name, have in zip(_FILES, (self.own, self.git), strict=True)
        )
        return replace(self, own=own, git=git)

    def entering(self, choice: Inclusion) -> "Ignoring":
        """Return the rules inside a folder with the decision `choice`."""
        return replace(self, left_out=not choice.sent)

    def choice(self, path: str) -> Inclusion:
        """Return the decision on `path`; a folder's ends in a slash."""
        if path.removesuffix("/") in self.elsewhere:
            return Inclusion(False)
        own = _decided(self.own, path)
        ignored = self.left_out or bool(_decided(self.git, path)) if own is None else own
        if ignored and own is None and self._tracks(path) == path:
            return Inclusion(True)
        inside = ignored and path.endswith("/") and own is not True and self._brings_back(path)
        return Inclusion(not ignored, inside)

    def _brings_back(self, folder: str) -> bool:
        if self._tracks(folder).startswith(folder):
            return True
        return any(name.startswith(folder) for rules in self.own for name in rules.brought_back)

    def _tracks(self, path: str) -> str:
        """Return the first tracked file that does not sort before `path`, or ""."""
        at = bisect.bisect_left(self.tracked, path)
        return self.tracked[at] if at < len(self.tracked) else ""


def _outer(repo: Repository, root: Path) -> Iterator[_Rules]:
    """Yield git's ignore files above the project, lowest precedence first (gitignore(5))."""
    for path in repo.excludes:
        if path.is_file():
            yield replace(_read(path, ""), above=repo.below)
    parts = repo.below.split("/")[:-1]
    for depth in range(len(parts)):
        path = repo.top.joinpath(*parts[:depth]) / ".gitignore"
        if _is_plain(path):
            yield replace(_read(path, ""), above="/".join(parts[depth:]) + "/")


def _decided(stack: tuple[_Rules, ...], path: str) -> bool | None:
    for rules in reversed(stack):
        ignored = rules.ignored(path)
        if ignored is not None:
            return ignored
    return None


def _usable(folder: Path, name: str, names: Collection[str]) -> bool:
    # git does not follow links here (since 2.32), and a folder of this name is not an ignore file.
    return name in names and _is_plain(folder / name)


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _read(path: Path, below: str) -> _Rules:
    try:
        # As in git: an optional byte order mark, lines that end only in LF or CRLF, and bytes that
        # are not UTF-8 as part of patterns.
        text = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise InputError(
            f"The file {path} cannot be read: {error.strerror}.", "Make it readable, or remove it."
        ) from error
    lines = [line.removesuffix(b"\r") for line in text.split(b"\n")]
    back = [os.fsdecode(line[1:].strip().lstrip(b"/")) for line in lines if line.startswith(b"!")]
    return _Rules(below, Patterns(lines), tuple(below + name for name in back))
