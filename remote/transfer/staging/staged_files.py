"""What there is to stage: the files and links of a folder, and which of them must not be sent."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lumitui.remote.site.secret_shapes import KeyMark, ShapeSearch, shape_of
from lumitui.remote.source.guard import covering, head_of
from lumitui.remote.source.outside_links import Follow, hops, way
from lumitui.remote.source.project_walk import FolderWalk
from lumitui.remote.source.scan import opened
from lumitui.remote.source.secret_names import has_settings, secret_name

MOST_FILES = 200_000
"""More files in one item load a parallel file system more than they help; packed they are one."""
_MOST_REFUSED = 1000
"""What cannot be sent is named; after so many the rest is not looked at."""
_SEARCHED = 1 << 18  # bytes: a key has less; larger files are searched when they are sent
_MOST_SEARCHED = 200


@dataclass(frozen=True)
class Allowed:
    """The files of an item that the user wants to be sent, whatever they look like."""

    words: Sequence[str] = ()
    """Patterns as `ship_secrets:` has them: from the item, or from the folder that it is in."""
    heeded: set[str] = field(default_factory=set)
    """Those that name a file which looks like a secret, or which others may not read."""

    def names(self, root: Path, path: str) -> bool:
        """Whether a pattern names the file at `path` of the item at `root`."""
        own = root.name if path == "." else f"{root.name}/{path}"
        word = covering(self.words, path) or covering(self.words, own)
        if word is not None:
            self.heeded.add(word)
        return word is not None


def looks_like(root: Path, path: str) -> str:
    """Return which secret the file at `path` of the folder `root` seems to be; "": none.

    The names of the folders count that the item is in: all of `~/.ssh` is one.

    Raises:
        OSError: its contents decide, and cannot be read.
    """
    rule = secret_name("/".join([*root.parts[-2:], path]))
    if rule is None or (
        rule.holds and not rule.holds(head_of(opened(Path(os.path.realpath(root / path)))))
    ):
        return ""
    return rule.what


class StagedFiles(FolderWalk):
    """What there is to stage under one name, before a byte of it is read: all, or it is refused."""

    def __init__(
        self, name: str, root: Path, allow: Allowed, follow: Follow, enough: int | None = None
    ) -> None:
        """Stop after `enough` files and links; None: after the most that can be sent."""
        super().__init__(root, follow)
        self.name, self.allow = name, allow
        self.private: list[str] = []
        """What other people of this machine may not read: files, or "." for the folder."""
        self._enough = MOST_FILES + 1 if enough is None else enough

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(info.st_size for info in self.files.values())

    @property
    def single(self) -> str:
        """The name of the one file; "" for a folder."""
        return "" if self.root.is_dir() else self.root.name

    @property
    def top(self) -> Path:
        """The folder that the paths of the files are below."""
        return self.root.parent if self.single else self.root

    def find_private(self) -> None:
        """Note what other people here may not read, unless a pattern names it."""
        paths = [path for path, info in self.files.items() if not info.st_mode & 0o004]
        if not self.single and not self.root.stat().st_mode & 0o004:
            paths = ["."]
        self.private = [path for path in paths if not self.allow.names(self.top, path)]

    @property
    def full(self) -> bool:
        """Whether the walk has met enough."""
        return (
            len(self.files) + len(self.links) >= self._enough or len(self.refused) >= _MOST_REFUSED
        )

    def objection(self, path: str, place: str, target: str | None) -> str:
        """Return why the entry at `place` cannot be sent, or ""."""
        at = Path(place)
        what = looks_like(at.parent, at.name) or looks_like(self.root, path)
        if what and not self._allowed(path):
            return f"looks like {what}"
        if target is None:
            return ""
        if not at.exists():
            return f"is a link to {target!r}, which is not a file"
        if self.stays_inside(path, target, place):
            return ""
        if not self.follow.names(path, f"{self.root.name}/{path}"):
            return (
                f"is a link out of the folder, to {way(target, at)}; to send what is there, "
                f"write `follow_links: [{path}]`"
            )
        for hop in hops(at):
            what = looks_like(hop.parent, hop.name)
            if what and not self._allowed(path):
                return f"is a link to {hop}, which looks like {what}"
        return ""

    def add(self, path: str, info: os.stat_result, real: Path | None = None) -> None:
        """Add a file, and search it for keys when it is small and behind a link."""
        super().add(path, info, real)
        if real is not None and len(self.follow.taken) <= _MOST_SEARCHED:
            what = key_in(real, info)
            if what and not self._allowed(path):
                self.refuse(path, f"leads to {real}, which has {what}")

    def _allowed(self, path: str) -> bool:
        return self.allow.names(self.root, path)


def key_in(real: Path, info: os.stat_result) -> str:
    """Return what a small file holds that has the shape of a key, or ""."""
    if info.st_size > _SEARCHED:
        return ""
    search = ShapeSearch()
    search.feed(head_of(opened(real)))
    return said_of(real, search.marks)


def said_of(real: Path, marks: Iterable[KeyMark]) -> str:
    """Return what the first of the `marks` in the file at `real` shows, with its line, or ""."""
    for mark in marks:
        shape = shape_of(mark)
        if not shape.settings_only or has_settings(real.name):
            return f"{shape.what} in line {mark.line}"
    return ""
