"""A project folder read into a manifest: secrets refused, every file hashed."""

import errno
import hashlib
import os
import posixpath
import stat
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from lumitui.remote.errors import InputError
from lumitui.remote.source.hash_cache import Hashes
from lumitui.remote.source.manifest import Entry, Manifest
from lumitui.remote.source.walk import Found, Limits, walk

_CHUNK = 1 << 20
_Where = Callable[[str], Path]


def scan(
    root: Path,
    *,
    extra: Mapping[str, Path] | None = None,
    allow: Collection[str] = (),
    limits: Limits = Limits(),  # noqa: B008  # frozen
    hashes: Hashes | None = None,
) -> Manifest:
    """Return the manifest of what is sent of the project below `root`.

    Left out: what .gitignore and .lumituiignore files exclude (the latter win, and their `!`
    brings back what the former exclude), .git, __pycache__, node_modules, virtual environments.

    Args:
        root: the project's folder.
        extra: files from elsewhere, by the POSIX path they get.
        allow: paths of files with secrets that are sent nevertheless.
        limits: how much of it there may be.
        hashes: what is known of the files from earlier; brought up to date and saved.

    Raises:
        InputError: something that must not or cannot be sent, or too much of it.
    """
    if not root.is_dir():
        raise InputError(f"The project folder {root} does not exist.", "Correct `project:`.")
    found = walk(root, limits)
    taken = {path for path, _ in found.files} | {path for path, _ in found.links}
    for path, source in sorted((extra or {}).items()):
        if path in taken:
            found.refuse(path, "is also the name of a file lumitui adds; rename it")
        try:
            found.add(path, os.stat(source))
        except OSError as error:
            found.refuse(str(source), f"cannot be read ({error.strerror})")
    found.check(limits)
    where = source_of(root, extra)
    for path, _ in found.files:
        _check_secret(path, where, allow, found)
    found.raise_refused()
    entries = [_hashed(path, where, info, hashes) for path, info in found.files]
    if hashes is not None:
        hashes.save()
    entries += [Entry(path, 0, False, "", target) for path, target in found.links]
    return Manifest(tuple(sorted(entries, key=lambda entry: entry.path)))


def source_of(root: Path, extra: Mapping[str, Path] | None = None) -> Callable[[str], Path]:
    """Return the function that gives the local file of a manifest's path."""
    added = dict(extra or {})
    return lambda path: added[path] if path in added else root / path


def _check_secret(path: str, where: _Where, allow: Collection[str], found: Found) -> None:
    """Refuse what looks like a secret by its name; `id_*` only when it is a private key."""
    name = posixpath.basename(path)
    if path in allow:
        return
    if name == ".env" or name.endswith(".pem"):
        found.refuse(path, "usually holds secrets; exclude it, or list it under `allow:`")
    elif name.startswith("id_"):
        try:
            with os.fdopen(opened(where(path)), "rb") as file:
                private = b"PRIVATE KEY-----" in file.read(200)
        except OSError:
            return  # `_hashed` raises for it
        if private:
            found.refuse(path, "is a private key; exclude it, or list it under `allow:`")


def _hashed(path: str, where: _Where, seen: os.stat_result, hashes: Hashes | None) -> Entry:
    known = hashes.known(path, seen) if hashes is not None else None
    if known is not None:
        return Entry(path, seen.st_size, bool(seen.st_mode & 0o100), known)
    try:
        # Plain descriptors, and a buffer of the file's size: for small files a file object and a
        # large buffer cost more than the hash.
        file = opened(where(path))
        try:
            digest = hashlib.sha256()
            while chunk := os.read(file, min(_CHUNK, seen.st_size + 1)):
                digest.update(chunk)
            now = os.fstat(file)
        finally:
            os.close(file)
    except OSError as error:
        raise InputError(
            f"The project cannot be sent: {path!r} cannot be read ({error.strerror}).",
            "Make it readable, or exclude it in .lumituiignore.",
        ) from error
    if _state(now) != _state(seen):
        raise changed(path)
    if hashes is not None:
        hashes.keep(path, now, digest.hexdigest())
    return Entry(path, now.st_size, bool(now.st_mode & 0o100), digest.hexdigest())


def opened(source: Path) -> int:
    """Return a descriptor of a regular file, without waiting for a pipe that took its place.

    Raises:
        OSError: it cannot be read, or is no longer a file.
    """
    file = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "it is no longer a file")
    return file


def _state(info: os.stat_result) -> tuple[int, int, int, int]:
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns


def changed(path: str) -> InputError:
    """Return the error for a file that was written to while it was read."""
    return InputError(
        f"The file {path!r} changed while it was read.",
        "Wait until nothing writes to the project and send again.",
    )
