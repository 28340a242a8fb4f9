"""Which files of a project git and the person leave out: nested .gitignore and .lumituiignore."""

import bisect
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lumitui.remote.errors import InputError
from lumitui.remote.source.git import Repository, repository
from lumitui.remote.source.gitignore import Patterns

_FILES = (".lumituiignore", ".gitignore")


@dataclass(frozen=True)
class Verdict:
    """What happens to one file or folder."""

    shipped: bool
    look_inside: bool = False
    """For a folder that is left out: a .lumituiignore brings back something in it."""


@dataclass(frozen=True)
class _Rules:
    """One ignore file."""

    below: str
    """The folder it stands in, "" or "a/b/"."""
    patterns: Patterns
    brought_back: tuple[str, ...]
    """Paths its `!` patterns name, from the root, as far as they are literal."""
    above: str = ""
    """The project's path from the folder the file stands in, when that is further up."""

    def ignored(self, path: str) -> bool | None:
        """True, false (`!`), or None: it says nothing of `path` (a folder ends in a slash)."""
        seen = os.fsencode(self.above + path[len(self.below) :])
        folder = seen.endswith(b"/")
        return self.patterns.ignored(seen[: len(seen) - folder], folder=folder)


@dataclass(frozen=True)
class Ignoring:
    """The ignore files from the root down to one folder.

    Of one kind the deepest file that speaks decides, in it the last pattern (gitignore(5)); a
    .lumituiignore at any depth decides before any .gitignore. Inside a folder that is left out
    nothing is shipped, except what a .lumituiignore pattern with `!` and a path brings back.
    """

    own: tuple[_Rules, ...] = ()
    """The .lumituiignore files, outermost first."""
    git: tuple[_Rules, ...] = ()
    left_out: bool = False
    """Whether the folder itself is left out and only looked into."""
    tracked: tuple[str, ...] = ()
    """Files that a rule would leave out and git tracks all the same, sorted; they are shipped."""

    @staticmethod
    def of(root: Path) -> "Ignoring":
        """The rules that come from outside the project: those of the repository it is part of.

        A project that they leave out itself was meant all the same: then they do not count.
        """
        found = repository(root)
        if found is None:
            return Ignoring()
        git = tuple(_outer(found, root))
        if found.below and _decided(git, ""):
            return Ignoring()
        return Ignoring(git=git, tracked=found.tracked)

    def within(self, folder: Path, below: str, names: Collection[str]) -> "Ignoring":
        """These rules and those of the ignore files among `names` in `folder`."""
        own, git = (
            (*have, *([_read(folder / name, below)] if _usable(folder, name, names) else []))
            for name, have in zip(_FILES, (self.own, self.git), strict=True)
        )
        return replace(self, own=own, git=git)

    def entering(self, verdict: Verdict) -> "Ignoring":
        """The rules as they hold inside a folder that got `verdict`."""
        return replace(self, left_out=not verdict.shipped)

    def verdict(self, path: str) -> Verdict:
        """What happens to `path`; a folder's ends in a slash."""
        own = _decided(self.own, path)
        ignored = self.left_out or bool(_decided(self.git, path)) if own is None else own
        if ignored and own is None and self._tracks(path) == path:
            return Verdict(True)
        inside = ignored and path.endswith("/") and own is not True and self._brings_back(path)
        return Verdict(not ignored, inside)

    def _brings_back(self, folder: str) -> bool:
        if self._tracks(folder).startswith(folder):
            return True
        return any(name.startswith(folder) for rules in self.own for name in rules.brought_back)

    def _tracks(self, path: str) -> str:
        """The first tracked file that is not before `path` in order; "" for none."""
        at = bisect.bisect_left(self.tracked, path)
        return self.tracked[at] if at < len(self.tracked) else ""


def _outer(found: Repository, root: Path) -> Iterator[_Rules]:
    """What git reads above the project, the weakest first (gitignore(5))."""
    for path in found.excludes:
        if path.is_file():
            yield replace(_read(path, ""), above=found.below)
    parts = found.below.split("/")[:-1]
    for depth in range(len(parts)):
        path = found.top.joinpath(*parts[:depth]) / ".gitignore"
        if _is_plain(path):
            yield replace(_read(path, ""), above="/".join(parts[depth:]) + "/")


def _decided(stack: tuple[_Rules, ...], path: str) -> bool | None:
    for rules in reversed(stack):
        ignored = rules.ignored(path)
        if ignored is not None:
            return ignored
    return None


def _usable(folder: Path, name: str, names: Collection[str]) -> bool:
    # git follows no link here (git 2.32), and takes no folder for a list.
    return name in names and _is_plain(folder / name)


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _read(path: Path, below: str) -> _Rules:
    try:
        # As git reads it: with or without byte order mark, lines end in LF or CRLF and in
        # nothing else, and other bytes than UTF-8 are patterns like others.
        text = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise InputError(
            f"The file {path} cannot be read: {error.strerror}.", "Make it readable, or remove it."
        ) from error
    lines = [line.removesuffix(b"\r") for line in text.split(b"\n")]
    back = [os.fsdecode(line[1:].strip().lstrip(b"/")) for line in lines if line.startswith(b"!")]
    return _Rules(below, Patterns(lines), tuple(below + name for name in back))
