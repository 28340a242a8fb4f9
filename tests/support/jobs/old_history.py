"""Histories as older versions left them, with as many runs as a test wants."""

import contextlib
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.support.places import SCHEMAS

TEXTS = ("spec", "layout", "price", "command", "deepspeed_config", "script", "patch", "binding")
"""What has been kept apart since schema 4."""


def released(number: int, path: Path) -> Path:
    """Make the file of schema `number`, with the two runs that its release left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript((SCHEMAS / f"{number}.sql").read_text())
    return path


def add_old_runs(path: Path, runs: Iterable[tuple[str, Sequence[object]]]) -> None:
    """Add copies of the first run to a file of schema 3, each with an id and texts of its own.

    Texts are bytes, which are kept as text whatever they are; None leaves NULL.
    """
    with contextlib.closing(sqlite3.connect(path)) as db:
        columns = [str(row[1]) for row in db.execute("PRAGMA table_info(runs)")]
        values = ", ".join(_value(name) for name in columns)
        for run_id, texts in runs:
            named: dict[str, object] = dict(zip(TEXTS, texts, strict=True)) | {"new_id": run_id}
            db.execute(
                f"INSERT INTO runs SELECT {values} FROM runs WHERE id = 'parent-000001'", named
            )
            db.execute(
                "INSERT INTO texts VALUES (:new_id, CAST(:script AS TEXT), CAST(:patch AS TEXT),"
                " CAST(:binding AS TEXT))",
                named,
            )
        db.commit()


def _value(name: str) -> str:
    if name in TEXTS:
        return f"CAST(:{name} AS TEXT)"
    return ":new_id" if name == "id" else "created + rowid" if name == "created" else name
