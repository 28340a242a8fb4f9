"""Files that are whole or not there: forced to disk, and known by a checksum."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that `path` holds the whole old or the whole new content at every moment.

    Raises:
        OSError: the disk is full or the like; `path` keeps its old content.
    """
    aside = path.with_name(f".{path.name}.part")
    try:
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    sync(path.parent)


PROBE = 2**20
"""Bytes that are written to learn whether a disk takes any more."""


def cause(error: Exception, folder: Path) -> str:
    """Why nothing could be written in a folder, in the system's words where that can be learned.

    PyTorch's writer says `iostream error` or the like when a disk or a quota is full. So a little
    is written again, in Python.
    """
    if not isinstance(error, OSError) or not error.strerror:
        probe = folder / ".probe"
        try:
            with probe.open("wb") as file:
                file.write(bytes(PROBE))
                file.flush()
                os.fsync(file.fileno())
        except OSError as found:
            error = OSError(found.errno, found.strerror)  # the probe is nobody's business
        with suppress(OSError):
            probe.unlink(missing_ok=True)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (f": {error.filename}" if error.filename else "")
    return (str(error).splitlines() or [type(error).__name__])[0]


def sync(path: Path) -> None:
    """Force a file's content, or a folder's entries (a rename), to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def checksum(path: Path) -> str:
    """SHA-256 of a file, as `sha256sum` prints it."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(2**20):  # file_digest needs Python 3.11
            found.update(chunk)
    return found.hexdigest()
