"""The file that history is kept in: opened, migrated, its faults told in sentences.

Only this module and `history` know SQLite.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from lumitui.remote.errors import LumiError

BUSY_MS = 5000
"""How long a writer waits for another process's transaction."""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _first_tables(db: sqlite3.Connection) -> None:
    # The big texts lie apart: a page of runs must not read a megabyte of patch a row.
    db.execute(
        "CREATE TABLE runs (id TEXT PRIMARY KEY, name TEXT NOT NULL, site TEXT NOT NULL,"
        " created REAL NOT NULL, parent TEXT, spec TEXT NOT NULL, command TEXT NOT NULL,"
        " layout TEXT NOT NULL, price TEXT NOT NULL, global_batch INTEGER, deepspeed_config TEXT,"
        " project TEXT NOT NULL, job_file TEXT, folder TEXT NOT NULL, root TEXT NOT NULL,"
        " token TEXT NOT NULL, git_commit TEXT, branch TEXT, dirty INTEGER NOT NULL,"
        " snapshot TEXT, state TEXT NOT NULL, job_id TEXT, reason TEXT NOT NULL,"
        " word TEXT NOT NULL, rc INTEGER, failed_rank INTEGER, attempt INTEGER NOT NULL,"
        " submitted REAL, started REAL, ended REAL, updated REAL NOT NULL,"
        " nodes_used TEXT NOT NULL, log_sizes TEXT NOT NULL, metrics_offset INTEGER NOT NULL,"
        " exits INTEGER NOT NULL, resumed_from TEXT, note TEXT NOT NULL,"
        " broken_metrics INTEGER NOT NULL DEFAULT 0)"
    )
    db.execute("CREATE INDEX runs_created ON runs (created, id)")
    db.execute("CREATE INDEX runs_state ON runs (state)")
    db.execute("CREATE INDEX runs_parent ON runs (parent)")
    db.execute(
        "CREATE TABLE texts (run TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,"
        " script TEXT NOT NULL, patch TEXT NOT NULL, binding TEXT)"
    )
    db.execute(
        "CREATE TABLE metrics (run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,"
        " ordinal INTEGER NOT NULL, line TEXT NOT NULL, PRIMARY KEY (run, ordinal))"
        " WITHOUT ROWID"
    )
    db.execute(
        "CREATE TABLE manifests (site TEXT NOT NULL, root TEXT NOT NULL, id TEXT NOT NULL,"
        " manifest TEXT NOT NULL, PRIMARY KEY (site, root)) WITHOUT ROWID"
    )


MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = [_first_tables]
"""Each brings the schema from its index to the next; the list only grows."""


class Database:
    """One SQLite file that processes and threads share."""

    def __init__(self, path: Path) -> None:
        """Open the file, making folder (0700) and file (0600) when missing.

        A damaged file is kept beside it and a fresh one begun; `warnings` says so.

        Raises:
            LumiError: it cannot be opened, or a newer version of the program wrote it.
        """
        self.path = path
        self.warnings: list[str] = []
        self._lock = threading.RLock()
        self._suspect = path.with_name(f"{path.name}.suspect")
        self._db = self._open()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def rows(self, query: str, values: Sequence[str | float] = ()) -> list[sqlite3.Row]:
        """Return the rows of `query`.

        Raises:
            LumiError: the file cannot be read.
        """
        with self._lock:
            try:
                return self._db.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise self._translated(error) from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the write lock; all that is done inside is on the disk at the end, or nothing.

        Raises:
            LumiError: the file cannot be written.
        """
        with self._lock:
            try:
                with _immediate(self._db):
                    yield self._db
            except sqlite3.Error as error:
                raise self._translated(error) from error

    def _open(self) -> sqlite3.Connection:
        seen = 0
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._create()
            self.path.chmod(0o600)
            seen = self.path.stat().st_ino
            try:
                return self._connect()
            except sqlite3.Error as error:
                if _code(error) not in _DAMAGED:
                    raise
                self._set_aside(seen)
            return self._connect()
        except OSError as error:
            raise LumiError(
                f"The history {self.path} cannot be opened: {error.strerror}.",
                "Check the folder's rights and the space on the disk.",
            ) from error
        except sqlite3.Error as error:
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
            db.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
            _use_wal(db)
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA foreign_keys = ON")
            if self._suspect.exists():
                if db.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
                    damage = sqlite3.DatabaseError("the check of the file found damage")
                    damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
                    raise damage
                self._suspect.unlink(missing_ok=True)
            self._migrate(db)
        except BaseException:
            db.close()
            raise
        return db

    def _migrate(self, db: sqlite3.Connection) -> None:
        if _version(db) == len(MIGRATIONS):
            return
        with _immediate(db):
            # Read again: another process may have migrated while this one waited.
            version = _version(db)
            if version > len(MIGRATIONS):
                raise LumiError(
                    f"The history {self.path} was written by a newer lumitui "
                    f"(schema {version}; this one knows {len(MIGRATIONS)}).",
                    "Upgrade lumitui; the file was not touched.",
                )
            for migration in MIGRATIONS[version:]:
                migration(db)
            db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _set_aside(self, seen: int) -> None:
        """Rename the damaged file `seen`, unless another process has already done it."""
        if self.path.stat().st_ino != seen:
            return
        kept = self.path.with_name(f"{self.path.name}.corrupt-{time.time_ns()}")
        self.path.rename(kept)
        for suffix in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                os.rename(f"{self.path}{suffix}", f"{kept}{suffix}")
        self._suspect.unlink(missing_ok=True)
        self._create()
        self.warnings.append(
            f"The history was damaged and is kept as {kept}; a fresh one was begun. Jobs go on; "
            "`lumitui history --recover SITE` rebuilds their records from their folders."
        )

    def _translated(self, error: sqlite3.Error) -> LumiError:
        code = _code(error)
        if code in _DAMAGED:
            # Seen in the middle of work: the next start checks the file and sets it aside.
            with suppress(OSError):
                self._suspect.touch()
        what, hint = _SENTENCES.get(code, (f"cannot be used: {error}", "Start lumitui again."))
        return LumiError(f"The history {self.path} {what}.", hint)


_SENTENCES: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: ("cannot grow: the disk is full", "Free some space and try again."),
    sqlite3.SQLITE_IOERR: ("could not be read or written", "Check the disk and its space."),
    sqlite3.SQLITE_BUSY: (
        "is held by another lumitui",
        "Try again; if it stays so, end the other one.",
    ),
    sqlite3.SQLITE_LOCKED: ("is locked", "Try again."),
    sqlite3.SQLITE_READONLY: ("is read-only", "Check the rights of the file and its folder."),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "Check the rights of the file and its folder."),
    sqlite3.SQLITE_PERM: ("may not be opened", "Check the rights of the file and its folder."),
    sqlite3.SQLITE_CORRUPT: ("is damaged", "Start lumitui again: it begins a fresh one."),
    sqlite3.SQLITE_NOTADB: ("is damaged", "Start lumitui again: it begins a fresh one."),
    sqlite3.SQLITE_CONSTRAINT: ("refused a record", "Start lumitui again."),
}
"""SQLite's primary result codes (sqlite.org/rescode.html) as what happened and what to try."""


def _code(error: sqlite3.Error) -> int:
    """Return the primary result code; 0 for an error of Python's own module."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _use_wal(db: sqlite3.Connection) -> None:
    """Switch to write-ahead logging; the switch does not wait for another process by itself."""
    limit = time.monotonic() + BUSY_MS / 1000
    while db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            db.execute("PRAGMA journal_mode = WAL")
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
