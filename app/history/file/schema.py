"""The tables of the history's file, and the check of its owner."""

import sqlite3
from pathlib import Path

from lumitui.app.history.file.sqlite_errors import ELSEWHERE, RECOVER
from lumitui.app.history.rows.run_row import COLUMNS, NUMBERS
from lumitui.app.job.settings import version
from lumitui.remote.site.errors import HistoryError

SCHEMA = 1
"""The version of these tables. A released version is never edited; tests/golden/schemas/ has
each."""
_APPLICATION = 0x6C756D74
"""Marks the file as a history (sqlite.org/pragma.html#pragma_application_id)."""

_TABLES = (
    # The version of lumitui that wrote the file, for the error of an older one.
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # Each text is stored once. AUTOINCREMENT: the number of a deleted text is never reused.
    "CREATE TABLE blobs (id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL,"
    " digest BLOB NOT NULL, packed BLOB NOT NULL, UNIQUE (kind, digest))",
    # Searches read `words`, which only the index stores.
    f"CREATE TABLE runs ({', '.join(column.declared for column in COLUMNS)},"
    f" {', '.join(f'{name} REAL NOT NULL' for name in NUMBERS)},"
    " broken_metrics INTEGER NOT NULL DEFAULT 0, words TEXT GENERATED ALWAYS AS"
    " (id || ' ' || name || ' ' || coalesce(job_id, '') || ' ' || note) VIRTUAL,"
    " PRIMARY KEY (id))",
    # A page with any filter reads only this index, and the table for the runs it shows.
    "CREATE INDEX runs_listed ON runs (created, id, site, state, words)",
    "CREATE INDEX runs_state ON runs (state)",
    "CREATE INDEX runs_parent ON runs (parent)",
    "CREATE INDEX runs_binding ON runs (binding)",
    "CREATE TABLE metrics (run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,"
    " ordinal INTEGER NOT NULL, line TEXT NOT NULL, PRIMARY KEY (run, ordinal))"
    " WITHOUT ROWID",
    "CREATE TABLE manifests (site TEXT NOT NULL, root TEXT NOT NULL, id TEXT NOT NULL,"
    " manifest INTEGER, PRIMARY KEY (site, root)) WITHOUT ROWID",
    "CREATE TABLE series (id TEXT PRIMARY KEY, kind TEXT NOT NULL, site TEXT NOT NULL,"
    " source TEXT NOT NULL, created REAL NOT NULL, offered INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE series_members (series TEXT NOT NULL REFERENCES series (id)"
    " ON DELETE CASCADE, place INTEGER NOT NULL, words TEXT NOT NULL, plan TEXT NOT NULL,"
    " PRIMARY KEY (series, place)) WITHOUT ROWID",
    # A run is claimed before it is in `runs`. The rowids give the order of claims to a place.
    "CREATE TABLE series_runs (run TEXT PRIMARY KEY, series TEXT NOT NULL, place INTEGER NOT NULL)",
    "CREATE INDEX series_runs_place ON series_runs (series, place)",
)


def create(db: sqlite3.Connection) -> None:
    """Create all tables; the caller has begun a transaction."""
    for statement in _TABLES:
        db.execute(statement)
    db.execute("INSERT INTO about VALUES ('lumitui', ?)", (version(),))
    db.execute(f"PRAGMA application_id = {_APPLICATION}")
    db.execute(f"PRAGMA user_version = {SCHEMA}")


def check(db: sqlite3.Connection, path: Path) -> None:
    """Raise HistoryError if another version or program wrote the file, before changing it."""
    schema, mark = (
        int(db.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("user_version", "application_id")
    )
    if mark != _APPLICATION:
        raise HistoryError(
            f"The file {path} is not a lumitui history: another program wrote it.",
            f"Move it elsewhere, {ELSEWHERE}",
        )
    if schema > SCHEMA:
        raise HistoryError(
            f"The history {path} was written by {_writer(db)} (schema {schema}; "
            f"this version, {version()}, supports schema {SCHEMA}).",
            f"Upgrade lumitui, {ELSEWHERE} The file was not touched.",
        )
    if schema < SCHEMA:
        raise HistoryError(
            f"The history {path} has an invalid schema version: its PRAGMA user_version is "
            f"{schema}.",
            f"Move it elsewhere, {ELSEWHERE} {RECOVER}",
        )


def _writer(db: sqlite3.Connection) -> str:
    try:
        row = db.execute("SELECT value FROM about WHERE name = 'lumitui'").fetchone()
    except sqlite3.Error:
        row = None
    return f"lumitui {row[0]}" if row else "a newer lumitui"
