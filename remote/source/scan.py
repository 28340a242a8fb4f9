"""Reads a project folder into a manifest: excludes secrets and hashes each file."""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lumitui.remote.site.errors import InputError
from lumitui.remote.site.secret_shapes import ShapeSearch
from lumitui.remote.source.guard import ScanGuard
from lumitui.remote.source.hash_cache import FileContent, Hashes
from lumitui.remote.source.manifest import Manifest, ManifestEntry
from lumitui.remote.source.project_walk import Follow, ProjectLimits, ProjectWalk, names_of, walk
from lumitui.remote.source.secret_names import NameRule

_CHUNK = 1 << 20
_Where = Callable[[str], Path]


def scan(
    root: Path,
    *,
    extra: Mapping[str, Path] | None = None,
    guard: ScanGuard | None = None,
    limits: ProjectLimits = ProjectLimits(),  # noqa: B008  # frozen
    hashes: Hashes | None = None,
    elsewhere: frozenset[str] = frozenset(),
    follow: Follow | None = None,
) -> Manifest:
    """Return the manifest of the project's files below `root`.

    Omits what .gitignore and .lumituiignore files exclude (the latter take precedence, and their
    `!` includes files again), .git, __pycache__, node_modules, virtual environments, and what looks
    like a secret by name or contents: `guard` decides, and records the decisions.

    `extra` has files from elsewhere, by their POSIX path in the copy; those `elsewhere` reach the
    site in another way. `follow` selects the links out of the project, and records their files.
    `hashes`, the cache of earlier scans, is updated and saved.

    Raises:
        InputError: a file must not or cannot be sent, or the project is too large.
    """
    if not root.is_dir():
        raise InputError(f"The project folder {root} does not exist.", "Correct `project:`.")
    follow = follow or Follow()
    project = walk(root, limits, elsewhere, follow)
    taken = project.files.keys() | project.links.keys()
    for path, source in sorted((extra or {}).items()):
        if path in taken:
            project.refuse(path, "is also the name of a file that lumitui adds; rename it")
        try:
            project.add(path, os.stat(source))
        except OSError as error:
            project.refuse(str(source), f"cannot be read ({error.strerror})")
    project.check()
    guard = guard or ScanGuard()
    hashing = _ScanReader(source_of(root, {**(extra or {}), **follow.taken}), hashes)
    behind = {  # further names of a followed link's file
        path: ["/".join(real.parts[-3:]), *names_of(root / path)]
        for path, real in follow.taken.items()
    }
    links = _linked_secrets(root, project, guard)
    entries = []
    for path, info in project.files.items():
        names = behind.get(path, ())
        if not hashing.is_kept_back(path, guard, links, names):
            entry, contents = hashing.read(path, info)
            if not guard.holds_secret(path, contents.marks, names):
                entries.append(entry)
    if hashes is not None:
        hashes.save()
    entries += [ManifestEntry(path, 0, False, "", target) for path, target in project.links.items()]
    return Manifest(tuple(sorted(entries, key=lambda entry: entry.path)))


def source_of(root: Path, extra: Mapping[str, Path] | None = None) -> Callable[[str], Path]:
    """Return the function from a manifest's path to the local file; see `opened`."""
    added = {path: Path(os.path.realpath(place)) for path, place in (extra or {}).items()}
    top = Path(os.path.realpath(root))
    return lambda path: added[path] if path in added else top / path


def _linked_secrets(
    root: Path, project: ProjectWalk, guard: ScanGuard
) -> list[tuple[str, str, NameRule]]:
    """Return the links with a secret's name, each with its target and the matching rule."""
    top, secrets = os.path.realpath(root), []
    for path in project.links:
        if rule := guard.link_rule(path):
            target = os.path.relpath(os.path.realpath(root / path), top)
            secrets.append((path, target.replace(os.sep, "/"), rule))
    return secrets


class _ScanReader:
    """Reads the files of one scan, unless `hashes` knows them."""

    def __init__(self, where: _Where, hashes: Hashes | None) -> None:
        self._where, self._hashes = where, hashes

    def is_kept_back(
        self,
        path: str,
        guard: ScanGuard,
        links: list[tuple[str, str, NameRule]],
        names: Sequence[str] = (),
    ) -> bool:
        """Return whether a name of the file, or of a link to it, indicates a secret."""
        try:
            if guard.names_secret(path, lambda: opened(self._where(path)), names):
                return True
        except OSError as error:
            raise _unreadable(path, error) from error
        return any(guard.target_is_secret(link, target, path, rule) for link, target, rule in links)

    def read(self, path: str, info: os.stat_result) -> tuple[ManifestEntry, FileContent]:
        """Return the file's entry and contents; `info` is its stat from the walk."""
        try:
            read = read_file(lambda: self._where(path), path, info, self._hashes)
        except OSError as error:
            raise _unreadable(path, error) from error
        if read is None:
            raise changed(path)
        contents, now = read
        executable = bool(now.st_mode & 0o100)
        return ManifestEntry(path, now.st_size, executable, contents.sha256), contents


def read_file(
    where: Callable[[], Path],
    key: str,
    info: os.stat_result,
    hashes: Hashes | None,
    passed: Callable[[int], None] = lambda size: None,
    *,
    search: bool = True,
) -> tuple[FileContent, os.stat_result] | None:
    """Return a file's contents and stat; None if it no longer has the stat `info`.

    The file is read from `where`, unless `hashes` has it as `key`. `passed` is called with each
    number of bytes read; without `search`, lumitui does not search it for keys.
    """
    contents = hashes.known(key, info) if hashes is not None else None
    if contents is not None:
        passed(info.st_size)
        return contents, info
    # Plain descriptors and a buffer of the file's size: for small files, a file object and a large
    # buffer cost more than the hash.
    file = opened(where())
    try:
        digest, shapes = hashlib.sha256(), ShapeSearch() if search else None
        while chunk := os.read(file, min(_CHUNK, info.st_size + 1)):
            digest.update(chunk)
            if shapes is not None:
                shapes.feed(chunk)
            passed(len(chunk))
        now = os.fstat(file)
    finally:
        os.close(file)
    if file_state(now) != file_state(info):
        return None
    contents = FileContent(digest.hexdigest(), shapes.marks if shapes is not None else ())
    if hashes is not None:
        hashes.keep(key, now, contents)
    return contents, now


def _unreadable(path: str, error: OSError) -> InputError:
    return InputError(
        f"The project cannot be sent: {path!r} cannot be read ({error.strerror}).",
        "Make it readable, or exclude it in .lumituiignore.",
    )


def opened(source: Path) -> int:
    """Return a descriptor of a regular file, without waiting if a pipe has replaced it.

    No part of `source` may be a link: one that replaced the file or a folder above it could lead to
    any file of this machine.

    Raises:
        OSError: the file cannot be read, or is no longer a file.
    """
    file = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        info = os.fstat(file)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "it is no longer a file")
        if os.path.realpath(source) != os.fspath(source) or not os.path.samestat(
            info, os.lstat(source)
        ):
            raise OSError(errno.ELOOP, "a link is in its place")
    except BaseException:
        os.close(file)
        raise
    return file


FileState = tuple[int, ...]


def file_state(info: os.stat_result) -> FileState:
    """Return the parts of a file's stat that change with every write."""
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, stat.S_IMODE(info.st_mode)


def changed(path: str) -> InputError:
    """Return the error for a file that changed while it was read."""
    return InputError(
        f"The file {path!r} changed while it was read.",
        "Wait until no program writes to the project, then send again.",
    )
