"""Which files of a project git and the person leave out: nested .gitignore and .lumituiignore."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from pathspec import GitIgnoreSpec

from lumitui.remote.errors import InputError

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
    spec: GitIgnoreSpec
    brought_back: tuple[str, ...]
    """Paths its `!` patterns name, from the root, as far as they are literal."""

    def ignored(self, path: str) -> bool | None:
        """True, false (`!`), or None: it says nothing of `path` (a folder ends in a slash)."""
        return self.spec.check_file(path[len(self.below) :]).include


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

    def within(self, folder: Path, below: str, names: Collection[str]) -> "Ignoring":
        """These rules and those of the ignore files among `names` in `folder`."""
        own, git = (
            (*have, *([_read(folder / name, below)] if name in names else []))
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
        inside = ignored and path.endswith("/") and own is not True and self._brings_back(path)
        return Verdict(not ignored, inside)

    def _brings_back(self, folder: str) -> bool:
        return any(name.startswith(folder) for rules in self.own for name in rules.brought_back)


def _decided(stack: tuple[_Rules, ...], path: str) -> bool | None:
    for rules in reversed(stack):
        ignored = rules.ignored(path)
        if ignored is not None:
            return ignored
    return None


def _read(path: Path, below: str) -> _Rules:
    try:
        lines = path.read_text("utf-8").splitlines()
        spec = GitIgnoreSpec.from_lines(lines)
    except (OSError, ValueError) as error:
        raise InputError(
            f"The file {path} cannot be used: {error}.", "Correct or remove it."
        ) from error
    negated = [line[1:].strip().lstrip("/") for line in lines if line.startswith("!")]
    return _Rules(below, spec, tuple(below + name for name in negated))
