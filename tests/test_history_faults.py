"""What a laptop's disk does to the history in life: full, read-only, without locks, damaged."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lumitui.app.history import History
from lumitui.app.runs import Runs
from lumitui.remote.errors import HistoryError, OutcomeUnknown
from lumitui.remote.scheduler import State
from tests.command_line import Here, here, job, lt, runs_of, told
from tests.conftest import Home
from tests.jobs import finish, hello_job
from tests.runs_made import a_run

__all__ = ["here", "job"]  # fixtures

LAPTOP = {
    "site": "laptop", "partition": "local", "account": "none", "launcher": "plain",
    "strategy": "single", "proof": "off", "gpus_per_node": 1,
}  # fmt: skip


def mounted(*words: str) -> None:
    subprocess.run(["mount", *words], check=True, capture_output=True)


@pytest.fixture
def disk(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A real file system of half a megabyte as the data folder."""
    home.data.mkdir()
    try:
        mounted("-t", "tmpfs", "-o", "size=512k,mode=700", "tmpfs", str(home.data))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"needs root on Linux to mount a file system: {error}")
    yield home.data
    subprocess.run(["umount", "-l", str(home.data)], check=True)


def fill(folder: Path) -> Path:
    """Take all space of the file system."""
    path = folder / "filling"
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return path


def sent_folders(home: Home) -> list[Path]:
    return list((home.data.parent / ".local").rglob("runs/*"))


# -- full, read-only, no folder


def test_a_full_disk_sends_nothing_and_says_so(
    disk: Path, here: Here, job: Path, home: Home
) -> None:
    filling = fill(disk)
    told(here("submit", str(job), "--yes"), 1, str(disk))
    assert sent_folders(home) == []
    filling.unlink()
    assert here("history").returncode == 0
    filling = fill(disk)
    told(here("submit", str(job), "--yes"), 1, "space")
    assert sent_folders(home) == []
    filling.unlink()
    assert runs_of(here) == []
    assert here("submit", str(job), "--yes", "--wait").returncode == 0
    assert [row["state"] for row in runs_of(here)] == ["done"]


def test_a_disk_that_fills_before_the_submit_step_leaves_no_job(
    disk: Path, home: Home, job: Path
) -> None:
    runs = Runs(home.settings)
    preview = runs.preview(hello_job(**LAPTOP), job.parent)
    filled: list[Path] = []

    def report(step: str, words: str) -> None:
        if step == "prepare":
            filled.append(fill(disk))

    with pytest.raises(HistoryError, match="space"):
        runs.send(preview, report=report)
    filled[0].unlink()
    (run,) = runs.history.page()
    assert run.state is State.SENDING  # begun, and shown as such
    runs.refresh()
    assert runs.history.get(run.id).state is State.NOT_SENT
    assert not (Path(run.folder) / "attempt-1.receipt").exists()
    runs.close()


def test_a_disk_that_fills_between_submit_and_record_is_settled_later_once(
    disk: Path, home: Home, job: Path
) -> None:
    runs = Runs(home.settings)
    preview = runs.preview(hello_job(**LAPTOP), job.parent)
    filled: list[Path] = []

    def report(step: str, words: str) -> None:
        if step == "record":
            filled.append(fill(disk))

    with pytest.raises(OutcomeUnknown, match="do not submit it again"):
        runs.send(preview, report=report)
    news = runs.refresh()
    assert news.warnings and "Traceback" not in news.warnings[0]
    (run,) = runs.history.page()
    assert (run.state, run.job_id) == (State.SENDING, None)
    filled[0].unlink()
    done = finish(runs, run)
    receipt = (Path(run.folder) / "attempt-1.receipt").read_text().strip()
    assert (done.state, done.job_id) == (State.DONE, receipt)
    assert (Path(run.folder) / "attempt-1.out").read_text().count('"rank": 0') == 1
    assert runs.history.count() == len(sent_folders(home)) == 1
    runs.close()


def test_a_history_that_goes_away_during_a_send_costs_no_job(home: Home, job: Path) -> None:
    runs = Runs(home.settings)
    preview = runs.preview(hello_job(**LAPTOP), job.parent)

    def report(step: str, words: str) -> None:
        if step == "record":
            for path in home.data.glob("history.db*"):
                path.unlink()

    with pytest.raises(OutcomeUnknown, match="history --recover SITE"):
        runs.send(preview, report=report)
    (rebuilt,) = runs.recover("laptop").rebuilt
    assert rebuilt.job_id is not None
    done = finish(runs, rebuilt)
    assert done.state is State.DONE
    assert (Path(done.folder) / "attempt-1.out").read_text().count('"rank": 0') == 1
    runs.close()


