"""The file that history is kept in: opened, migrated, its faults told in sentences.

Only this module, `schema` and `history` know SQLite.
"""

import fcntl
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lumitui.app.history.filesystem import is_shared
from lumitui.app.history.pending_warnings import PendingWarnings
from lumitui.app.history.schema import MIGRATIONS, migrate, schema_of, writer_of
from lumitui.app.history.sqlite_errors import (
    DAMAGED,
    ELSEWHERE,
    FAULTS,
    NO_LOCKS,
    RECOVER,
    SENTENCES,
    extended_code,
    result_code,
)
from lumitui.app.settings import version
from lumitui.remote.errors import HistoryError

BUSY_MS = 30_000
"""How long one waits for other processes' transactions. SQLite's own waiting asks ten times a
second at last, and of three busy writers on a loaded machine one found no gap in 5 s."""
_PAUSE = (0.001, 0.02)
EMPTY_SECONDS = 60.0
"""A file without a byte that is older than this was not just made by another process."""

Done = TypeVar("Done")


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

    def __init__(self, path: Path, warnings: PendingWarnings) -> None:
        """Open the file, making folder (0700) and file (0600) when missing.

        A damaged file is set aside and a fresh one is begun; `warnings` receives a sentence.

        Raises:
            HistoryError: it cannot be opened, or a newer version of the program wrote it.
        """
        self.path = path
        self._warnings = warnings
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

        def read() -> list[sqlite3.Row]:
            with self._lock:
                return self._current().execute(query, sought).fetchall()

        try:
            return self._patiently(read)
        except FAULTS as error:
            raise self._translated(error) from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the write lock; all that is done inside is on the disk at the end, or nothing.

        Raises:
            HistoryError: the file cannot be written.
        """
        try:
            db = self._patiently(self._begin)
            try:
                with self._committed(db):
                    self._check_schema(db)
                    yield db
                    if self._moved():
                        raise HistoryError(
                            f"The history {self.path} was replaced while it was written.",
                            "Try again.",
                        )
            finally:
                self._lock.release()
        except FAULTS as error:
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
            try:
                self._db = self._open()
            except BaseException:
                self._file = _NOWHERE  # the next use opens it again, and says why it cannot
                raise
        if moved:
            self._warnings.add(
                f"The history {self.path} was replaced or removed while it was open; what is "
                f"there now is used. {RECOVER}"
            )
        return self._db

    def _begin(self) -> sqlite3.Connection:
        """Hold this process's lock and the file's write lock: what is read is not out of date.

        Without the second, the first is let go: other threads read while this one waits.
        """
        self._lock.acquire()
        try:
            db = self._current()
            db.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._lock.release()
            raise
        return db

    @contextmanager
    def _committed(self, db: sqlite3.Connection) -> Iterator[None]:
        try:
            yield
            # A rollback journal lets the readers end first.
            self._patiently(lambda: db.execute("COMMIT"))
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def _patiently(self, action: Callable[[], Done]) -> Done:
        """Return what `action` does; while another process holds the file, try again."""
        limit = time.monotonic() + BUSY_MS / 1000
        asked = False
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                if result_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > limit:
                    raise
                if not asked and not self._can_lock():
                    raise
            asked = True
            time.sleep(random.uniform(*_PAUSE))

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
                return self._patiently(self._connect)
            except FAULTS as error:
                if result_code(error) not in DAMAGED:
                    raise
                self._set_aside()
            return self._patiently(self._connect)
        except OSError as error:
            raise HistoryError(
                f"The history {self.path} cannot be opened: {error.strerror}.",
                f"Check the folder's rights and the space on the disk, {ELSEWHERE}",
            ) from error
        except FAULTS as error:
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
        """Return a connection to the file, migrated.

        The write-ahead log needs memory that all processes share, which a network's file system
        has not: there it is the rollback journal, whose locks hold between machines too
        (sqlite.org/wal.html).
        """
        # isolation_level None: transactions are begun and ended here, never behind our back.
        db = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            db.row_factory = sqlite3.Row
            # A byte that the disk lost in one text must not hide all the others.
            db.text_factory = lambda data: data.decode("utf-8", "replace")
            self._check_schema(db)
            mode = "delete" if is_shared(self.path) else "wal"
            if db.execute("PRAGMA journal_mode").fetchone()[0] != mode:
                db.execute(f"PRAGMA journal_mode = {mode}")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA foreign_keys = ON")
            if self._suspect.exists():
                if db.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
                    damage = sqlite3.DatabaseError("the check of the file found damage")
                    damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
                    raise damage
                self._suspect.unlink(missing_ok=True)
            if schema_of(db) < len(MIGRATIONS):
                db.execute("BEGIN IMMEDIATE")
                with self._committed(db):
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
                f"Upgrade lumitui, {ELSEWHERE} The file was not touched.",
            )

    def _tell_when_emptied(self) -> None:
        try:
            found = self.path.stat()
        except OSError:
            return  # there is none, or what opens it says why
        # A process that makes the file leaves it empty for a moment only.
        if found.st_size == 0 and time.time() - found.st_mtime > EMPTY_SECONDS:
            self._warnings.add(
                f"The history {self.path} was empty: its runs are lost here. Jobs go on; {RECOVER}"
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
        self._warnings.add(
            f"The history was damaged and is kept as {kept}; a fresh one was begun. Jobs go on; "
            f"{RECOVER}"
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
        if result_code(error) in DAMAGED:
            self._suspect_damage()
        # SQLite says the same of a lock that is held and of a file system that has none.
        if result_code(error) == sqlite3.SQLITE_BUSY and not self._can_lock():
            return HistoryError(f"The history {self.path} {NO_LOCKS[0]}.", NO_LOCKS[1])
        found = SENTENCES.get(extended_code(error)) or SENTENCES.get(result_code(error))
        what, hint = found or (f"cannot be used: {error}", "Start lumitui again.")
        return HistoryError(f"The history {self.path} {what}.", hint)


_NOWHERE = (-1, -1)
"""The identity of no file."""


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
