"""What is staged, read on this machine: one file, or all of a folder, as a manifest.

Unlike code, data is sent whole: no ignore file counts, hidden files and any size are welcome. Links
inside the folder stay links; a link to a file elsewhere becomes that file.
"""

import hashlib
import os
import posixpath
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from lumitui.remote.errors import InputError
from lumitui.remote.source.hash_cache import Contents, Hashes
from lumitui.remote.source.manifest import Entry, Manifest
from lumitui.remote.source.scan import opened
from lumitui.remote.storage.staging.suspects import Allowed, looks_like, private

MOST_FILES = 200_000
"""More files in one item load a parallel file system more than they help; packed they are one."""
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Found:
    """What there is to stage under one name, before a byte is read."""

    name: str
    root: Path
    """The file or folder itself; a link to it is resolved."""
    files: Mapping[str, os.stat_result]
    links: Mapping[str, str]
    """Path to target, inside the folder."""
    private: Sequence[str] = ()
    """What other people of this machine may not read: files, or "." for the folder."""
    heeded: Set[str] = frozenset()
    """The patterns that allow something."""

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(info.st_size for info in self.files.values())

    @property
    def single(self) -> str:
        """The name of the one file; "" for a folder."""
        return "" if self.root.is_dir() else self.root.name


@dataclass(frozen=True)
class Item:
    """What is staged under one name: its files with their hashes."""

    name: str
    manifest: Manifest
    sources: Mapping[str, Path] = field(repr=False)
    seen: Mapping[str, tuple[int, ...]] = field(repr=False)
    """What stat said of each file when it was read."""
    single: str = ""
    """The name of the one file; "" for a folder."""

    def unchanged(self, path: str) -> bool:
        """Whether the file at `path` is what was read, as far as stat says."""
        try:
            return _state(os.stat(self.sources[path])) == self.seen[path]
        except OSError:
            return False


def find(
    name: str, place: Path, allowed: Sequence[str] = (), *, enough: int | None = None
) -> Found:
    """Return what is to stage at `place`; nothing is read but names.

    Args:
        name: what the job file calls it.
        place: the file or folder.
        allowed: patterns of files that may be sent although they look like secrets.
        enough: after so many files and links the rest is not looked at; None: all are.

    Raises:
        InputError: it is not there or empty, it is the root of all files, or something in it
            cannot or must not be sent.
    """
    root, allow = Path(os.path.realpath(place)), Allowed(allowed)
    if root.is_file():
        return _single(name, place, root, allow)
    if not root.is_dir():
        raise InputError(
            f"stage: {name} is to be {place}, which is no file and no folder.", "Correct the path."
        )
    if root == Path(root.anchor):
        raise InputError(f"stage: {name} is to be {root}, with all files there are.", "Name less.")
    files: dict[str, os.stat_result] = {}
    links: dict[str, str] = {}
    refused: list[str] = []
    for path, entry in _walk(root):
        why = _take(root, path, entry, files, links, allow)
        if why:
            refused.append(f"{path!r} {why}")
        if enough is not None and len(files) + len(links) >= enough:
            break
        if len(files) + len(links) > MOST_FILES:
            raise InputError(
                f"stage: {name} has more than {MOST_FILES:,} files.",
                "Pack them into shards (`trainers/pack.py`) or an archive, and stage that.",
            )
    if refused:
        more = f"; and {len(refused) - 5} more" if len(refused) > 5 else ""
        raise InputError(
            f"stage: {name} cannot be sent: {'; '.join(refused[:5])}{more}.",
            "Remove or repair them, or stage a folder without them. `ship_secrets:` in the job "
            "file names files that are sent although they look like secrets.",
        )
    if not files and not links:
        raise InputError(
            f"stage: {name} is to be {place}, which has no file in it.",
            "Fill it, or correct the path.",
        )
    return _found(name, root, files, links, allow)


