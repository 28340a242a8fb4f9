"""The file system of the history's file: its type, and whether it supports locks."""

import fcntl
import os
import re
from contextlib import suppress
from pathlib import Path

Identity = tuple[int, int]
"""Device and inode, which identify a file."""
NO_FILE: Identity = (0, 0)

_SHARED = re.compile(
    r"nfs\d?|cifs|smb\w*|afs|ceph|lustre|gpfs|beegfs|9p|ncpfs|glusterfs|davfs|virtiofs|vboxsf"
    r"|fuse\.(?!portal|gvfsd).*"
)
"""File systems that other machines may also write to, or that may not map shared memory."""


def is_shared(path: Path, table: Path = Path("/proc/self/mounts")) -> bool:
    """Return whether `path` is on a network file system; False without a `table`."""
    try:
        text = table.read_text(encoding="utf-8", errors="surrogateescape")
        place = path.resolve()
    except (OSError, RuntimeError):  # macOS; or a loop of links, which opening the file reports
        return False
    kind, depth = "", -1
    for line in text.splitlines():
        words = line.split(" ")
        if len(words) < 3:
            continue
        # A blank in a name is written \040 (proc(5)). Of two mounts at one place, the later one
        # counts.
        point = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), words[1]))
        if place.is_relative_to(point) and len(point.parts) >= depth:
            kind, depth = words[2], len(point.parts)
    return _SHARED.fullmatch(kind) is not None


def can_lock(path: Path) -> bool:
    """Return whether a file beside `path` can be locked, or is locked by another process."""
    try:
        lock = open_lock(path)
    except OSError:
        return True  # another error, which opening the history reports
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return True
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def open_lock(path: Path) -> int:
    """Return a descriptor of the lock file beside `path`; OSError if it cannot be made."""
    return os.open(f"{path}.lock", os.O_CREAT | os.O_RDWR, 0o600)


def create_private(path: Path) -> None:
    """Create an empty file with mode 0600; never open an existing one.

    Closing any descriptor of a file drops all this process's locks on it, including another
    history's; the next process to exit would then remove the log in use
    (sqlite.org/howtocorrupt.html, 2.2).
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def identity(path: Path) -> Identity:
    """Return the identity of the file at `path`; NO_FILE if there is none."""
    try:
        status = path.stat()
    except OSError:
        return NO_FILE
    return (status.st_dev, status.st_ino)


def size(path: Path) -> int:
    """Return a file's size in bytes; 0 if it does not exist."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
