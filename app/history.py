"""The history: every run ever made from this laptop, in one SQLite file.

The command line and the TUI share the file, in several processes and threads.
"""

import difflib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypedDict, Unpack

from lumitui.app import records
from lumitui.app.metrics import MetricPoint, parse_line
from lumitui.app.records import Run
from lumitui.remote.errors import InputError, LumiError
from lumitui.remote.scheduler import State

BUSY_MS = 5000
"""How long a writer waits for another process's transaction."""
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_UNFINISHED = tuple(state.value for state in State if not state.is_final)
_TEXTS = ("script", "patch", "binding")


class Changes(TypedDict, total=False):
    """What may change in a run after it was made."""

    state: State
    job_id: str | None
    reason: str
    word: str
    rc: int | None
    failed_rank: int | None
    attempt: int
    submitted: float | None
    started: float | None
    ended: float | None
    updated: float
    nodes_used: str
    log_sizes: dict[int, int]
    binding: str | None
    metrics_offset: int
    exits: int
    snapshot: str | None
    note: str
    folder: str


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


class History:
    """The runs, their metrics and the last snapshot of each project's folder on a site."""

    def __init__(self, path: Path) -> None:
        """Open the history at `path`, making folder (0700) and file (0600) when missing.

        A damaged file is kept beside it and a fresh history begun; `warnings` says so.

        Raises:
            LumiError: it cannot be opened, or a newer version of the program wrote it.
        """
        self.path = path
        self.warnings: list[str] = []
        self._lock = threading.RLock()
        self._suspect = path.with_name(f"{path.name}.suspect")
        self._db = self._open()

    def close(self) -> None:
        """Close the file; the history cannot be used any more."""
        with self._lock:
            self._db.close()

    def begin(self, run: Run) -> None:
        """Write a new run; it is on the disk when this returns.

        Raises:
            LumiError: it could not be written, so that nothing may be sent.
        """
        row = records.to_row(run)
        texts = {name: row.pop(name) for name in _TEXTS} | {"run": run.id}
        with self._transaction() as db:
            for table, values in (("runs", row), ("texts", texts)):
                names, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
                db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)

    def update(self, run_id: str, **changes: Unpack[Changes]) -> None:
        """Change a run.

        Raises:
            LumiError: there is no such run, or it could not be written.
        """
        self.update_many([(run_id, changes)])

    def update_many(self, changes: Sequence[tuple[str, Changes]]) -> None:
        """Change several runs in one transaction: all of them or none.

        Raises:
            LumiError: there is no such run, or it could not be written.
        """
        with self._transaction() as db:
            for run_id, change in changes:
                self._change(db, run_id, change)

    def get(self, key: str) -> Run:
        """Return the run whose id is or uniquely begins with `key`; `last` is the newest.

        Raises:
            InputError: there is none, or there are several; it names them.
        """
        if key == "last":
            found = self._runs("ORDER BY r.created DESC, r.id DESC LIMIT 1", texts=_TEXTS)
            if not found:
                raise InputError("There is no run yet.", "Submit a job file first.")
            return found[0]
        ids = [
            str(row[0])
            for row in self._rows(
                "SELECT id FROM runs WHERE substr(id, 1, length(?1)) = ?1"
                " ORDER BY id = ?1 DESC, created DESC LIMIT 6",
                (key,),
            )
        ]
        if not key or not ids:
            raise InputError(f"There is no run {key!r}.", self._nearest(key))
        if ids[0] != key and len(ids) > 1:
            more = ", …" if len(ids) > 5 else ""
            raise InputError(
                f"Several runs begin with {key!r}: {', '.join(ids[:5])}{more}.",
                "Give more of the id.",
            )
        return self._runs("WHERE r.id = ?", (ids[0],), texts=_TEXTS)[0]

    def page(
        self,
        limit: int = 50,
        before: float | None = None,
        site: str | None = None,
        state: State | None = None,
        text: str = "",
    ) -> list[Run]:
        """Return runs made before `before`, newest first, at most `limit`.

        `text` is looked for in id, name, job id and note. The big texts are not read: `script`
        and `provenance.patch` are empty here; `get` has them.
        """
        where: list[str] = ["1"]
        values: list[str | float] = []
        for condition, value in (
            ("r.created < ?", before),
            ("r.site = ?", site),
            ("r.state = ?", state.value if state else None),
        ):
            if value is not None:
                where.append(condition)
                values.append(value)
        if text:
            escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
            columns = "r.id || ' ' || r.name || ' ' || coalesce(r.job_id, '') || ' ' || r.note"
            where.append(f"{columns} LIKE ? ESCAPE '\\'")
            values.append(f"%{escaped}%")
        return self._runs(
            f"WHERE {' AND '.join(where)} ORDER BY r.created DESC, r.id DESC LIMIT ?",
            (*values, limit),
            texts=("binding",),
        )

    def unfinished(self, site: str | None = None) -> list[Run]:
        """Return the runs that something may still happen to, oldest first.

        `provenance.patch` is not read and empty here; `script` and `binding` are there.
        """
        where = f"r.state IN ({', '.join('?' for _ in _UNFINISHED)})"
        values = _UNFINISHED
        if site is not None:
            where, values = f"{where} AND r.site = ?", (*values, site)
        return self._runs(f"WHERE {where} ORDER BY r.created, r.id", values, ("script", "binding"))

    def lineage(self, run_id: str) -> list[Run]:
        """Return the run with its chain of parents and all its descendants, root first.

        The lineage of the root is the whole tree. The big texts are empty, as in `page`.
        """
        return self._runs(
            "WHERE r.id IN ("
            " WITH RECURSIVE up (id) AS (VALUES (?1) UNION"
            " SELECT parent FROM runs JOIN up USING (id) WHERE parent IS NOT NULL),"
            " down (id) AS (VALUES (?1) UNION"
            " SELECT runs.id FROM runs JOIN down ON runs.parent = down.id)"
            " SELECT id FROM up UNION SELECT id FROM down) ORDER BY r.created, r.id",
            (run_id,),
            ("binding",),
        )

    def count(self) -> int:
        """Return how many runs there are."""
        return int(self._rows("SELECT count(*) FROM runs")[0][0])

    def add_metrics(
        self, run_id: str, lines: Sequence[bytes], span: tuple[int, int] | None = None
    ) -> int:
        """Append lines of metrics.jsonl; return how many were broken and left out.

        With `span`, the bytes of the file the lines were cut from, they are added only when
        the run's `metrics_offset` is where the span begins, and it is moved to the span's end
        in the same transaction: two processes that fetched the same bytes add them once.

        Raises:
            LumiError: there is no such run, or it could not be written.
        """
        texts = [line.decode("utf-8", "replace").strip() for line in lines if line.strip()]
        good = [text for text in texts if parse_line(text.encode("utf-8", "replace"))]
        broken = len(texts) - len(good)
        with self._transaction() as db:
            row = db.execute("SELECT metrics_offset FROM runs WHERE id = ?", (run_id,)).fetchone()
            if row is None:
                raise _no_run(run_id)
            if span is not None and row[0] != span[0]:
                return 0
            (first,) = db.execute(
                "SELECT coalesce(max(ordinal) + 1, 0) FROM metrics WHERE run = ?", (run_id,)
            ).fetchone()
            db.executemany(
                "INSERT INTO metrics VALUES (?, ?, ?)",
                [(run_id, first + index, text) for index, text in enumerate(good)],
            )
            db.execute(
                "UPDATE runs SET broken_metrics = broken_metrics + ?, metrics_offset = ?"
                " WHERE id = ?",
                (broken, row[0] if span is None else span[1], run_id),
            )
        return broken

    def metrics(self, run_id: str, *, last: int | None = None) -> list[MetricPoint]:
        """Return the run's points in the order they were written; only the `last` ones if given."""
        rows = self._rows(
            "SELECT line FROM metrics WHERE run = ? ORDER BY ordinal DESC LIMIT ?",
            (run_id, -1 if last is None else max(0, last)),
        )
        points = (parse_line(str(row[0]).encode()) for row in reversed(rows))
        return [point for point in points if point is not None]

    def broken_metrics(self, run_id: str) -> int:
        """Return how many lines of the run's metrics.jsonl could not be read."""
        rows = self._rows("SELECT broken_metrics FROM runs WHERE id = ?", (run_id,))
        return int(rows[0][0]) if rows else 0

    def remember_manifest(self, site: str, root: str, manifest_text: str, manifest_id: str) -> None:
        """Keep the manifest of the last snapshot known to stand in `root` on `site`."""
        with self._transaction() as db:
            db.execute(
                "INSERT INTO manifests (site, root, id, manifest) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET id = excluded.id, manifest = excluded.manifest",
                (site, root, manifest_id, manifest_text),
            )

    def known_manifest(self, site: str, root: str) -> str | None:
        """Return the text of that manifest; None when no snapshot is known there."""
        rows = self._rows(
            "SELECT manifest FROM manifests WHERE site = ? AND root = ?", (site, root)
        )
        return str(rows[0][0]) if rows else None

    def snapshots_in_use(self, site: str) -> dict[str, set[str]]:
        """Return, for each project's folder on `site`, the snapshots that must stay.

        Those of unfinished runs, which may still be copied, and the last one that was sent, on
        which the next builds.
        """
        kept: dict[str, set[str]] = {}
        for row in self._rows("SELECT DISTINCT root FROM runs WHERE site = ?", (site,)):
            kept[str(row[0])] = set()
        for row in self._rows("SELECT root, id FROM manifests WHERE site = ?", (site,)):
            kept.setdefault(str(row[0]), set()).add(str(row[1]))
        marks = ", ".join("?" for _ in _UNFINISHED)
        query = f"SELECT root, snapshot FROM runs WHERE site = ? AND state IN ({marks})"
        for row in self._rows(query, (site, *_UNFINISHED)):
            if row[1] is not None:
                kept[str(row[0])].add(str(row[1]))
        return kept

    def _change(self, db: sqlite3.Connection, run_id: str, change: Changes) -> None:
        values = {name: records.column(value) for name, value in change.items()}
        if "binding" in values:
            db.execute(
                "UPDATE texts SET binding = ? WHERE run = ?", (values.pop("binding"), run_id)
            )
        sets = ", ".join(f"{name} = :{name}" for name in values) or "id = id"
        if not db.execute(f"UPDATE runs SET {sets} WHERE id = :id", values | {"id": run_id}).rowcount:
            raise _no_run(run_id)

    def _runs(
        self, tail: str, values: Sequence[str | float] = (), texts: Sequence[str] = ()
    ) -> list[Run]:
        columns = ["r.*"]
        for name in _TEXTS:
            empty = "NULL" if name == "binding" else "''"
            columns.append(f"{f't.{name}' if name in texts else empty} AS {name}")
        rows = self._rows(
            f"SELECT {', '.join(columns)} FROM runs r LEFT JOIN texts t ON t.run = r.id {tail}",
            values,
        )
        runs = []
        for row in rows:
            try:
                runs.append(records.from_row(dict(row)))
            except ValueError as error:
                warning = f"The run {row['id']} of another version cannot be read: {error}"
                if warning not in self.warnings:
                    self.warnings.append(warning)
        return runs

    def _nearest(self, key: str) -> str:
        rows = self._rows("SELECT id FROM runs ORDER BY created DESC LIMIT 500")
        ids = [str(row[0]) for row in rows]
        near = difflib.get_close_matches(key, ids, n=3, cutoff=0.5) or ids[:3]
        return f"The nearest are {', '.join(near)}." if near else "There is no run yet."

    def _rows(self, query: str, values: Sequence[str | float] = ()) -> list[sqlite3.Row]:
        with self._lock:
            try:
                return self._db.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise self._translated(error) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
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
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
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
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        self.warnings.append(
            f"The history was damaged and is kept as {kept}; a fresh one was begun. "
            "Jobs on the cluster go on; their folders are still there."
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


def _no_run(run_id: str) -> LumiError:
    return LumiError(f"The history has no run {run_id!r}.", "Look at the list of runs.")


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