def _single(name: str, place: Path, root: Path, allow: Allowed) -> Found:
    try:
        # The name that the person wrote counts, and that of the file which a link leads to.
        what = looks_like(root.parent, root.name) or looks_like(place.parent, place.name)
    except OSError as error:
        raise InputError(
            f"stage: {name} cannot be read: {error.strerror}.", "Make it readable."
        ) from error
    if what and not allow.names(root.parent, root.name):
        raise InputError(
            f"stage: {name} is to be {place}, which looks like {what}.",
            f"Correct the path; or send it all the same, with `ship_secrets: [{root.name}]` in the "
            "job file.",
        )
    return _found(name, root, {root.name: root.stat()}, {}, allow)


def _found(
    name: str,
    root: Path,
    files: dict[str, os.stat_result],
    links: dict[str, str],
    allow: Allowed,
) -> Found:
    top = root if root.is_dir() else root.parent
    closed = tuple(path for path in private(root, files) if not allow.names(top, path))
    return Found(name, root, files, links, closed, frozenset(allow.heeded))


def read(
    found: Found, hashes: Hashes | None = None, passed: Callable[[int], None] = lambda size: None
) -> Item:
    """Return the item with the hash of every file; `passed` hears of each portion of bytes.

    Raises:
        InputError: a file cannot be read, or changes meanwhile.
    """
    entries = [Entry(path, 0, False, "", target) for path, target in found.links.items()]
    sources = {path: found.root if found.single else found.root / path for path in found.files}
    seen = {}
    for path, info in found.files.items():
        known = hashes.known(path, info) if hashes is not None else None
        if known is None:
            known, info = _contents(found.name, sources[path], info, passed)
            if hashes is not None:
                hashes.keep(path, info, known)
        else:
            passed(info.st_size)
        seen[path] = _state(info)
        executable = bool(info.st_mode & 0o100)
        entries.append(Entry(path, info.st_size, executable, known.sha256))
    if hashes is not None:
        hashes.save()
    manifest = Manifest(tuple(sorted(entries, key=lambda entry: entry.path)))
    return Item(found.name, manifest, sources, seen, found.single)


def changed(name: str, path: str) -> InputError:
    """Return the error for a file that was written to while it was read or sent."""
    return InputError(
        f"stage: {name}: the file {path!r} changed while it was sent.",
        "Wait until nothing writes to it, then send again: what has arrived is not sent twice.",
    )


def _walk(root: Path, below: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    try:
        entries = sorted(os.scandir(root / below), key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(
            f"The folder {root / below} cannot be read: {error.strerror}.", "Make it readable."
        ) from error
    for entry in entries:
        path = below + entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(root, path + "/")
        else:
            yield path, entry


def _take(
    root: Path,
    path: str,
    entry: os.DirEntry[str],
    files: dict[str, os.stat_result],
    links: dict[str, str],
    allow: Allowed,
) -> str:
    """Add one entry to `files` or `links`; return why it cannot be, or ""."""
    try:
        what = looks_like(root, path)
        if what and not allow.names(root, path):
            return f"looks like {what}"
        if entry.is_symlink():
            target = os.readlink(entry.path)
            if _inside(root, path, target):
                links[path] = target
                return ""
            if not entry.is_file():
                return f"is a link to {target!r}, which is no file"
        elif not entry.is_file():
            return "is neither a file nor a folder"
        files[path] = os.stat(entry.path)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return ""


def _inside(root: Path, path: str, target: str) -> bool:
    """Whether a link stays in the folder, by its own text and through other links."""
    plain = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if target.startswith("/") or plain == ".." or plain.startswith("../"):
        return False
    real = os.path.realpath(root / path)
    return os.path.commonpath([str(root), real]) == str(root) and os.path.exists(real)


def _contents(
    name: str, source: Path, info: os.stat_result, passed: Callable[[int], None]
) -> tuple[Contents, os.stat_result]:
    digest = hashlib.sha256()
    try:
        file = opened(source)
        try:
            while piece := os.read(file, _CHUNK):
                digest.update(piece)
                passed(len(piece))
            now = os.fstat(file)
        finally:
            os.close(file)
    except OSError as error:
        raise InputError(
            f"The file {source} cannot be read: {error.strerror}.", "Make it readable."
        ) from error
    if _state(now) != _state(info):
        raise changed(name, str(source))
    return Contents(digest.hexdigest()), now


def _state(info: os.stat_result) -> tuple[int, ...]:
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, stat.S_IMODE(info.st_mode)
