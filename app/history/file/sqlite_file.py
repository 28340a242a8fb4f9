"""The SQLite file of the history: opened, checked, shared by processes and threads."""

import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lumitui.app.history.file.damage import Damage, begin_missing, damage_in
from lumitui.app.history.file.filesystem import NO_FILE, can_lock, identity, is_shared, size
from lumitui.app.history.file.schema import check
from lumitui.app.history.file.sqlite_errors import (
    DAMAGED,
    ELSEWHERE,
    FAULTS,
    RECOVER,
    PendingWarnings,
    history_error,
    result_code,
)
from lumitui.app.history.rows.kept_texts import arguments, lost_texts
from lumitui.remote.site.errors import HistoryError

BUSY_MS = 30_000
"""Seconds to wait for other processes' transactions. SQLite's own wait slows down to ten tries a
second; on a loaded machine, one of three busy writers found no gap in 5 s."""
_PAUSE = (0.001, 0.02)
"""Seconds between two tries."""

Done = TypeVar("Done")


@dataclass(frozen=True)
class FileFacts:
    """The state of the file."""

    path: Path
    schema: int
    size: int
    """Bytes, including the write-ahead log."""
    damage: str | None
    """The result of SQLite's check, '' if it is intact; None if it was not checked."""
    lost_texts: int | None
    """Number of unreadable texts of runs; None if they were not checked."""