def test_a_read_only_disk_is_told(disk: Path, here: Here, job: Path, home: Home) -> None:
    for made in (False, True):
        mounted("-o", "remount,ro", str(disk))
        for words in (("history",), ("status",), ("submit", str(job), "--yes")):
            told(here(*words), 1, "Read-only file system", "LUMITUI_DATA_DIR")
        mounted("-o", "remount,rw", str(disk))
        if not made:
            assert here("history").returncode == 0
    assert sent_folders(home) == []


def test_a_disk_that_becomes_read_only_while_it_is_open_is_told(disk: Path, home: Home) -> None:
    history = History(home.settings.history)
    history.begin(a_run("before"))
    # Open files for writing would refuse the remount: the disk's own error does not ask.
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], capture_output=True)
    history._file._db.execute("PRAGMA query_only = 1")
    with pytest.raises(HistoryError, match="read-only"):
        history.begin(a_run("after"))
    assert history.count() == 1
    history.close()
    mounted("-o", "remount,rw", str(disk))


def test_a_data_folder_that_is_none_is_told(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for name in ("file", "file/below", "loop", "n" * 300, "/proc/nowhere"):
        monkeypatch.setenv("LUMITUI_DATA_DIR", str(tmp_path / name))
        told(here("history"), 1, "cannot be opened", "LUMITUI_DATA_DIR")


NO_LOCKS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
static int refuse(const char *name, int fd, int command, void *more) {
  if (command == F_SETLK || command == F_SETLKW) { errno = ENOLCK; return -1; }
  int (*real)(int, int, ...) = dlsym(RTLD_NEXT, name);
  return real(fd, command, more);
}
int fcntl(int fd, int command, ...) {
  va_list list; va_start(list, command); void *more = va_arg(list, void *); va_end(list);
  return refuse("fcntl", fd, command, more);
}
int fcntl64(int fd, int command, ...) {
  va_list list; va_start(list, command); void *more = va_arg(list, void *); va_end(list);
  return refuse("fcntl64", fd, command, more);
}
int flock(int fd, int operation) { errno = ENOLCK; return -1; }
"""
"""A file system without locks, as NFS without its lock daemon is: none can be mounted here."""


def test_a_file_system_without_locks_is_told(home: Home, job: Path, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs a C compiler on Linux")
    source, library = tmp_path / "locks.c", tmp_path / "locks.so"
    source.write_text(NO_LOCKS)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    done = lt(home, "submit", str(job), "--yes", LD_PRELOAD=str(library))
    told(done, 1, "cannot be locked", "LUMITUI_DATA_DIR")
    assert sent_folders(home) == []


# -- damage


def filled_history(path: Path) -> None:
    history = History(path)
    for number in range(60):
        history.begin(a_run(f"r-{number:06d}", script="x" * 3000, created=float(number)))
    history.close()


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def no_byte(path: Path) -> None:
    os.truncate(path, 0)
    os.utime(path, (0, 0))


def no_header(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(os.urandom(100))


def one_page(path: Path) -> None:
    """A page in the middle: the leaf of the table that holds the newest runs."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'runs'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        page = file.read(size)
        # An inner page of a table ends with its right-most child's number (bytes 8 to 12).
        leaf = int.from_bytes(page[8:12], "big") if page[0] == 5 else root
        file.seek((leaf - 1) * size)
        file.write(bytes(byte ^ 0xFF for byte in page))


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
        said = told(first, 1, "is damaged", "history --recover SITE")
        second = here("history", "--json")
        assert second.returncode == 0
        said = second.stderr
    assert "`lumitui history --recover SITE`" in said
    kept = list(path.parent.glob("history.db.corrupt-2*"))
    if damage is no_byte:
        assert kept == []
    else:
        assert [item.read_bytes() for item in kept] == [content]
        assert str(kept[0]) in said
    history = History(path)
    assert (history.warnings, history.count()) == ([], 0)
    history.begin(a_run())
    assert history.facts().damage == ""
    history.close()


def test_two_damaged_files_are_both_kept(path: Path) -> None:
    path.parent.mkdir()
    for text in (b"first " * 99, b"second " * 99, b"third " * 99):
        path.write_bytes(text)
        History(path).close()
    kept = {file.read_bytes()[:5] for file in path.parent.glob("history.db.corrupt-*")}
    assert kept == {b"first", b"secon", b"third"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "history.db"


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
        assert (history.warnings, history.count()) == ([], count)
        assert history.facts().damage == ""
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
            assert history.facts().damage == ""
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
    assert len(history.warnings) == 1 and "history --recover SITE" in history.warnings[0]
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
    assert all("history --recover SITE" in history.warnings[0] for history in histories)
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
    assert f"{home.settings.history}: 0 runs, " in here("history").stderr
    done = here("history", "--check")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("schema 2, sound\n")
    filled_history(home.settings.history)
    one_page(home.settings.history)
    told(here("history", "--check"), 1, "is damaged", "--recover")
