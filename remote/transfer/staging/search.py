"""The walk over a folder to stage: its files and links, and where links lead out of it."""

import os
import posixpath
from collections.abc import Iterable, Iterator
from pathlib import Path

from lumitui.remote.site.errors import InputError
from lumitui.remote.site.secret_shapes import KeyMark, ShapeSearch, shape_of
from lumitui.remote.source.guard import head_of
from lumitui.remote.source.outside_links import Follow, hops, way
from lumitui.remote.source.project_walk import is_system
from lumitui.remote.source.scan import opened
from lumitui.remote.source.secret_names import has_settings
from lumitui.remote.transfer.staging.suspects import Allowed, looks_like

MOST_REFUSED = 1000
"""What cannot be sent is named; after so many the rest is not looked at."""
_SEARCHED = 1 << 18  # bytes: a key has less; larger files are searched when they are sent
_MOST_SEARCHED = 200


class Search:
    """A walk over a folder to stage: what is in it, and what cannot be sent."""

    def __init__(self, root: Path, allow: Allowed, follow: Follow) -> None:
        """Nothing was met yet."""
        self.root, self.allow, self.follow = root, allow, follow
        self.files: dict[str, os.stat_result] = {}
        self.links: dict[str, str] = {}
        self.refused: list[str] = []
        self._within = [root]

    def walk(self, folder: Path, below: str = "") -> Iterator[int]:
        """Take everything in `folder`; yield the number of files and links after each entry."""
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            raise InputError(
                f"The folder {folder} cannot be read: {error.strerror}.", "Make it readable."
            ) from error
        for entry in entries:
            path = below + entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from self.walk(folder / entry.name, path + "/")
                continue
            try:
                why = self._take(path, entry)
                if not why and path not in self.files and path not in self.links:
                    yield from self._enter(path, Path(os.path.realpath(entry.path)))
            except OSError as error:
                why = f"cannot be read ({error.strerror})"
            if why:
                self.refused.append(f"{path!r} {why}")
            yield len(self.files) + len(self.links)

    def _take(self, path: str, entry: os.DirEntry[str]) -> str:
        """Add one entry; return why it cannot be, or "". A folder behind a link is not added."""
        place = Path(entry.path)
        what = looks_like(place.parent, place.name) or looks_like(self.root, path)
        if what and not self.allow.names(self.root, path):
            return f"looks like {what}"
        if entry.is_symlink():
            target = os.readlink(entry.path)
            if _inside(self.root, path, target) and place == self.root / path:
                self.links[path] = target
                return ""
            return self._lead(path, target, place)
        if not entry.is_file():
            return "is neither a file nor a folder"
        self.files[path] = os.lstat(place)
        if len(self._within) > 1:
            return self._behind(path, place)
        return ""

    def _lead(self, path: str, target: str, place: Path) -> str:
        """Add the file that a link out of the folder leads to; return why it cannot be, or ""."""
        real = Path(os.path.realpath(place))
        if not real.is_file() and not real.is_dir():
            return f"is a link to {target!r}, which is not a file"
        if not self.follow.names(path, f"{self.root.name}/{path}"):
            return (
                f"is a link out of the folder, to {way(target, place)}; to send what is there, "
                f"write `follow_links: [{path}]`"
            )
        for hop in hops(place):
            what = looks_like(hop.parent, hop.name)
            if what and not self.allow.names(self.root, path):
                return f"is a link to {hop}, which looks like {what}"
        if real.is_file():
            self.files[path] = os.lstat(real)
            return self._behind(path, real)
        if is_system(real) or real in self._within:
            return f"is a link to {real}, which is " + (
                "the folder that it is in itself" if real in self._within else "the system's"
            )
        return ""

    def _behind(self, path: str, real: Path) -> str:
        """Keep the file at `real`, which a link leads to; return why it cannot be sent, or ""."""
        self.follow.taken[path] = real
        if len(self.follow.taken) > _MOST_SEARCHED:
            return ""
        what = key_in(real, self.files[path])
        return f"leads to {real}, which has {what}" if what and not self._may(path) else ""

    def _may(self, path: str) -> bool:
        return self.allow.names(self.root, path)

    def _enter(self, path: str, real: Path) -> Iterator[int]:
        self._within.append(real)
        yield from self.walk(real, path + "/")
        self._within.pop()


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


def _inside(root: Path, path: str, target: str) -> bool:
    """Whether a link stays in the folder, by its own text and through other links."""
    plain = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if target.startswith("/") or plain == ".." or plain.startswith("../"):
        return False
    real = os.path.realpath(root / path)
    return os.path.commonpath([str(root), real]) == str(root) and os.path.exists(real)
