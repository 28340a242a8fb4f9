"""The file that history is kept in: opened, migrated, its faults told in sentences.

Only this module, `schema` and `history` know SQLite.
"""

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lumitui.app.mounts import is_shared
from lumitui.app.output import version
from lumitui.app.schema import MIGRATIONS, migrate, schema_of, writer_of
from lumitui.remote.errors import HistoryError

BUSY_MS = 5000
"""How long a writer waits for another process's transaction."""
EMPTY_SECONDS = 60.0
"""A file without a byte that is older than this was not just made by another process."""
_FAULTS = (sqlite3.Error, UnicodeDecodeError)
"""What the module raises: the second one for a damaged schema, whose names are no text."""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_RECOVER = "`lumitui history --recover SITE` rebuilds the runs of a site from their folders."
_ELSEWHERE = "or set LUMITUI_DATA_DIR to another folder."


@dataclass(frozen=True)
class FileFacts:
    """What is known of the file itself."""

    path: Path
    schema: int
    size: int
    """Bytes, with what is not yet written back from the write-ahead log."""
    damage: str
    """What SQLite's check found, '' when it is sound."""


class Database:
    """One SQLite file that processes and threads share."""

    def __init__(self, path: Path) -> None:
        """Open the file, making folder (0700) and file (0600) when missing.

        A damaged file is kept beside it and a fresh one begun; `warnings` says so.

        Raises:
            HistoryError: it cannot be opened, or a newer version of the program wrote it.
        """
        self.path = path
        self.warnings: list[str] = []
        self._lock = threading.RLock()
        self._suspect = path.with_name(f"{path.name}.suspect")
        self._closed = False
        self._file = (0, 0)
        self._db = self._open()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._closed = True
            self._db.close()

    def rows(self, query: str, values: Sequence[str | float] = ()) -> list[sqlite3.Row]:
        """Return the rows of `query`; a value that is not UTF-8 is in no row.

        Raises:
            HistoryError: the file cannot be read.
        """
        sought = [
            # A word of the command line may have bytes that are not UTF-8, which SQLite takes not.
            value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
            for value in values
        ]
        with self._lock:
            try:
                return self._current().execute(query, sought).fetchall()
            except _FAULTS as error:
                raise self._translated(error) from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the write lock; all that is done inside is on the disk at the end, or nothing.

        Raises:
            HistoryError: the file cannot be written.
        """
        with self._lock:
            try:
                db = self._current()
                with _immediate(db):
                    self._check_schema(db)
                    yield db
                    if self._moved():
                        raise HistoryError(
                            f"The history {self.path} was replaced while it was written.",
                            "Try again.",
                        )
            except _FAULTS as error:
                raise self._translated(error) from error

    def facts(self) -> FileFacts:
        """Return what is known of the file; all of it is read and checked.

        Raises:
            HistoryError: the file cannot be read.
        """
        found = [str(row[0]) for row in self.rows("PRAGMA quick_check(3)")]
        damage = "" if found == ["ok"] else "; ".join(" ".join(found).split("\n"))[:300]
        if damage:
            self._suspect_damage()
        sizes = (_size(self.path), _size(Path(f"{self.path}-wal")))
        schema = int(self.rows("PRAGMA user_version")[0][0])
        return FileFacts(self.path, schema, sum(sizes), damage)

    def _current(self) -> sqlite3.Connection:
        """Return the connection, to the file that is now at the path.

        Another process may have set a damaged file aside, a person may have removed it: what is
        written to a file that has lost its name is lost with it.
        """
        if self._closed:
            return self._db  # which says so
        moved = self._moved()
        if moved or self._suspect.exists():
            self._db.close()
            self._db = self._open()
        if moved:
            self.warnings.append(
                f"The history {self.path} was replaced or removed while it was open; what is "
                f"there now is used. {_RECOVER}"
            )
        return self._db

    def _moved(self) -> bool:
        return _identity(self.path) != self._file

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._tell_when_emptied()
            self._create()
            self.path.chmod(0o600)
            self._file = _identity(self.path)
            try:
                return self._connect()
            except _FAULTS as error:
                if _code(error) not in _DAMAGED:
                    raise
                self._set_aside()
            return self._connect()
        except OSError as error:
            raise HistoryError(
                f"The history {self.path} cannot be opened: {error.strerror}.",
                f"Check the folder's rights and the space on the disk, {_ELSEWHERE}",
            ) from error
        except _FAULTS as error:
            raise self._translated(error) from error

    def _create(self) -> None:
        """Make the file with its mode, and never open one that is there.

        To close any descriptor of a file drops this process's locks on it, also those of another
        history of the same process; the next process to leave would then take the log away under
        it (sqlite.org/howtocorrupt.html, 2.2).
        """
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))

    def _connect(self) -> sqlite3.Connection:
        # isolation_level None: transactions are begun and ended here, never behind our back.
        db = sqlite3.connect(
            self.path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False
        )
        try:
            db.row_factory = sqlite3.Row
            # A byte that the disk lost in one text must not hide all the others.
            db.text_factory = lambda data: data.decode("utf-8", "replace")
            db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
            self._check_schema(db)
            _use_journal(db, "delete" if is_shared(self.path) else "wal")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA foreign_keys = ON")
            if self._suspect.exists():
                if db.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
                    damage = sqlite3.DatabaseError("the check of the file found damage")
                    damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
                    raise damage
                self._suspect.unlink(missing_ok=True)
            if schema_of(db) < len(MIGRATIONS):
                with _immediate(db):
                    # Asked again: another process may have migrated while this one waited.
                    migrate(db, MIGRATIONS)
        except BaseException:
            db.close()
            raise
        return db

    def _check_schema(self, db: sqlite3.Connection) -> None:
        """Refuse a file that a newer version wrote, before anything of it is changed."""
        schema = schema_of(db)
        if schema > len(MIGRATIONS):
            raise HistoryError(
                f"The history {self.path} was written by {writer_of(db)} (schema {schema}; "
                f"this one, {version()}, knows {len(MIGRATIONS)}).",
                f"Upgrade lumitui, {_ELSEWHERE} The file was not touched.",
            )

    def _tell_when_emptied(self) -> None:
        try:
            found = self.path.stat()
        except OSError:
            return  # there is none, or what opens it says why
        # A process that makes the file leaves it empty for a moment only.
        if found.st_size == 0 and time.time() - found.st_mtime > EMPTY_SECONDS:
            self.warnings.append(
                f"The history {self.path} was empty: its runs are lost here. Jobs go on; {_RECOVER}"
            )

    def _set_aside(self) -> None:
        """Rename the damaged file, unless another process has already done it."""
        lock = os.open(f"{self.path}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._moved():
                self._rename()
            self._file = _identity(self.path)
        finally:
            os.close(lock)

    def _rename(self) -> None:
        kept = _free_name(self.path)
        # The logs first: a fresh file must never meet the log of another one.
        for suffix in ("-wal", "-shm", "-journal"):
            with suppress(FileNotFoundError):
                os.rename(f"{self.path}{suffix}", f"{kept}{suffix}")
        self.path.rename(kept)
        self._suspect.unlink(missing_ok=True)
        self._create()
        self.warnings.append(
            f"The history was damaged and is kept as {kept}; a fresh one was begun. Jobs go on; "
            f"{_RECOVER}"
        )

    def _can_lock(self) -> bool:
        """Whether a file beside the history can be locked, or is by another process."""
        try:
            lock = os.open(f"{self.path}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        except OSError:
            return True  # not what is asked here
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return True
        except OSError:
            return False
        finally:
            os.close(lock)
        return True

    def _suspect_damage(self) -> None:
        """Let the next use, here or in another process, check the file and set it aside."""
        with suppress(OSError):
            self._suspect.touch()

    def _translated(self, error: Exception) -> HistoryError:
        if _code(error) in _DAMAGED:
            self._suspect_damage()
        # SQLite says the same of a lock that is held and of a file system that has none.
        if _code(error) == sqlite3.SQLITE_BUSY and not self._can_lock():
            return HistoryError(f"The history {self.path} {_NO_LOCKS[0]}.", _NO_LOCKS[1])
        found = _SENTENCES.get(_extended(error)) or _SENTENCES.get(_code(error))
        what, hint = found or (f"cannot be used: {error}", "Start lumitui again.")
        return HistoryError(f"The history {self.path} {what}.", hint)


_RIGHTS = f"Check the rights of the file and its folder, {_ELSEWHERE}"
_NO_LOCKS = (
    "cannot be locked: its file system has no locks",
    "Set LUMITUI_DATA_DIR to a folder on a disk of this machine.",
)
_IS_DAMAGED = ("is damaged", f"Try again: it is kept aside and a fresh one begun. {_RECOVER}")
_SENTENCES: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: ("cannot grow: the disk is full", "Free some space and try again."),
    sqlite3.SQLITE_IOERR: ("could not be read or written", "Check the disk and its space."),
    sqlite3.SQLITE_IOERR_LOCK: _NO_LOCKS,
    sqlite3.SQLITE_IOERR_RDLOCK: _NO_LOCKS,
    sqlite3.SQLITE_IOERR_UNLOCK: _NO_LOCKS,
    sqlite3.SQLITE_IOERR_SHMLOCK: _NO_LOCKS,
    sqlite3.SQLITE_IOERR_SHMMAP: (
        "has no room for its index: the disk is full, or its file system cannot map files",
        f"Free some space and try again, {_ELSEWHERE}",
    ),
    sqlite3.SQLITE_PROTOCOL: _NO_LOCKS,
    sqlite3.SQLITE_BUSY: (
        "is held by another lumitui",
        "Try again; if it stays so, end the other one.",
    ),
    sqlite3.SQLITE_LOCKED: ("is locked", "Try again."),
    sqlite3.SQLITE_READONLY: ("is read-only", _RIGHTS),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", _RIGHTS),
    sqlite3.SQLITE_PERM: ("may not be opened", _RIGHTS),
    sqlite3.SQLITE_CORRUPT: _IS_DAMAGED,
    sqlite3.SQLITE_NOTADB: _IS_DAMAGED,
    sqlite3.SQLITE_CONSTRAINT: ("refused a record", "Start lumitui again."),
}
"""SQLite's result codes (sqlite.org/rescode.html) as what happened and what to try."""


