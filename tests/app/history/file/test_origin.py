"""A file that this lumitui did not write is told what it is, and left as it was."""

import contextlib
import sqlite3

import pytest

from tests.support.attacks.damaged_history import filled_history
from tests.support.program.command_line import Here, told
from tests.support.program.home import Home


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("PRAGMA user_version = 0", "has lost its version"),
        ("DROP TABLE about", "is no history of lumitui"),
    ],
)
def test_a_file_without_lumituis_version_is_told_and_left(
    home: Home, here: Here, change: str, words: str
) -> None:
    path = home.settings.history
    filled_history(path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(change)
    content = path.read_bytes()
    for _ in range(2):
        said = told(here("history"), 1, words, "Move it away, or set LUMITUI_DATA_DIR")
        assert "Start lumitui again" not in said
    assert path.read_bytes() == content


@pytest.mark.parametrize("number", [0, 1, 4])
def test_the_file_of_another_program_is_told_and_left(home: Home, here: Here, number: int) -> None:
    path = home.settings.history
    path.parent.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(f"CREATE TABLE {'races' if number == 1 else 'runs'} (metres REAL)")
        db.execute(f"PRAGMA user_version = {number}")
    content = path.read_bytes()
    told(here("history"), 1, "is no history of lumitui", "Move it away", "LUMITUI_DATA_DIR")
    assert path.read_bytes() == content
