"""Schema 4: texts leave the rows of runs, and are kept once. A released migration: never edited.

It is part of one transaction: a process that is killed, or a full disk, leaves the old file. It
needs little memory, because SQLite writes what it changes to the log meanwhile. Bytes are moved,
not text: what a disk has spoilt stays as it is.
"""

import sqlite3
from collections import OrderedDict

from lumitui.app.history.texts.packing import digest_of, pack

_KINDS = ("spec", "layout", "price", "command", "deepspeed_config", "script", "patch", "binding")
_COLUMNS = (
    "id, name, site, created, parent, global_batch, project, job_file, folder, root, token,"
    " git_commit, branch, dirty, snapshot, state, job_id, reason, word, rc, failed_rank, attempt,"
    " submitted, started, ended, updated, nodes_used, log_sizes, metrics_offset, exits,"
    " resumed_from, note, broken_metrics, expected_start, expected_end"
)
_REMEMBERED = 10_000
"""Texts whose numbers are not looked up again."""


def keep_texts_once(db: sqlite3.Connection) -> None:
    """Make the tables of schema 4 and move everything into them."""
    _make_tables(db)
    numbers = _Numbers(db)
    places = {"spec": "r", "layout": "r", "price": "r", "command": "r", "deepspeed_config": "r"}
    columns = ", ".join(f"CAST({places.get(kind, 't')}.{kind} AS BLOB)" for kind in _KINDS)
    marks = ", ".join("?" for _ in _KINDS)
    copy = (
        f"INSERT INTO new_runs ({_COLUMNS}, {', '.join(_KINDS)})"
        f" SELECT {_COLUMNS}, {marks} FROM runs WHERE rowid = ?"
    )
    for rowid, *texts in db.execute(
        f"SELECT r.rowid, {columns} FROM runs r LEFT JOIN texts t ON t.run = r.id ORDER BY r.rowid"
    ):
        found = [numbers.of(kind, text) for kind, text in zip(_KINDS, texts, strict=True)]
        db.execute(copy, (*found, rowid))
    for site, root, name, manifest in db.execute(
        "SELECT CAST(site AS BLOB), CAST(root AS BLOB), CAST(id AS BLOB), CAST(manifest AS BLOB)"
        " FROM manifests"
    ):
        db.execute(
            "INSERT INTO new_manifests VALUES"
            " (CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), ?)",
            (site, root, name, numbers.of("manifest", manifest)),
        )
    for table in ("texts", "runs", "manifests"):
        db.execute(f"DROP TABLE {table}")
    for table in ("runs", "manifests"):
        db.execute(f"ALTER TABLE new_{table} RENAME TO {table}")
    _make_indexes(db)


def _make_tables(db: sqlite3.Connection) -> None:
    # AUTOINCREMENT: the number of a text that is gone never becomes that of another.
    db.execute(
        "CREATE TABLE blobs (id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL,"
        " digest BLOB NOT NULL, packed BLOB NOT NULL, UNIQUE (kind, digest))"
    )
    # `words` is what a search looks through. It is kept in the index alone.
    db.execute(
        "CREATE TABLE new_runs (id TEXT PRIMARY KEY, name TEXT NOT NULL, site TEXT NOT NULL,"
        " created REAL NOT NULL, parent TEXT, spec INTEGER, layout INTEGER, price INTEGER,"
        " command INTEGER, deepspeed_config INTEGER, script INTEGER, patch INTEGER,"
        " binding INTEGER, global_batch INTEGER, project TEXT NOT NULL, job_file TEXT,"
        " folder TEXT NOT NULL, root TEXT NOT NULL, token TEXT NOT NULL, git_commit TEXT,"
        " branch TEXT, dirty INTEGER NOT NULL, snapshot TEXT, state TEXT NOT NULL, job_id TEXT,"
        " reason TEXT NOT NULL, word TEXT NOT NULL, rc INTEGER, failed_rank INTEGER,"
        " attempt INTEGER NOT NULL, submitted REAL, started REAL, ended REAL,"
        " updated REAL NOT NULL, nodes_used TEXT NOT NULL, log_sizes TEXT NOT NULL,"
        " metrics_offset INTEGER NOT NULL, exits INTEGER NOT NULL, resumed_from TEXT,"
        " note TEXT NOT NULL, broken_metrics INTEGER NOT NULL DEFAULT 0, expected_start REAL,"
        " expected_end REAL, words TEXT GENERATED ALWAYS AS"
        " (id || ' ' || name || ' ' || coalesce(job_id, '') || ' ' || note) VIRTUAL)"
    )
    db.execute(
        "CREATE TABLE new_manifests (site TEXT NOT NULL, root TEXT NOT NULL, id TEXT NOT NULL,"
        " manifest INTEGER, PRIMARY KEY (site, root)) WITHOUT ROWID"
    )


def _make_indexes(db: sqlite3.Connection) -> None:
    # A page with any filter reads this one alone, and of the table what it shows.
    db.execute("CREATE INDEX runs_listed ON runs (created, id, site, state, words)")
    db.execute("CREATE INDEX runs_state ON runs (state)")
    db.execute("CREATE INDEX runs_parent ON runs (parent)")
    db.execute("CREATE INDEX runs_binding ON runs (binding)")


class _Numbers:
    """The numbers of the texts that are kept already."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._last: OrderedDict[tuple[str, bytes], int] = OrderedDict()

    def of(self, kind: str, data: bytes | None) -> int | None:
        if data is None:
            return None
        key = (kind, digest_of(data))
        number = self._last.get(key)
        if number is None:
            number = self._written(key, data)
            if len(self._last) >= _REMEMBERED:
                self._last.popitem(last=False)
        self._last[key] = number
        self._last.move_to_end(key)
        return number

    def _written(self, key: tuple[str, bytes], data: bytes) -> int:
        known = self._db.execute("SELECT id FROM blobs WHERE kind = ? AND digest = ?", key)
        if row := known.fetchone():
            return int(row[0])
        values = (*key, pack(data))
        done = self._db.execute("INSERT INTO blobs (kind, digest, packed) VALUES (?, ?, ?)", values)
        return done.lastrowid or 0
