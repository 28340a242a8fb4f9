"""Who wrote a history's file: this lumitui, a newer one, or another program."""

import sqlite3
from pathlib import Path

from lumitui.app.history.file.sqlite_errors import ELSEWHERE, RECOVER
from lumitui.app.history.schema import schema_of, writer_of
from lumitui.app.job.settings import version
from lumitui.remote.site.errors import HistoryError


def check_schema(db: sqlite3.Connection, path: Path, known: int) -> None:
    """Refuse a file of a newer schema than the `known` ones, before anything of it is changed.

    Raises:
        HistoryError: it says which version wrote the file.
    """
    schema = schema_of(db)
    if schema > known:
        raise HistoryError(
            f"The history {path} was written by {writer_of(db)} (schema {schema}; "
            f"this one, {version()}, knows {known}).",
            f"Upgrade lumitui, {ELSEWHERE} The file was not touched.",
        )


def check_origin(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a file of another program, and one that has lost its version.

    Raises:
        HistoryError: it says which of them it is.
    """
    schema = schema_of(db)
    tables = {str(row[0]) for row in db.execute("SELECT name FROM sqlite_master")}
    # The first version had no table about itself; a file without any table is not begun yet.
    if ("about" if schema > 1 else "runs") in tables if schema else not tables:
        return
    if {"runs", "about"} <= tables:
        what = f"The history {path} has lost its version: its PRAGMA user_version is {schema}."
        then = f" {RECOVER}"
    else:
        what = f"The file {path} is no history of lumitui: another program wrote it."
        then = ""
    raise HistoryError(what, f"Move it away, {ELSEWHERE}{then}")