class Database:
    """One SQLite file that processes and threads share.

    Methods that read or write it raise HistoryError on failure.
    """

    def __init__(self, path: Path, warnings: PendingWarnings) -> None:
        """Open the file; create its folder (0700) and the file (0600) if missing.

        A damaged file is set aside and replaced by a new one; `warnings` receives a sentence.

        Raises:
            HistoryError: the file cannot be opened, or another version wrote it.
        """
        self.path = path
        self._warnings = warnings
        self._lock = threading.RLock()
        self._damage = Damage(path, warnings)
        self._closed = False
        self._identity = NO_FILE
        self._opened = 0
        self._db = self._open()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._closed = True
            self._db.close()

    def rows(self, query: str, values: Sequence[str | float] = ()) -> list[sqlite3.Row]:
        """Return the rows of `query`; a value that is not UTF-8 matches no row."""
        sought = [
            # A command-line word may have bytes that are not UTF-8, which SQLite refuses.
            value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
            for value in values
        ]

        return self.read(lambda db: db.execute(query, sought).fetchall())

    def read(self, action: Callable[[sqlite3.Connection], Done]) -> Done:
        """Return the result of `action`, which only reads the file."""

        def once() -> Done:
            with self._lock:
                return action(self._current())

        try:
            return self._retried(once)
        except FAULTS as error:
            # A newer version may have moved a table meanwhile.
            if result_code(error) == sqlite3.SQLITE_ERROR:
                with suppress(*FAULTS):
                    check(self._db, self.path)
            raise self._fault(error) from error

    def version(self) -> tuple[int, int, int]:
        """Return the number of opens, and two numbers that change with each write.

        The first number is for other connections' writes
        (sqlite.org/pragma.html#pragma_data_version), the second for this one's. Reads no page.
        """
        return self.read(
            lambda db: (
                self._opened,
                int(db.execute("PRAGMA data_version").fetchone()[0]),
                db.total_changes,
            )
        )

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the write lock; at the end, either all changes inside are on the disk or none."""
        try:
            db = self._retried(self._begin)
            try:
                with self._committed(db):
                    check(db, self.path)
                    yield db
                    if self._moved():
                        raise HistoryError(
                            f"The history {self.path} was replaced while it was written.",
                            "Try again.",
                        )
            finally:
                self._lock.release()
        except FAULTS as error:
            raise self._fault(error) from error

    def facts(self, *, check: bool) -> FileFacts:
        """Return the state of the file; `check` reads the whole file."""
        sizes = (size(self.path), size(Path(f"{self.path}-wal")))
        schema = int(self.rows("PRAGMA user_version")[0][0])
        if not check:
            return FileFacts(self.path, schema, sum(sizes), None, None)
        damage = self.read(lambda db: damage_in(db, self.path, indexes=False))
        if damage:
            self._damage.suspect()
        lost = 0 if damage else len(self.read(lost_texts))
        return FileFacts(self.path, schema, sum(sizes), damage, lost)

    def _current(self) -> sqlite3.Connection:
        """Return a connection to the current file at the path.

        Another process may have set a damaged file aside, or a user removed it; writes to a file
        without a name would be lost.
        """
        if self._closed:
            return self._db  # using it raises the error that it is closed
        moved = self._moved()
        if moved or self._damage.suspected:
            self._db.close()
            try:
                self._db = self._open()
            except BaseException:
                self._identity = _UNKNOWN  # the next use opens it again or reports the error
                raise
        if moved:
            self._warnings.add(
                f"The history {self.path} was replaced or removed while it was open; lumitui now "
                f"uses the new file. {RECOVER}"
            )
        return self._db

    def _begin(self) -> sqlite3.Connection:
        """Take this process's lock and the file's write lock, so that reads are current.

        While waiting for the file's lock, release this process's, so that other threads can read.
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
            # With a rollback journal, readers finish first.
            self._retried(lambda: db.execute("COMMIT"))
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def _retried(self, action: Callable[[], Done]) -> Done:
        """Return the result of `action`; retry while another process locks the file."""
        limit = time.monotonic() + BUSY_MS / 1000
        is_held = False
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                if result_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > limit:
                    raise
                if not is_held and not can_lock(self.path):
                    raise
            is_held = True
            time.sleep(random.uniform(*_PAUSE))

    def _moved(self) -> bool:
        return identity(self.path) != self._identity

    def _open(self) -> sqlite3.Connection:
        self._opened += 1
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            begin_missing(self.path)
            self.path.chmod(0o600)
            self._identity = identity(self.path)
            if self._damage.is_empty():
                self._identity = self._damage.set_aside(self._identity)
            try:
                return self._retried(self._connect)
            except FAULTS as error:
                if result_code(error) not in DAMAGED:
                    raise
                self._identity = self._damage.set_aside(self._identity)
            return self._retried(self._connect)
        except OSError as error:
            raise HistoryError(
                f"The history {self.path} cannot be opened: {error.strerror}.",
                f"Check the folder's permissions and the space on the disk, {ELSEWHERE}",
            ) from error
        except FAULTS as error:
            raise self._fault(error) from error

    def _connect(self) -> sqlite3.Connection:
        """Return a connection to the file.

        The write-ahead log needs memory shared by all processes, which network file systems lack.
        There, the rollback journal is used, whose locks also work across machines
        (sqlite.org/wal.html).
        """
        # isolation_level None: transactions begin and end here only, never implicitly.
        db = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            db.row_factory = sqlite3.Row
            # A damaged byte in one text must not hide all others.
            db.text_factory = lambda data: data.decode("utf-8", "replace")
            check(db, self.path)
            mode = "delete" if is_shared(self.path) else "wal"
            if db.execute("PRAGMA journal_mode").fetchone()[0] != mode:
                db.execute(f"PRAGMA journal_mode = {mode}")
            db.execute("PRAGMA synchronous = FULL")
            if self._damage.suspected:
                if damage_in(db, self.path, indexes=True):
                    damage = sqlite3.DatabaseError("the check of the file found damage")
                    damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
                    raise damage
                self._damage.clear()
            db.execute("PRAGMA foreign_keys = ON")
            db.create_function("arguments", 1, arguments, deterministic=True)
            db.create_function("folded", 1, str.casefold, deterministic=True)
        except BaseException:
            db.close()
            raise
        return db

    def _fault(self, error: Exception) -> HistoryError:
        """Return the error for a fault; the next use checks a file that may be damaged."""
        if result_code(error) in DAMAGED:
            self._damage.suspect()
        return history_error(error, self.path)


_UNKNOWN = (-1, -1)
"""The identity of no file, so that the next use reopens the path."""
