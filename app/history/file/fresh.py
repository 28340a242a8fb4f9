"""A new history: it gets its name only when its tables are on the disk.

So an empty file under that name has lost its content, whatever was killed and when.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from lumitui.app.history.file.filesystem import create_private, open_lock
from lumitui.app.history.file.schema import create


def begin_missing(path: Path) -> None:
    """Make a history at `path` unless there is one; of several processes one does it.

    Raises:
        OSError, sqlite3.Error: it cannot be made.
    """
    if os.path.lexists(path):
        return
    with locked(path):
        if not os.path.lexists(path):
            put_in_place(prepared(path), path)


def prepared(path: Path) -> Path:
    """Return a history without runs that has another name yet; the caller holds the lock.

    Raises:
        OSError, sqlite3.Error: it cannot be made; nothing is left of it.
    """
    new = path.with_name(f"{path.name}.new")
    _remove(new)  # of a process that was killed
    try:
        create_private(new)
        with closing(sqlite3.connect(new, isolation_level=None)) as db:
            db.execute("PRAGMA synchronous = FULL")
            db.execute("BEGIN IMMEDIATE")
            create(db)
            db.execute("COMMIT")
    except BaseException:
        _remove(new)
        raise
    return new


def put_in_place(new: Path, path: Path) -> None:
    """Give a prepared history its name.

    Raises:
        OSError: it cannot be renamed.
    """
    new.rename(path)
    # The folder too: a file whose name is not on the disk is lost at a power cut.
    with suppress(OSError):  # a file system that cannot
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock beside `path`, which says who makes or renames the file.

    Raises:
        OSError: the lock's file cannot be made.
    """
    lock = open_lock(path)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _remove(new: Path) -> None:
    for suffix in ("-journal", ""):
        with suppress(OSError):
            os.unlink(f"{new}{suffix}")
