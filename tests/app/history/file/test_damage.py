"""A damaged history: reported, set aside, a fresh one begun; also while it is in use."""

import contextlib
import json
import os
import random
import shutil
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from lumitui.app.cli import output
from lumitui.app.cli.views import tables
from lumitui.app.history.file.schema import SCHEMA
from lumitui.app.history.history import History
from lumitui.remote.site.errors import HistoryError, LumiError
from lumitui.remote.site.states import State
from tests.support.attacks.damaged_history import (
    filled_history,
    no_byte,
    no_header,
    one_page,
    truncated,
)
from tests.support.jobs.made_runs import a_run
from tests.support.program.command_line import Here, told
from tests.support.program.home import Home


@pytest.mark.parametrize("damage", [truncated, no_byte, no_header, one_page])
def test_damage_is_told_kept_aside_and_a_fresh_one_begun(
    home: Home, here: Here, damage: Callable[[Path], None]
) -> None:
    path = home.settings.history
    filled_history(path)
    damage(path)
    content = path.read_bytes()
    first = here("history", "--limit", "1000")
    assert "defect" not in first.stderr + first.stdout
    said = first.stderr
    if first.returncode:  # seen in the middle of the work: the next use sets it aside
        said = told(first, 1, "is damaged", "Before you submit again", "history --recover SITE")
        second = here("history", "--json")
        assert second.returncode == 0
        said = second.stderr
    assert "`lumitui history --recover SITE`" in said
    kept = list(path.parent.glob("history.db.corrupt-2*"))
    assert [item.read_bytes() for item in kept] == [content]
    assert str(kept[0]) in said
    history = History(path)
    assert (history.take_warnings(), history.count()) == ([], 0)
    history.begin(a_run())
    assert history.facts(check=True).damage == ""
    history.close()


def test_two_damaged_files_are_both_kept(path: Path) -> None:
    path.parent.mkdir()
    for text in (b"first " * 99, b"second " * 99, b"third " * 99):
        path.write_bytes(text)
        History(path).close()
    kept = {file.read_bytes()[:5] for file in path.parent.glob("history.db.corrupt-*")}
    assert kept == {b"first", b"secon", b"third"}


def crashed_copy(path: Path, to: Path) -> None:
    """Leave at `to` what a killed process leaves: the file and a log that is not written back."""
    history = History(path)
    history.begin(a_run("in-the-log"))
    to.parent.mkdir(parents=True, exist_ok=True)
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{to}{suffix}")
    history.close()


def test_a_lost_log_costs_what_was_in_it_and_no_more(path: Path, tmp_path: Path) -> None:
    filled_history(path)
    other = tmp_path / "other" / "history.db"
    crashed_copy(path, other)
    shutil.copytree(other.parent, tmp_path / "whole")
    other.with_name("history.db-wal").unlink()
    for folder, count in (("other", 60), ("whole", 61)):
        history = History(tmp_path / folder / "history.db")
        assert (history.take_warnings(), history.count()) == ([], count)
        assert history.facts(check=True).damage == ""
        history.close()


def test_the_log_of_another_file_is_survived(path: Path, tmp_path: Path) -> None:
    """A history restored from a backup beside the log that a crash left."""
    filled_history(path)
    foreign = tmp_path / "foreign" / "history.db"
    small = tmp_path / "small" / "history.db"
    History(small).close()
    crashed_copy(small, foreign)
    shutil.copy(f"{foreign}-wal", f"{path}-wal")
    for _ in range(3):
        try:
            history = History(path)
            history.begin(a_run(f"new-{os.urandom(4).hex()}"))
            assert history.facts(check=True).damage == ""
            history.close()
            break
        except (HistoryError, AssertionError):
            history.close()
    else:
        pytest.fail("it is never usable again")


# -- the file changes under an open history


def test_a_history_that_is_removed_while_it_is_open_goes_on_in_a_new_file(path: Path) -> None:
    history = History(path)
    history.begin(a_run("lost"))
    for file in path.parent.iterdir():
        file.unlink()
    history.begin(a_run("new"))
    (warning,) = history.take_warnings()
    assert "history --recover SITE" in warning
    other = History(path)
    assert [run.id for run in other.page()] == [run.id for run in history.page()] == ["new"]
    other.close()
    history.close()


def test_two_open_histories_both_leave_a_damaged_file(path: Path) -> None:
    """Else one of them would write on to the file that is kept aside."""
    filled_history(path)
    histories = [History(path), History(path)]
    for history in histories:
        history.count()
    one_page(path)
    for _ in range(2):
        for history in histories:
            with contextlib.suppress(HistoryError):
                for run in history.page(limit=1000):
                    history.get(run.id)
    for number, history in enumerate(histories):
        history.begin(a_run(f"after-{number}"))
    assert [history.count() for history in histories] == [2, 2]
    assert all("history --recover SITE" in history.take_warnings()[0] for history in histories)
    assert len([*path.parent.glob("history.db.corrupt-*")]) == 1 + len(
        [*path.parent.glob("history.db.corrupt-*-wal"), *path.parent.glob("*.corrupt-*-shm")]
    )
    for history in histories:
        history.close()