def _extended(error: Exception) -> int:
    """Return the extended result code; 0 for an error of Python's own module."""
    if isinstance(error, UnicodeDecodeError):
        return sqlite3.SQLITE_CORRUPT
    return int(getattr(error, "sqlite_errorcode", 0))


def _code(error: Exception) -> int:
    return _extended(error) & 0xFF


def _identity(path: Path) -> tuple[int, int]:
    """Return which file is at `path`; (0, 0) when there is none."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_dev, found.st_ino)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _free_name(path: Path) -> Path:
    """Return where a damaged file is kept: its name and the time, never that of an earlier one."""
    stamp = f"{path.name}.corrupt-{time.strftime('%Y%m%d-%H%M%S')}"
    names = (stamp, *(f"{stamp}.{number}" for number in range(2, 1000)))
    return next(found for name in names if not (found := path.with_name(name)).exists())


def _use_journal(db: sqlite3.Connection, mode: str) -> None:
    """Switch the journal; the switch does not wait for another process by itself.

    The write-ahead log needs memory that all processes share, which a network's file system has
    not: there it is the rollback journal, whose locks hold between machines too (sqlite.org/wal).
    """
    limit = time.monotonic() + BUSY_MS / 1000
    while db.execute("PRAGMA journal_mode").fetchone()[0] != mode:
        try:
            db.execute(f"PRAGMA journal_mode = {mode}")
            return
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > limit:
                raise
            time.sleep(0.02)


@contextmanager
def _immediate(db: sqlite3.Connection) -> Iterator[None]:
    """Hold the write lock from the beginning: nothing read inside can be out of date."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
