"""Every schema that was ever released is read by this version, whatever interrupts it."""

import contextlib
import os
import shutil
import signal
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.history.file import sqlite_file
from lumitui.app.history.history import History
from lumitui.app.history.schema import MIGRATIONS, migrate, schema_of
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import LumiError
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.old_history import released
from tests.support.places import SCHEMAS
from tests.support.program.child import child

"""`N.sql`: a file of schema N with runs, as the version that released it left it; never edited."""
NUMBERS = range(1, len(MIGRATIONS) + 1)
PARENT = a_run("parent-000001", created=10.0, state=State.DONE, rc=0, job_id="41", snapshot="s1")
CHILD = a_run(
    "child-000002", created=20.0, parent=PARENT.id, state=State.RUNNING, job_id="42",
    binding="[]", log_sizes={1: 7}, note="ä note", resumed_from=PARENT.id,
)  # fmt: skip


def shape(path: Path) -> list[tuple[str, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        return sorted(db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


@pytest.mark.parametrize("number", NUMBERS)
def test_a_released_migration_is_never_edited(number: int, tmp_path: Path) -> None:
    path = tmp_path / "made.db"
    with contextlib.closing(sqlite3.connect(path)) as db:
        for migration in MIGRATIONS[:number]:
            migration(db)
        db.commit()
    assert shape(path) == shape(released(number, tmp_path / "released.db"))


@pytest.mark.parametrize("number", NUMBERS)
def test_every_older_schema_is_migrated_with_its_runs(number: int, tmp_path: Path) -> None:
    path = released(number, tmp_path / "data" / "history.db")
    fresh = tmp_path / "fresh" / "history.db"
    History(fresh).close()
    for _ in range(2):
        history = History(path)
        assert history.take_warnings() == []
        assert history.get(CHILD.id) == replace(CHILD, metrics_offset=24)
        assert history.get(PARENT.id) == PARENT
        assert [run.id for run in history.lineage(CHILD.id)] == [PARENT.id, CHILD.id]
        assert [point.step for point in history.metrics.of(CHILD.id)] == [1, 2]
        assert history.snapshots.manifest("somewhere", "/root") == "text"
        facts = history.facts(check=True)
        assert (facts.schema, facts.damage) == (len(MIGRATIONS), "")
        history.close()
    assert shape(path) == shape(fresh)


MIGRATE = """
import sys, time
from pathlib import Path
from lumitui.app.history.file import sqlite_file
from lumitui.app.history.history import History

def slow(db):
    db.execute("ALTER TABLE runs ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue'")
    db.execute("UPDATE runs SET note = 'migrated', colour = 'red'")
    db.execute("DROP TABLE manifests")
    print("in the middle", flush=True)
    time.sleep(float(sys.argv[2]))

sqlite_file.MIGRATIONS = [*sqlite_file.MIGRATIONS, slow]
print(sys.stdin.readline())
history = History(Path(sys.argv[1]))
assert history.count() == 2
assert history._file.rows("SELECT DISTINCT colour, note FROM runs")[0][:] == ("red", "migrated")
history.close()
"""


@pytest.mark.parametrize("number", NUMBERS)
def test_a_migration_killed_in_the_middle_has_not_happened(number: int, tmp_path: Path) -> None:
    path = released(number, tmp_path / "data" / "history.db")
    before = shape(path)
    killed = child(MIGRATE, str(path), "60", stdin=True)
    assert killed.stdin is not None and killed.stdout is not None
    killed.stdin.write("go\n")
    killed.stdin.flush()
    while "in the middle" not in killed.stdout.readline():
        assert killed.poll() is None
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate(timeout=20)
    shutil.copytree(path.parent, tmp_path / "copy")
    with contextlib.closing(sqlite3.connect(tmp_path / "copy" / path.name)) as db:
        assert schema_of(db) == number
    assert shape(tmp_path / "copy" / path.name) == before
    history = History(path)
    assert history.get(CHILD.id).note == CHILD.note
    assert history.snapshots.manifest("somewhere", "/root") == "text"
    history.close()


def test_processes_that_migrate_at_once_migrate_once(tmp_path: Path) -> None:
    path = released(1, tmp_path / "data" / "history.db")
    children = [child(MIGRATE, str(path), "0.3", stdin=True) for _ in range(4)]
    for process in children:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [process.communicate(timeout=60) for process in children]
    assert [process.returncode for process in children] == [0] * 4, told
    assert sum("in the middle" in out for out, _ in told) == 1


def test_migrations_that_are_done_are_not_done_again(tmp_path: Path) -> None:
    path = released(len(MIGRATIONS), tmp_path / "history.db")
    with contextlib.closing(sqlite3.connect(path)) as db:
        migrate(db, MIGRATIONS)
        assert db.total_changes == 0


def test_a_new_migration_comes_with_its_frozen_file() -> None:
    """Make it with `python -m tests.app.history.test_migrations` before the version is released."""
    assert [path.name for path in sorted(SCHEMAS.iterdir())] == [f"{n}.sql" for n in NUMBERS]


def freeze() -> None:
    """Write the file of the newest schema."""
    number = len(MIGRATIONS)
    path = SCHEMAS / f"{number}.db"
    history = History(path)
    history.begin(PARENT)
    history.begin(CHILD)
    history.metrics.add(CHILD.id, [b'{"step": 1}', b'{"step": 2}'], (0, 24))
    history.snapshots.remember("somewhere", "/root", "text", "id")
    history.close()
    with contextlib.closing(sqlite3.connect(path)) as db:
        lines = [*db.iterdump(), f"PRAGMA user_version = {number};"]
    (SCHEMAS / f"{number}.sql").write_text("\n".join(lines) + "\n")
    path.unlink()


if __name__ == "__main__":
    freeze()


def test_a_newer_schema_is_not_touched(path: Path) -> None:
    History(path).close()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")  # perhaps it has its reasons
        db.execute("UPDATE about SET value = '9.9'")
        db.execute("PRAGMA user_version = 99")
        db.commit()
    before, beside = path.read_bytes(), set(path.parent.iterdir())
    with pytest.raises(LumiError, match=r"written by lumitui 9\.9 \(schema 99.*Upgrade lumitui"):
        History(path)
    assert path.read_bytes() == before
    assert set(path.parent.iterdir()) == beside
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE about")
    with pytest.raises(LumiError, match="written by a newer lumitui"):
        History(path)


def test_a_file_that_is_migrated_by_a_newer_version_meanwhile_is_not_written(path: Path) -> None:
    history = History(path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(LumiError, match="schema 99"):
        history.begin(a_run())
    assert history.count() == 0
    history.close()


def test_migrations_run_once_each_and_in_order(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(path)
    history.begin(a_run())
    history.close()

    def add_column(db: sqlite3.Connection) -> None:
        db.execute("ALTER TABLE runs ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue'")

    monkeypatch.setattr(sqlite_file, "MIGRATIONS", [*MIGRATIONS, add_column])
    for _ in range(2):
        history = History(path)
        assert history._file.rows("SELECT colour FROM runs")[0][0] == "blue"
        assert history.get("last") == a_run()
        history.close()


def test_a_migration_that_fails_leaves_the_old_schema(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(path)
    history.begin(a_run())
    history.close()

    def half(db: sqlite3.Connection) -> None:
        db.execute("DROP TABLE metrics")
        db.execute("SELECT no_such_column FROM runs")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite_file, "MIGRATIONS", [*MIGRATIONS, half])
        with pytest.raises(LumiError, match="no such column"):
            History(path)
    history = History(path)
    history.metrics.add("vit-tiny-000001", [b'{"step": 1}'])
    assert len(history.metrics.of("vit-tiny-000001")) == 1
    history.close()
