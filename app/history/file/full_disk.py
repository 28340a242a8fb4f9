"""A history on a full disk: it is read from a copy in memory until there is room again."""

import errno
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from lumitui.app.history.file.filesystem import size
from lumitui.app.history.file.sqlite_errors import result_code

_ROOM = 65_536
"""Bytes that opening a history takes: the index of its log, and the log's begin."""
_MOST = 500_000_000
"""Bytes of a history that is copied into memory; 100,000 runs take 96 MB."""
_WITHOUT_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)


def is_for_want_of_room(error: Exception, path: Path) -> bool:
    """Return whether the history at `path` may be sound, and only the disk is full."""
    return (
        result_code(error) in _WITHOUT_ROOM
        and 0 < size(path) <= _MOST
        and not has_room(path.parent)
    )


def has_room(folder: Path) -> bool:
    """Return whether a history in `folder` could be opened for writing.

    It is tried: what a file system reports as free knows no quota.
    """
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            return file.write(bytes(_ROOM)) == _ROOM
    except OSError as error:
        return error.errno not in (errno.ENOSPC, errno.EDQUOT)


def copy_in_memory(path: Path) -> sqlite3.Connection:
    """Return a copy of the history at `path`, with what its log has.

    An exclusive lock lets SQLite keep the log's index in memory: nothing is written
    (sqlite.org/wal.html, "Use of WAL Without Shared-Memory").

    Raises:
        sqlite3.Error: it cannot be read.
    """
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as db:
            db.execute("PRAGMA locking_mode = exclusive")
            db.backup(copy)
    except BaseException:
        copy.close()
        raise
    return copy


def disk_full() -> sqlite3.OperationalError:
    """Return SQLite's own error for a write that has no room."""
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = sqlite3.SQLITE_FULL
    return error
