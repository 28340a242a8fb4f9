"""The history's file: several writers, locks, full disks, folders that cannot be used."""

import contextlib
import os
import signal
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from lumitui.app.history.file import sqlite_file
from lumitui.app.history.file.filesystem import is_shared
from lumitui.app.history.history import History
from lumitui.remote.site.errors import LumiError
from tests.support.jobs.made_runs import a_run
from tests.support.program.child import child


def test_folder_and_file_are_the_persons_alone(path: Path) -> None:
    before = os.umask(0)
    try:
        history = History(path)
        history.begin(a_run())
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    files = list(path.parent.iterdir())
    assert len(files) >= 2
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    history.close()


def test_the_settings_that_make_begin_a_promise(history: History) -> None:
    def pragma(name: str) -> object:
        return history._file.rows(f"PRAGMA {name}")[0][0]

    assert (pragma("journal_mode"), pragma("synchronous")) == ("wal", 2)
    assert pragma("foreign_keys") == 1


def test_on_a_network_there_is_no_shared_memory(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, mode in ((False, "wal"), (True, "delete"), (False, "wal")):
        monkeypatch.setattr(sqlite_file, "is_shared", lambda path, place=place: place)
        history = History(path)
        history.begin(a_run(f"r-{mode}-{os.urandom(3).hex()}"))
        assert history._file.rows("PRAGMA journal_mode")[0][0] == mode
        assert history._file.rows("PRAGMA synchronous")[0][0] == 2
        history.close()


BEGIN_AND_LEAVE = """
import sys
from pathlib import Path
from lumitui.app.history.history import History
from tests.support.jobs.made_runs import a_run
history = History(Path(sys.argv[1]))
history.begin(a_run(sys.argv[2]))
history.close()
"""


def test_two_histories_of_one_process_keep_their_file(history: History, path: Path) -> None:
    history.begin(a_run("first-000001"))
    other = History(path)
    for number in range(2, 6):
        leaver = child(BEGIN_AND_LEAVE, str(path), f"child-{number:06}")
        assert leaver.wait(30) == 0, leaver.communicate()[1]
        history.begin(a_run(f"first-{number:06}"))
    assert {kept.count() for kept in (history, other)} == {9}
    assert history._file.rows("PRAGMA integrity_check")[0][0] == "ok"
    other.close()


BEGIN_FOREVER = """
import sys
from pathlib import Path
from lumitui.app.history.history import History
from tests.support.jobs.made_runs import a_run
history = History(Path(sys.argv[1]))
for number in range(100_000):
    name = f"{sys.argv[2]}-{number:06d}"
    history.begin(a_run(name, script="x" * 20_000))
    history.update(name, note="written")
    history.metrics.add(f"{sys.argv[2]}-000000", [b'{"step": 1}'])
    print(name, flush=True)
    if number == int(sys.argv[3]):
        break
"""


BEGIN_AND_DIE = """
import os, signal, sys
from pathlib import Path
from lumitui.app.history.file import damage, schema
from lumitui.app.history.history import History
step = sys.argv[2]
if step == "before":
    damage.create = lambda *all: os.kill(os.getpid(), signal.SIGKILL)
elif step == "inside":
    schema.version = lambda: os.kill(os.getpid(), signal.SIGKILL)
else:
    real = Path.rename
    Path.rename = lambda *names: (real(*names), os.kill(os.getpid(), signal.SIGKILL))
History(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("step", ["before", "inside", "after"])
def test_kill_9_at_a_first_start_leaves_nothing_to_tell(path: Path, step: str) -> None:
    killed = child(BEGIN_AND_DIE, str(path), step)
    killed.communicate(timeout=30)
    assert killed.returncode == -signal.SIGKILL
    assert path.exists() == (step == "after")
    for count in range(2):
        history = History(path)
        assert (history.take_warnings(), history.count()) == ([], count)
        history.begin(a_run(f"r-{count}"))
        history.close()
    assert [item.name for item in path.parent.glob("history.db*")] != []
    assert not list(path.parent.glob("*.new*")) + list(path.parent.glob("*.corrupt-*"))


def test_two_processes_write_at_once_and_lose_nothing(path: Path) -> None:
    # The file is not there yet: both also race for making it.
    writers = [child(BEGIN_FOREVER, str(path), name, "30") for name in ("a", "b", "c")]
    for writer in writers:
        _, error = writer.communicate(timeout=60)
        assert (writer.returncode, error) == (0, "")
    history = History(path)
    assert history.count() == 3 * 31
    assert {run.note for run in history.page(limit=100)} == {"written"}
    assert [len(history.metrics.of(f"{name}-000000")) for name in ("a", "b", "c")] == [31] * 3
    history.close()


def test_threads_share_one_history(history: History) -> None:
    history.begin(a_run())
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for number in range(20):
                history.begin(a_run(f"{name}-{number}"))
                history.metrics.add("vit-tiny-000001", [b'{"step": 1}'])
                history.page(limit=5)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failures == []
    assert history.count() == 81
    assert len(history.metrics.of("vit-tiny-000001")) == 80


def test_a_lock_that_stays_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_MS", 50)
    history = History(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LumiError, match="locked by another lumitui") as caught:
            history.begin(a_run())
        assert caught.value.hint
        assert history.count() == 0
        other.execute("ROLLBACK")
    history.begin(a_run())
    history.close()


def test_a_thread_that_waits_to_write_keeps_no_other_from_reading(history: History) -> None:
    with contextlib.closing(sqlite3.connect(history._file.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writer = threading.Thread(target=history.begin, args=(a_run(),))
        writer.start()
        # With the thread's lock held while it waits, none of these would come back.
        assert [history.count() for _ in range(20)] == [0] * 20
        assert writer.is_alive()
        other.execute("ROLLBACK")
        writer.join(20)
    assert history.count() == 1


def test_a_full_disk_is_told_and_the_file_stays_good(history: History) -> None:
    history.begin(a_run("before"))
    pages = history._file.rows("PRAGMA page_count")[0][0]
    history._file.rows(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(LumiError, match="the disk is full"):
        history.begin(a_run("big", script=os.urandom(500_000).hex()))
    history._file.rows("PRAGMA max_page_count = 1000000")
    history.begin(a_run("after"))
    assert history.count() == 2


def test_a_history_that_may_only_be_read_is_told(history: History) -> None:
    history.begin(a_run())
    history._file.rows("PRAGMA query_only = 1")
    with pytest.raises(LumiError, match="is read-only"):
        history.update("vit-tiny-000001", note="x")


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LumiError, match="cannot be opened"):
        History(tmp_path / "file" / "history.db")
    with pytest.raises(LumiError, match="cannot be opened"):
        History(tmp_path)


def test_a_closed_history_is_told(path: Path) -> None:
    history = History(path)
    history.close()
    history.close()
    with pytest.raises(LumiError, match="closed"):
        history.count()


MOUNTS = """\
/dev/root / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb /home/me/local\\040disk ext4 rw 0 0
//server/share /mnt/share cifs rw 0 0
me@host: /mnt/far fuse.sshfs rw 0 0
tmpfs /mnt/share tmpfs rw 0 0
half a line
"""


@pytest.mark.parametrize(
    ("place", "shared"),
    [
        ("/home/me/.local/share", True),
        ("/home", True),
        ("/homely", False),
        ("/home/me/local disk/data", False),
        ("/mnt/far/x", True),
        ("/mnt/share/x", False),
        ("/var", False),
    ],
)
def test_a_network_is_known_from_a_disk(tmp_path: Path, place: str, shared: bool) -> None:
    table = tmp_path / "mounts"
    table.write_text(MOUNTS)
    assert is_shared(Path(place), table) is shared
    assert is_shared(Path(place), tmp_path / "none") is False
    assert is_shared(tmp_path) is False
