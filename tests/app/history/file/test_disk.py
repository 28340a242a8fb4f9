"""What a laptop's disk does to the history in life: full, read-only, without locks."""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.history.history import History
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import HistoryError, OutcomeUnknown
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import finish, hello_job
from tests.support.program.command_line import Here, lt, runs_of, told
from tests.support.program.home import Home

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


def test_a_history_on_a_full_disk_is_whole_once_there_is_room(disk: Path, here: Here) -> None:
    history = History(disk / "history.db")
    history.begin(replace(a_run("kept-000001"), site="laptop", state=State.CANCELLED))
    history.close()
    filling = fill(disk)
    for words in (("history",), ("note", "last", "words")):
        told(here(*words), 1, "space")
        fill(disk)  # also what the try gave back
    filling.unlink()
    assert here("note", "last", "words").returncode == 0
    done = here("history")
    assert "kept-000001" in done.stdout and done.stderr == ""


def test_an_open_history_writes_again_when_there_is_room(disk: Path) -> None:
    history = History(disk / "history.db")
    filling = fill(disk)
    with pytest.raises(HistoryError, match="space"):
        history.begin(a_run())
    filling.unlink()
    history.begin(a_run())
    assert history.count() == 1
    history.close()


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
