"""The history of an older version becomes one of this: all of it, or not at all."""

import contextlib
import os
import random
import signal
import sqlite3
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from lumitui.app.history.file import compaction, sqlite_file
from lumitui.app.history.history import History
from lumitui.app.history.schema import MIGRATIONS, schema_of
from lumitui.app.history.texts.packing import unpack
from lumitui.remote.site.errors import LumiError
from tests.support.jobs.old_history import TEXTS, add_old_runs, released
from tests.support.program.child import child

OTHERS = "id, name, site, created, parent, global_batch, project, job_file, folder, root, token," \
    " git_commit, branch, dirty, snapshot, state, job_id, reason, word, rc, failed_rank, attempt," \
    " submitted, started, ended, updated, nodes_used, log_sizes, metrics_offset, exits," \
    " resumed_from, note, broken_metrics, expected_start, expected_end"  # fmt: skip
Texts = list[bytes | None]


def quoted(db: sqlite3.Connection) -> list[list[str]]:
    """Return the columns of runs that are no texts, each with its type, as SQL writes it."""
    values = ", ".join(f"typeof({name}) || quote({name})" for name in OTHERS.split(", "))
    return [list(row) for row in db.execute(f"SELECT {values} FROM runs ORDER BY id")]


def old_texts(path: Path) -> tuple[list[list[str]], list[Texts], list[Texts]]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.text_factory = bytes
        columns = ", ".join(f"CAST({name} AS BLOB)" for name in TEXTS)
        texts = f"SELECT {columns} FROM runs LEFT JOIN texts ON run = runs.id ORDER BY runs.id"
        manifests = "SELECT site, root, id, CAST(manifest AS BLOB) FROM manifests ORDER BY 1, 2"
        found = [list(row) for row in db.execute(texts)]
        return quoted(db), found, [list(row) for row in db.execute(manifests)]


def new_texts(path: Path) -> tuple[list[list[str]], list[Texts], list[Texts]]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.text_factory = bytes
        blobs = {
            number: unpack(packed, digest)
            for number, packed, digest in db.execute("SELECT id, packed, digest FROM blobs")
        } | {None: None}
        texts = db.execute(f"SELECT {', '.join(TEXTS)} FROM runs ORDER BY id").fetchall()
        manifests = db.execute("SELECT site, root, id, manifest FROM manifests ORDER BY 1, 2")
        kept = [[site, root, name, blobs[number]] for site, root, name, number in manifests]
        return quoted(db), [[blobs[number] for number in row] for row in texts], kept


def odd_texts(chance: random.Random) -> Sequence[object]:
    """Return texts as a failing disk leaves them: any bytes, or none."""
    sizes = (0, 1, 300, 5000)
    texts: list[object] = [chance.randbytes(chance.choice(sizes)) for _ in TEXTS]
    if chance.random() < 0.3:
        texts[TEXTS.index("binding")] = texts[TEXTS.index("deepspeed_config")] = None
    return texts


def test_every_byte_of_an_old_history_is_kept(path: Path) -> None:
    chance = random.Random(1)
    shared = odd_texts(chance)
    released(3, path)
    add_old_runs(path, [(f"odd-{number:06d}", odd_texts(chance)) for number in range(200)])
    add_old_runs(path, [(f"same-{number:06d}", shared) for number in range(200)])
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE runs SET note = x'00ff07', reason = CAST(x'ff00c3' AS TEXT),"
                   " created = 'soon', rc = 'none' WHERE id = 'odd-000007'")  # fmt: skip
        db.execute("DELETE FROM texts WHERE run = 'odd-000008'")
        db.executemany(
            "INSERT INTO manifests VALUES (?, ?, 'id', CAST(? AS TEXT))",
            [("somewhere", f"/root/{number}", chance.randbytes(999)) for number in range(20)],
        )
        db.commit()
    before = old_texts(path)
    History(path).close()
    assert new_texts(path) == before
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(DISTINCT script) FROM runs WHERE id > 'same'").fetchone() \
            == (1,)  # fmt: skip
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        assert db.execute("SELECT count(*) FROM metrics").fetchone() == (2,)


