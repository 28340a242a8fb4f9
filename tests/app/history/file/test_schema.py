"""The tables of the released schema, and files that this lumitui does not read: told and left."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from lumitui.app.history.file.schema import SCHEMA
from lumitui.app.history.history import History
from lumitui.remote.site.errors import LumiError
from tests.support.attacks.damaged_history import filled_history
from tests.support.jobs.made_runs import a_run
from tests.support.places import SCHEMAS
from tests.support.program.command_line import Here, told
from tests.support.program.home import Home


def shape(path: Path) -> str:
    with contextlib.closing(sqlite3.connect(path)) as db:
        made = [str(row[0]) for row in db.execute("SELECT sql FROM sqlite_master") if row[0]]
    return "".join(f"{sql};\n" for sql in sorted(made))


def test_a_released_schema_is_never_edited(path: Path) -> None:
    """After a release: raise SCHEMA, convert the files of the one before, and freeze the new."""
    History(path).close()
    assert shape(path) == (SCHEMAS / f"{SCHEMA}.sql").read_text()


def left(path: Path) -> tuple[bytes, set[Path]]:
    return path.read_bytes(), set(path.parent.iterdir())


def test_a_newer_schema_is_not_touched(path: Path) -> None:
    History(path).close()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")  # perhaps it has its reasons
        db.execute("UPDATE about SET value = '9.9'")
        db.execute("PRAGMA user_version = 99")
        db.commit()
    before = left(path)
    with pytest.raises(LumiError, match=r"written by lumitui 9\.9 \(schema 99.*Upgrade lumitui"):
        History(path)
    assert left(path) == before
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE about")
    with pytest.raises(LumiError, match="written by a newer lumitui"):
        History(path)


def test_a_file_that_a_newer_version_converts_meanwhile_is_not_written(path: Path) -> None:
    """The TUI of this version stays open while a newer one changes the tables."""
    history = History(path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("ALTER TABLE blobs RENAME TO texts")
        db.execute("PRAGMA user_version = 99")
    for use in (history.unfinished, lambda: history.begin(a_run())):
        with pytest.raises(LumiError, match=r"schema 99; this version, .* supports schema 1"):
            use()
    assert history.count() == 0
    history.close()


def test_a_history_that_has_lost_its_version_is_told_and_left(home: Home, here: Here) -> None:
    path = home.settings.history
    filled_history(path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 0")
    content = path.read_bytes()
    for _ in range(2):
        words = ("has an invalid schema version", "Move it elsewhere, or set LUMITUI_DATA_DIR")
        assert "Start lumitui again" not in told(here("history"), 1, *words)
    assert path.read_bytes() == content


@pytest.mark.parametrize("number", [0, 1, 4])
def test_the_file_of_another_program_is_told_and_left(home: Home, here: Here, number: int) -> None:
    path = home.settings.history
    path.parent.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(f"CREATE TABLE {'races' if number == 1 else 'runs'} (metres REAL)")
        db.execute(f"PRAGMA user_version = {number}")
    content = path.read_bytes()
    told(here("history"), 1, "is not a lumitui history", "Move it elsewhere", "LUMITUI_DATA_DIR")
    assert path.read_bytes() == content
