"""SQLite's result codes as sentences: what happened to the history's file, and the fix."""

import sqlite3
import threading
from pathlib import Path

from lumitui.app.history.file.filesystem import can_lock
from lumitui.remote.site.errors import HistoryError

FAULTS = (sqlite3.Error, UnicodeDecodeError)
"""Exceptions of Python's sqlite3; the second comes from a damaged schema with invalid names."""
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
RECOVER = "`lumitui history --recover SITE` rebuilds the runs of a site from their folders."
ELSEWHERE = "or set LUMITUI_DATA_DIR to another folder."

_RIGHTS = f"Check the permissions of the file and its folder, {ELSEWHERE}"
_NO_LOCKS = (
    "cannot be locked: its file system does not support locks",
    "Set LUMITUI_DATA_DIR to a folder on a disk of this machine.",
)
_IS_DAMAGED = (
    "is damaged",
    # A run that was being sent may have become a job.
    "The next time it opens the history, lumitui sets the file aside and starts a new one. "
    "Before you submit again, run `lumitui history --recover SITE`: it rebuilds the runs of a "
    "site from their folders.",
)
_SENTENCES: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: ("cannot grow: the disk is full", "Free some space and try again."),
    sqlite3.SQLITE_IOERR: ("could not be read or written", "Check the disk and its space."),
    sqlite3.SQLITE_IOERR_LOCK: _NO_LOCKS,
    sqlite3.SQLITE_IOERR_RDLOCK: _NO_LOCKS,
    sqlite3.SQLITE_IOERR_UNLOCK: _NO_LOCKS,
    sqlite3.SQLITE_IOERR_SHMLOCK: _NO_LOCKS,
    sqlite3.SQLITE_IOERR_SHMMAP: (
        "has no room for its index: the disk is full, or its file system cannot map files",
        f"Free some space and try again, {ELSEWHERE}",
    ),
    sqlite3.SQLITE_PROTOCOL: _NO_LOCKS,
    sqlite3.SQLITE_BUSY: (
        "is locked by another lumitui",
        "Try again; if it is still locked, quit the other lumitui.",
    ),
    sqlite3.SQLITE_LOCKED: ("is locked", "Try again."),
    sqlite3.SQLITE_READONLY: ("is read-only", _RIGHTS),
    sqlite3.SQLITE_CANTOPEN: (
        "cannot be opened",
        f"Check the folder's permissions and the space on the disk, {ELSEWHERE}",
    ),
    sqlite3.SQLITE_PERM: ("cannot be opened: permission denied", _RIGHTS),
    sqlite3.SQLITE_CORRUPT: _IS_DAMAGED,
    sqlite3.SQLITE_NOTADB: _IS_DAMAGED,
    sqlite3.SQLITE_CONSTRAINT: ("rejected a record", "Start lumitui again."),
}
"""SQLite's result codes (sqlite.org/rescode.html), with their meaning and a fix."""


def extended_code(error: Exception) -> int:
    """Return the extended result code; 0 for an error of Python's own module."""
    if isinstance(error, UnicodeDecodeError):
        return sqlite3.SQLITE_CORRUPT
    return int(getattr(error, "sqlite_errorcode", 0))


def result_code(error: Exception) -> int:
    """Return the primary result code."""
    return extended_code(error) & 0xFF


def history_error(error: Exception, path: Path) -> HistoryError:
    """Return the error for a SQLite fault of the history at `path`."""
    what, hint = _sentence(error, path)
    return HistoryError(f"The history {path} {what}.", hint)


def _sentence(error: Exception, path: Path) -> tuple[str, str]:
    # SQLite gives the same code for a held lock and for a file system without locks.
    if result_code(error) == sqlite3.SQLITE_BUSY and not can_lock(path):
        return _NO_LOCKS
    sentence = _SENTENCES.get(extended_code(error)) or _SENTENCES.get(result_code(error))
    return sentence or (f"cannot be used: {error}", "Start lumitui again.")


class PendingWarnings:
    """Pending warnings. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[str] = []
        self._once: set[str] = set()

    def add(self, sentence: str) -> None:
        """Keep `sentence` until it is taken."""
        with self._lock:
            self._waiting.append(sentence)

    def add_once(self, sentence: str, key: str = "") -> None:
        """Keep `sentence` unless it was added this way before: every page would repeat it.

        With `key`, only the first sentence with this key is kept.
        """
        with self._lock:
            if (key or sentence) not in self._once:
                self._once.add(key or sentence)
                self._waiting.append(sentence)

    def take(self) -> list[str]:
        """Return and remove the pending warnings, oldest first."""
        with self._lock:
            taken, self._waiting = self._waiting, []
        return taken