def test_a_run_without_its_texts_is_told_as_before(path: Path) -> None:
    released(3, path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM texts WHERE run = 'child-000002'")
        db.commit()
    history = History(path)
    with pytest.raises(LumiError, match="The run child-000002 cannot be read"):
        history.get("child-000002")
    assert "script: " in history.take_warnings()[0]
    assert len(history.page()) == 2
    history.close()


def large_history(path: Path, count: int) -> None:
    """Write a history of schema 3 with about 10 kB in each row, most of it the same."""
    chance = random.Random(2)
    released(3, path)
    script = chance.randbytes(9000)
    add_old_runs(
        path,
        (
            (f"r-{number:06d}", [b"{}", b"{}", b"{}", b"sbatch", None, script, b"",
                                 chance.randbytes(500)])
            for number in range(count)
        ),
    )  # fmt: skip


def test_a_large_history_is_converted_with_a_word_and_shrinks(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "_LONG", 5_000_000)
    monkeypatch.setattr(compaction, "_SPARE", 1_000_000)
    large_history(path, 1000)
    before = path.stat().st_size
    told: list[str] = []
    history = History(path, told.append)
    (words,) = told
    assert f"Converting the history {path}" in words and "seconds" in words
    assert history.facts(check=True).damage == ""
    history.close()
    assert path.stat().st_size < before / 5
    for _ in range(2):
        History(path, told.append).close()
    assert len(told) == 1


def test_a_small_history_is_converted_silently(path: Path) -> None:
    told: list[str] = []
    History(released(3, path), told.append).close()
    assert told == []


CONVERT = """
import resource, sys
from pathlib import Path
from lumitui.app.history.history import History
limit = int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print("begun", flush=True)
History(Path(sys.argv[1])).close()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss is another elsewhere")
def test_a_conversion_needs_little_memory(path: Path) -> None:
    large_history(path, 4000)
    assert path.stat().st_size > 30_000_000
    converter = child(CONVERT, str(path), "0")
    out, err = converter.communicate(timeout=60)
    assert converter.returncode == 0, err
    assert int(out.split()[-1]) < 16_000  # kilobytes


def test_a_conversion_that_finds_the_disk_full_leaves_the_old_history(path: Path) -> None:
    large_history(path, 300)
    before, size = old_texts(path), path.stat().st_size
    converter = child(CONVERT, str(path), str(size // 40))
    _, err = converter.communicate(timeout=60)
    assert converter.returncode != 0
    assert "HistoryError" in err.splitlines()[-1]
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert schema_of(db) == 3
    assert old_texts(path) == before
    History(path).close()
    assert new_texts(path) == before


def kill_conversions(folder: Path, seed: int, kills: int) -> set[int]:
    """Kill conversions at random moments; return the schemas that they left."""
    chance, left = random.Random(seed), set()
    large_history(folder / "old.db", 300)
    data, before = (folder / "old.db").read_bytes(), old_texts(folder / "old.db")
    began = time.monotonic()
    for kill in range(kills + 1):
        path = folder / str(kill) / "history.db"
        path.parent.mkdir()
        path.write_bytes(data)
        converter = os.fork()
        if not converter:
            compaction._SPARE = 0
            History(path).close()
            os._exit(0)
        if not kill:  # how long it takes when nothing kills it
            os.waitpid(converter, 0)
            whole = time.monotonic() - began
            continue
        time.sleep(chance.random() * whole)
        os.kill(converter, signal.SIGKILL)
        os.waitpid(converter, 0)
        with contextlib.closing(sqlite3.connect(path)) as db:
            schema = schema_of(db)
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        left.add(schema)
        assert (old_texts if schema == 3 else new_texts)(path) == before
        history = History(path)
        assert (history.take_warnings(), history.count()) == ([], 302)
        history.close()
        assert new_texts(path) == before
    return left


def test_a_conversion_killed_at_any_moment_leaves_the_old_history_or_the_new(
    tmp_path: Path,
) -> None:
    assert kill_conversions(tmp_path, seed=1, kills=12) <= {3, len(MIGRATIONS)}


@pytest.mark.slow
def test_many_conversions_killed_at_any_moment_leave_the_old_history_or_the_new(
    tmp_path: Path,
) -> None:
    assert kill_conversions(tmp_path, seed=2, kills=200) == {3, len(MIGRATIONS)}


def test_a_version_that_has_the_history_open_is_told_of_the_newer_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The TUI of an older version stays open while this one converts its history."""
    released(3, path)
    with monkeypatch.context() as older:
        older.setattr(sqlite_file, "MIGRATIONS", MIGRATIONS[:3])
        history = History(path)
        older.undo()
        History(path).close()
        older.setattr(sqlite_file, "MIGRATIONS", MIGRATIONS[:3])
        for use in (
            lambda: history._file.rows("SELECT script FROM texts"),
            lambda: history.update("child-000002", note="x"),
        ):
            with pytest.raises(LumiError, match=rf"schema {len(MIGRATIONS)}; this one, .* knows 3"):
                use()
        history.close()
