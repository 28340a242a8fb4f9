"""Creating a history, and marking, checking and setting aside a damaged one.

A new file gets its name only once its tables are on the disk, so an empty file under that name has
lost its content.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from lumitui.app.history.file.filesystem import (
    NO_FILE,
    Identity,
    create_private,
    identity,
    open_lock,
    size,
)
from lumitui.app.history.file.schema import create
from lumitui.app.history.file.sqlite_errors import RECOVER, PendingWarnings


def begin_missing(path: Path) -> None:
    """Create a history at `path` unless it exists; only one of several processes does so."""
    if os.path.lexists(path):
        return
    with locked(path):
        if not os.path.lexists(path):
            put_in_place(prepared(path), path)


def prepared(path: Path) -> Path:
    """Return a new history under a temporary name; the caller holds the lock.

    Raises:
        OSError, sqlite3.Error: the file cannot be created; no part of it remains.
    """
    new = path.with_name(f"{path.name}.new")
    _remove(new)  # left by a killed process
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
    """Give a prepared history its name."""
    new.rename(path)
    # Sync the folder too: a file whose name is not on the disk is lost at a power cut.
    with suppress(OSError):  # a file system that cannot
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock beside `path`, which guards creating and renaming the file."""
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


_LENGTH = ("page_count", "page_size")


class Damage:
    """The damage of one file, announced to all its processes by a mark beside it."""

    def __init__(self, path: Path, warnings: PendingWarnings) -> None:
        """Track the file at `path`; `warnings` receives messages for the user."""
        self._path = path
        self._warnings = warnings
        self._mark = path.with_name(f"{path.name}.suspect")

    @property
    def suspected(self) -> bool:
        """Whether the next use must check the file."""
        return self._mark.exists()

    def suspect(self) -> None:
        """Make the next use, here or in another process, check the file."""
        with suppress(OSError):
            self._mark.touch()

    def clear(self) -> None:
        """Remove the mark: the check found no damage."""
        self._mark.unlink(missing_ok=True)

    def is_empty(self) -> bool:
        """Return whether the file is empty; a new one gets its name only with its tables."""
        return identity(self._path) != NO_FILE and size(self._path) == 0

    def set_aside(self, damaged: Identity) -> Identity:
        """Rename the damaged file, unless another process has done it; return the current file."""
        with locked(self._path):
            if identity(self._path) == damaged:
                new = prepared(self._path)  # fails on a full disk: the damaged file stays
                kept = _free_name(self._path)
                # The logs first: a new file must never be used with the log of another.
                for suffix in ("-wal", "-shm", "-journal"):
                    with suppress(FileNotFoundError):
                        os.rename(f"{self._path}{suffix}", f"{kept}{suffix}")
                self._path.rename(kept)
                self.clear()
                put_in_place(new, self._path)
                self._warnings.add(
                    f"The history was damaged and is kept as {kept}; lumitui started a new one. "
                    f"Jobs keep running; {RECOVER}"
                )
            return identity(self._path)


def damage_in(db: sqlite3.Connection, path: Path, *, indexes: bool) -> str:
    """Return the damage of the file at `path`, '' if it is intact; reads the whole file.

    With `indexes`, also compares indexes with their tables, which takes longer.
    """
    check = "integrity_check" if indexes else "quick_check"
    rows = [str(row[0]) for row in db.execute(f"PRAGMA {check}(3)")]
    if rows != ["ok"]:
        return "; ".join(" ".join(rows).split("\n"))[:300]
    if size(Path(f"{path}-wal")):
        return ""  # pages at the end may be in the log alone
    # SQLite reads the missing end of a page as zeros, and its own check may not touch it.
    pages, each = (int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in _LENGTH)
    missing = pages * each - size(path)
    return f"the last {missing} bytes are missing" if missing > 0 else ""


def _free_name(path: Path) -> Path:
    """Return an unused name for a damaged file: its own name and the time."""
    stamp = f"{path.name}.corrupt-{time.strftime('%Y%m%d-%H%M%S')}"
    names = (stamp, *(f"{stamp}.{number}" for number in range(2, 1000)))
    return next(free for name in names if not (free := path.with_name(name)).exists())