def test_one_broken_text_does_not_hide_the_others(path: Path) -> None:
    history = History(path)
    history.begin(a_run("good"))
    history.begin(a_run("bad", note="a note"))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE runs SET note = CAST(x'ff61' AS TEXT) WHERE id = 'bad'")
    assert {run.id: run.note for run in history.page()} == {"good": "", "bad": "\ufffda"}
    history.close()


def test_the_file_is_told(home: Home, here: Here) -> None:
    done = here("history", "--check")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f"schema {SCHEMA}, sound\n")
    filled_history(home.settings.history)
    one_page(home.settings.history)
    told(here("history", "--check"), 1, "is damaged", "--recover")


def test_a_check_that_finds_damage_sets_nothing_aside(home: Home, here: Here) -> None:
    path = home.settings.history
    filled_history(path)
    os.truncate(path, path.stat().st_size - 1000)
    said = told(here("history", "--check"), 1, "is damaged", "--recover SITE")
    assert "kept as" not in said
    assert "kept as" in here("history").stderr


def spoil(data: bytes, chance: random.Random) -> bytes:
    """Return a file as a failing disk gives it back: other bytes, other pages, or less of it."""
    spoilt = bytearray(data)
    pages = range(0, len(data), 4096)
    for _ in range(chance.choice((1, 3, 20))):
        spoilt[chance.randrange(len(data))] ^= chance.randrange(1, 256)
    match chance.randrange(6):
        case 0:
            at = chance.choice(pages)
            spoilt[at : at + 4096] = bytes(4096)
        case 1:
            at, source = chance.choice(pages), chance.choice(pages)
            spoilt[at : at + 4096] = data[source : source + 4096]
        case 2:
            del spoilt[chance.randrange(len(data)) :]
        case _:
            pass
    return bytes(spoilt)


def use(path: Path) -> None:
    """Do with a history what commands do; a LumiError is what a person is told."""
    with contextlib.suppress(LumiError), contextlib.closing(History(path)) as history:
        runs = []
        with contextlib.suppress(LumiError):
            runs = history.page(limit=100)
            tables.history_table(runs, 100)
            tables.run_table(runs, 5.0, 100)
            json.dumps([output.as_data(output.run_data(run)) for run in runs])
        for call in (
            history.unfinished,
            lambda: [history.get(run.id) for run in runs[:5]],
            lambda: history.lineage("r-000003"),
            lambda: history.metrics.of("r-000003"),
            lambda: history.update("r-000003", note="x"),
            lambda: history.begin(a_run("new")),
            lambda: history.snapshots.in_use("somewhere"),
            lambda: history.facts(check=True),
        ):
            with contextlib.suppress(LumiError):
                call()


def spoilt_files_are_told(folder: Path, seeds: range) -> None:
    source = folder / "good" / "history.db"
    filled_history(source)
    data = source.read_bytes()
    for seed in seeds:
        path = folder / str(seed) / "history.db"
        path.parent.mkdir()
        path.write_bytes(spoil(data, random.Random(seed)))
        try:
            use(path)
            use(path)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error
        shutil.rmtree(path.parent)


def test_a_spoilt_file_is_told_and_never_a_traceback(tmp_path: Path) -> None:
    spoilt_files_are_told(tmp_path, range(40))


@pytest.mark.slow
def test_many_spoilt_files_are_told_and_never_a_traceback(tmp_path: Path) -> None:
    spoilt_files_are_told(tmp_path, range(1000, 1500))


def test_a_column_of_another_type_is_told(path: Path) -> None:
    history = History(path)
    history.begin(a_run("good"))
    history.begin(a_run("bad"))
    for name, value in (("created", "'soon'"), ("note", "x'07'"), ("attempt", "x'00'")):
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute(f"UPDATE runs SET {name} = {value} WHERE id = 'bad'")
        assert [run.id for run in history.page()] == ["good"]
        (warning,) = history.take_warnings()
        assert f"The run bad was written by another version and cannot be read: {name}: " in warning
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute(f"UPDATE runs SET {name} = '1' WHERE id = 'bad'")
    history.close()


# -- the file is damaged before it is opened


def test_a_damaged_value_hides_no_other(path: Path) -> None:
    history = History(path)
    for name in ("a-000001", "b-000002"):
        history.begin(a_run(name, state=State.DONE))
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE runs SET state = 'x', broken_metrics = 'x' WHERE id = 'b-000002'")
    assert history.states(["a-000001", "b-000002"]) == {"a-000001": State.DONE}
    assert history.metrics.broken("b-000002") == 0
    history.close()


def test_a_file_that_was_just_emptied_is_damage(home: Home, here: Here) -> None:
    path = home.settings.history
    filled_history(path)
    os.truncate(path, 0)
    said = here("history", "--check").stderr
    (kept,) = path.parent.glob("history.db.corrupt-*")
    assert str(kept) in said and "history --recover SITE" in said
    assert kept.stat().st_size == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert here("history", "--check").stderr == ""


def test_a_suspicion_that_is_not_confirmed_costs_nothing(path: Path) -> None:
    history = History(path)
    history.begin(a_run())
    history.close()
    path.with_name("history.db.suspect").touch()
    again = History(path)
    assert (again.count(), again.take_warnings()) == (1, [])
    again.close()
    assert not path.with_name("history.db.suspect").exists()
