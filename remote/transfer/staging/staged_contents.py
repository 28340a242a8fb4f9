"""What is staged, read on this machine: one file, or all of a folder, as a manifest.

Unlike code, data is sent whole: no ignore file counts, hidden files and any size are welcome. Links
inside the folder stay links. A link out of it is refused, unless a pattern of `follow_links:` names
it: then what it leads to is sent, where neither a name on its way nor the contents show a secret.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from lumitui.remote.site.errors import InputError
from lumitui.remote.site.secret_shapes import ShapeSearch
from lumitui.remote.source.hash_cache import Contents, Hashes
from lumitui.remote.source.manifest import Entry, Manifest
from lumitui.remote.source.outside_links import Follow, hops
from lumitui.remote.source.project_walk import is_system
from lumitui.remote.source.scan import opened
from lumitui.remote.transfer.staging.search import MOST_REFUSED, Search, key_in, said_of
from lumitui.remote.transfer.staging.suspects import Allowed, looks_like, private

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
    followed: Mapping[str, Path] = field(default_factory=dict)
    """The files behind links out of the folder: path to real path."""
    allow: Allowed = field(default_factory=Allowed, repr=False)

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
            return self.is_same(path, os.lstat(self.sources[path]))
        except OSError:
            return False

    def is_same(self, path: str, info: os.stat_result) -> bool:
        """Whether `info` is of the file that was read as `path`."""
        return _state(info) == self.seen[path]


def find(
    name: str,
    place: Path,
    allowed: Sequence[str] = (),
    follow: Sequence[str] = (),
    *,
    enough: int | None = None,
) -> Found:
    """Return what is to stage at `place`; only names are read, and small files behind links.

    Args:
        name: what the job file calls it.
        place: the file or folder.
        allowed: patterns of files that may be sent although they look like secrets.
        follow: patterns of links out of the folder that are followed.
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
    if is_system(root):
        raise InputError(f"stage: {name} is to be {root}, a folder of the system.", "Name another.")
    search = Search(root, allow, Follow(follow))
    for count in search.walk(root):
        if (enough is not None and count >= enough) or len(search.refused) >= MOST_REFUSED:
            break
        if count > MOST_FILES:
            raise InputError(
                f"stage: {name} has more than {MOST_FILES:,} files.",
                "Pack them into shards (`trainers/pack.py`) or an archive, and stage that.",
            )
    refused = search.refused
    if refused:
        more = f"; and {len(refused) - 5} more" if len(refused) > 5 else ""
        raise InputError(
            f"stage: {name} cannot be sent: {'; '.join(refused[:5])}{more}.",
            "Remove or repair them, or stage a folder without them. In the job file, "
            "`ship_secrets:` names files that are sent although they look like secrets, and "
            "`follow_links:` links out of the folder that are followed.",
        )
    if not search.files and not search.links:
        raise InputError(
            f"stage: {name} is to be {place}, which has no file in it.",
            "Fill it, or correct the path.",
        )
    return _found(name, search)


def _single(name: str, place: Path, root: Path, allow: Allowed) -> Found:
    followed = {root.name: root} if os.path.realpath(place) != os.path.abspath(place) else {}
    try:
        # The name that the person wrote counts, and those which a link leads to.
        ways = (place, *hops(place), root)
        what = next(filter(None, (looks_like(one.parent, one.name) for one in ways)), "")
        what = what or (key_in(root, root.stat()) if followed else "")
        info = root.stat()
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
    search = Search(root, allow, Follow(taken=followed))
    search.files[root.name] = info
    return _found(name, search)


def _found(name: str, search: Search) -> Found:
    root, allow = search.root, search.allow
    top = root if root.is_dir() else root.parent
    closed = tuple(path for path in private(root, search.files) if not allow.names(top, path))
    heeded, followed = frozenset(allow.heeded), search.follow.taken
    return Found(name, root, search.files, search.links, closed, heeded, followed, allow)


def read(
    found: Found, hashes: Hashes | None = None, passed: Callable[[int], None] = lambda size: None
) -> Item:
    """Return the item with the hash of every file; `passed` hears of each portion of bytes.

    Raises:
        InputError: a file cannot be read, or changes meanwhile.
    """
    entries = [Entry(path, 0, False, "", target) for path, target in found.links.items()]
    sources = {
        path: found.root if found.single else found.followed.get(path, found.root / path)
        for path in found.files
    }
    seen = {}
    for path, info in found.files.items():
        behind = found.followed.get(path)
        key = path if behind is None else f"{path}/"  # known only after a search for keys
        known = hashes.known(key, info) if hashes is not None else None
        if known is None:
            known, info = _contents(
                found.name, sources[path], info, passed, search=behind is not None
            )
            if hashes is not None:
                hashes.keep(key, info, known)
        else:
            passed(info.st_size)
        if behind is not None:
            _refuse_key(found, path, behind, known)
        seen[path] = _state(info)
        executable = bool(info.st_mode & 0o100)
        entries.append(Entry(path, info.st_size, executable, known.sha256))
    if hashes is not None:
        hashes.save()
    manifest = Manifest(tuple(sorted(entries, key=lambda entry: entry.path)))
    return Item(found.name, manifest, sources, seen, found.single)


def _refuse_key(found: Found, path: str, real: Path, contents: Contents) -> None:
    what, top = said_of(real, contents.marks), found.root.parent if found.single else found.root
    if what and not found.allow.names(top, path):
        raise InputError(
            f"stage: {found.name}: {path!r} leads to {real}, which has {what}.",
            f"Remove the link; or send it all the same, with `ship_secrets: [{path}]` in the job "
            "file.",
        )


def changed(name: str, path: str) -> InputError:
    """Return the error for a file that was written to while it was read or sent."""
    return InputError(
        f"stage: {name}: the file {path!r} changed while it was sent.",
        "Wait until nothing writes to it, then send again: what has arrived is not sent twice.",
    )


def _contents(
    name: str, source: Path, info: os.stat_result, passed: Callable[[int], None], *, search: bool
) -> tuple[Contents, os.stat_result]:
    digest, shapes = hashlib.sha256(), ShapeSearch() if search else None
    try:
        file = opened(source)
        try:
            while piece := os.read(file, _CHUNK):
                digest.update(piece)
                if shapes is not None:
                    shapes.feed(piece)
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
    return Contents(digest.hexdigest(), shapes.marks if shapes is not None else ()), now


def _state(info: os.stat_result) -> tuple[int, ...]:
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, stat.S_IMODE(info.st_mode)
