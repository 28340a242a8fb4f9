"""Which files of a project are left out: nested .gitignore and .lumituiignore files."""

import bisect
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from lumitui.remote.site.errors import InputError
from lumitui.remote.source.git import Repository, repository
from lumitui.remote.source.gitignore import Patterns

_FILES = (".lumituiignore", ".gitignore")


@dataclass(frozen=True)
class Inclusion:
    """What happens to one file or folder."""

    sent: bool
    enter: bool = False
    """For a folder that is left out: enter it, since something in it is brought back."""


@dataclass(frozen=True)
class _Rules:
    """One ignore file."""

    below: str
    """The folder it is in, "" or "a/b/"."""
    patterns: Patterns
    brought_back: tuple[str, ...]
    """The paths that its `!` patterns name, from the root, as written."""
    above: str = ""
    """The project's path from the folder of the file, where that is above the project."""

    def ignored(self, path: str) -> bool | None:
        """Return true, false (`!`), or None: no pattern matches `path` (a folder's ends in `/`)."""
        seen = os.fsencode(self.above + path[len(self.below) :])
        folder = seen.endswith(b"/")
        return self.patterns.ignored(seen[: len(seen) - folder], folder=folder)


@dataclass(frozen=True)
class Ignoring:
    """The ignore files from the root down to one folder.

    Among files of one kind the deepest one with a pattern that matches decides, by its last such
    pattern (gitignore(5)); a .lumituiignore at any depth overrides every .gitignore. Nothing in a
    folder that is left out is sent, except what a .lumituiignore pattern with `!` and a path
    brings back.
    """

    own: tuple[_Rules, ...] = ()
    """The .lumituiignore files, outermost first."""
    git: tuple[_Rules, ...] = ()
    left_out: bool = False
    """Whether the folder itself is left out, and entered only for what is brought back."""
    tracked: tuple[str, ...] = ()
    """Files that git tracks although a pattern matches them, sorted; they are sent."""
    elsewhere: frozenset[str] = frozenset()
    """Files and folders that get to the site another way, from the root; no rule counts there."""

    @staticmethod
    def of(root: Path, elsewhere: frozenset[str] = frozenset()) -> "Ignoring":
        """Return the rules from outside the project: those of the repository it is part of.

        Where they leave out the project itself they do not count: the user named it.
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
        """Return the rules that hold inside a folder for which `choice` was made."""
        return replace(self, left_out=not choice.sent)

    def choice(self, path: str) -> Inclusion:
        """Return what happens to `path`; a folder's ends in a slash."""
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
        """Return the first tracked file that does not sort before `path`; "" for none."""
        at = bisect.bisect_left(self.tracked, path)
        return self.tracked[at] if at < len(self.tracked) else ""


def _outer(repo: Repository, root: Path) -> Iterator[_Rules]:
    """Yield what git reads above the project, the weakest first (gitignore(5))."""
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
    # git follows no link here (git 2.32), and a folder of this name is not a list.
    return name in names and _is_plain(folder / name)


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _read(path: Path, below: str) -> _Rules:
    try:
        # As git reads it: with or without a byte order mark, lines end in LF or CRLF and nothing
        # else, and bytes that are not UTF-8 are part of a pattern.
        text = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise InputError(
            f"The file {path} cannot be read: {error.strerror}.", "Make it readable, or remove it."
        ) from error
    lines = [line.removesuffix(b"\r") for line in text.split(b"\n")]
    back = [os.fsdecode(line[1:].strip().lstrip(b"/")) for line in lines if line.startswith(b"!")]
    return _Rules(below, Patterns(lines), tuple(below + name for name in back))
