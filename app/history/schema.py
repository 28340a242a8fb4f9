"""The tables of the history's file, as a list of migrations that only grows.

A released migration is never edited: tests/golden/schemas/ holds the tables that each one made.
"""

import sqlite3
from collections.abc import Callable

from lumitui.app.history.texts.migration import keep_texts_once
from lumitui.app.job.settings import version


def _first_tables(db: sqlite3.Connection) -> None:
    # The big texts have a table of their own: a page must not read a megabyte of patch a row.
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


def _about(db: sqlite3.Connection) -> None:
    # Which lumitui wrote the file: one that is too old for it names it in its error.
    db.execute("CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")


def _expectations(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE runs ADD COLUMN expected_start REAL")
    db.execute("ALTER TABLE runs ADD COLUMN expected_end REAL")


def _machinery(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE runs ADD COLUMN machinery INTEGER")
    db.execute("ALTER TABLE runs ADD COLUMN probe INTEGER")


def _series(db: sqlite3.Connection) -> None:
    db.execute(
        "CREATE TABLE series (id TEXT PRIMARY KEY, kind TEXT NOT NULL, site TEXT NOT NULL,"
        " source TEXT NOT NULL, created REAL NOT NULL, offered INTEGER NOT NULL) WITHOUT ROWID"
    )
    db.execute(
        "CREATE TABLE series_members (series TEXT NOT NULL REFERENCES series (id)"
        " ON DELETE CASCADE, place INTEGER NOT NULL, words TEXT NOT NULL, plan TEXT NOT NULL,"
        " PRIMARY KEY (series, place)) WITHOUT ROWID"
    )
    # A run is claimed before it is in `runs`. The rowids say which claim of a place came last.
    db.execute(
        "CREATE TABLE series_runs (run TEXT PRIMARY KEY, series TEXT NOT NULL,"
        " place INTEGER NOT NULL)"
    )
    db.execute("CREATE INDEX series_runs_place ON series_runs (series, place)")


def _attempts(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE runs ADD COLUMN attempts TEXT NOT NULL DEFAULT '[]'")
    db.execute("ALTER TABLE runs ADD COLUMN attempts_read INTEGER NOT NULL DEFAULT 0")


def _cause(db: sqlite3.Connection) -> None:
    db.execute("ALTER TABLE runs ADD COLUMN cause TEXT NOT NULL DEFAULT ''")


MIGRATIONS: list[Callable[[sqlite3.Connection], None]] = [
    _first_tables,
    _about,
    _expectations,
    keep_texts_once,
    _machinery,
    _series,
    _attempts,
    _cause,
]
"""Each brings the schema from its index to the next."""


def migrate(db: sqlite3.Connection, migrations: list[Callable[[sqlite3.Connection], None]]) -> None:
    """Run the `migrations` that are missing, all or none: the caller holds the write lock.

    Foreign keys are not enforced meanwhile: a table that is made anew is dropped first.
    """
    done = schema_of(db)
    if done >= len(migrations):
        return
    for migration in migrations[done:]:
        migration(db)
    db.execute("INSERT OR REPLACE INTO about VALUES ('lumitui', ?)", (version(),))
    db.execute(f"PRAGMA user_version = {len(migrations)}")


def schema_of(db: sqlite3.Connection) -> int:
    """Return how many migrations the file has had."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def writer_of(db: sqlite3.Connection) -> str:
    """Return the version of the lumitui that migrated the file last, or `a newer lumitui`."""
    try:
        row = db.execute("SELECT value FROM about WHERE name = 'lumitui'").fetchone()
    except sqlite3.Error:
        row = None
    return f"lumitui {row[0]}" if row else "a newer lumitui"
