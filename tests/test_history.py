import contextlib
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lumitui.app import database
from lumitui.app.history import Changes, History
from lumitui.app.job import JobSpec, Layout, Price
from lumitui.app.records import Provenance, Run
from lumitui.remote.errors import InputError, LumiError
from lumitui.remote.scheduler import State

ROOT = Path(__file__).resolve().parent.parent

SPEC = JobSpec(
    name="vit-tiny",
    site="somewhere",
    partition="gpu",
    time="01:00:00",
    trainer="ddp",
    nodes=2,
    args=("--epochs", "10", "ä b'c"),
    env={"MIOPEN_LOG_LEVEL": "4"},
    metrics={"images_per_s": r"Images/sec: (\d+)"},
)


def a_run(run_id: str = "vit-tiny-000001", /, **changes: object) -> Run:
    run = Run(
        id=run_id,
        name="vit-tiny",
        site="somewhere",
        created=1000.0,
        parent=None,
        spec=SPEC,
        script="#!/bin/bash -l\n",
        command="sbatch job.sh",
        layout=Layout(2, 8, 8, 7, 8, True, ("0xfe", "0x01"), ("1-7", "0"), exact=False),
        price=Price(32.0, "GPU-hours", 16.0),
        global_batch=256,
        deepspeed_config='{"a": 1}',
        project="/home/me/project",
        job_file="job.yaml",
        folder="/scratch/me/project/runs/1",
        root="/scratch/me/project",
        token="0123456789abcdef",
        provenance=Provenance("abc123", "main", "+a patch\n", True),
        state=State.SENDING,
    )
    return replace(run, **changes)  # type: ignore[arg-type]


def child(code: str, *words: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "history.db"


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    made = History(path)
    yield made
    made.close()


# ------------------------------------------------------------------------- what is kept


def test_a_run_comes_back_as_it_was(history: History, path: Path) -> None:
    run = a_run(
        parent="other", snapshot="s1", job_id="7", reason="r", word="FAILED", rc=1, failed_rank=3,
        attempt=2, submitted=1.5, started=2.5, ended=3.5, updated=4.5, nodes_used="nid[1-2]",
        log_sizes={1: 10, 2: 20}, binding="[]", metrics_offset=9, exits=1, resumed_from="x",
        note="n", state=State.FAILED,
    )  # fmt: skip
    history.begin(run)
    assert history.get(run.id) == run
    other = History(path)
    assert other.get(run.id) == run
    other.close()


def test_every_field_may_be_missing_that_may_be(history: History) -> None:
    run = a_run(global_batch=None, deepspeed_config=None, job_file=None,
                provenance=Provenance(None, None, "", False))  # fmt: skip
    history.begin(run)
    assert history.get("last") == run


def test_every_change_arrives_and_touches_one_run_only(history: History) -> None:
    history.begin(a_run("a-1"))
    history.begin(a_run("b-2"))
    changes: Changes = {
        "state": State.RUNNING, "job_id": "8", "reason": "r", "word": "w", "rc": 2,
        "failed_rank": 1, "attempt": 3, "submitted": 1.0, "started": 2.0, "ended": 3.0,
        "updated": 4.0, "nodes_used": "n", "log_sizes": {3: 30}, "binding": "[1]",
        "metrics_offset": 5, "exits": 2, "snapshot": "s", "note": "note", "folder": "/f",
    }  # fmt: skip
    assert set(changes) == set(Changes.__annotations__)
    assert set(changes) <= {item.name for item in fields(Run)}
    history.update("a-1", **changes)
    assert history.get("a-1") == replace(a_run("a-1"), **changes)
    assert history.get("b-2") == a_run("b-2")
    history.update("a-1", binding=None, note="only")
    assert (history.get("a-1").binding, history.get("a-1").note) == (None, "only")


def test_many_updates_are_all_or_none(history: History) -> None:
    for number in range(200):
        history.begin(a_run(f"run-{number:03d}"))
    with pytest.raises(LumiError, match="no run 'gone'"):
        history.update_many([("run-000", {"state": State.DONE}), ("gone", {"state": State.DONE})])
    assert history.get("run-000").state is State.SENDING
    history.update_many([(f"run-{number:03d}", {"rc": number}) for number in range(200)])
    assert [history.get(f"run-{number:03d}").rc for number in (0, 7, 199)] == [0, 7, 199]
    with pytest.raises(LumiError):
        history.update("gone", binding="[]")


def test_the_same_run_twice_is_refused_and_changes_nothing(history: History) -> None:
    history.begin(a_run())
    with pytest.raises(LumiError, match="refused a record"):
        history.begin(a_run(note="second"))
    assert history.get("last").note == ""
    history.begin(a_run("still-works"))


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(), number=st.integers(0, 10**9))
def test_any_text_is_kept(history: History, text: str, number: int) -> None:
    name = f"r-{number}-{time.monotonic_ns()}"
    history.begin(a_run(name, note=text, reason=text))
    assert history.get(name).note == text
    history.page(text=text, limit=3)
    with contextlib.suppress(InputError):
        history.get(text)


def test_names_that_are_not_utf8_are_kept_as_far_as_they_can(history: History) -> None:
    history.begin(a_run(project="/home/\udcff", reason="\ud800"))
    assert history.get("last").project == "/home/?"
    history.update("vit-tiny-000001", note="\udcff")
    assert history.get("last").note == "?"


def test_elapsed_counts_from_the_start_to_the_end_or_now() -> None:
    run = a_run(state=State.RUNNING, started=100.0, ended=5000.0)
    assert a_run().elapsed(50.0) == 0
    assert run.elapsed(160.0) == 60
    assert run.elapsed(90.0) == 0
    assert replace(run, state=State.DONE, ended=130.0).elapsed(160.0) == 30
    assert replace(run, state=State.FAILED, ended=None, updated=140.0).elapsed(160.0) == 40


# ------------------------------------------------------------------------- finding runs


def test_a_run_is_found_by_id_unique_prefix_or_last(history: History) -> None:
    for created, name in enumerate(("vit-1", "vit-12", "cnn-3")):
        history.begin(a_run(name, created=float(created)))
    assert history.get("vit-1").id == "vit-1"
    assert history.get("c").id == "cnn-3"
    assert history.get("last").id == "cnn-3"
    with pytest.raises(InputError, match=r"Several runs begin with 'vit': vit-12, vit-1\."):
        history.get("vit")
    with pytest.raises(InputError, match=r"no run 'vti-12'.*vit-12"):
        history.get("vti-12")
    with pytest.raises(InputError, match="no run ''"):
        history.get("")
    for wild in ("%", "_", "*", "vit_"):
        with pytest.raises(InputError):
            history.get(wild)


def test_an_ambiguous_prefix_names_five_and_says_there_are_more(history: History) -> None:
    for number in range(9):
        history.begin(a_run(f"x-{number}", created=float(number)))
    with pytest.raises(InputError, match="x-8, x-7, x-6, x-5, x-4, …"):
        history.get("x")


def test_an_empty_history_says_so(history: History) -> None:
    for key in ("last", "x"):
        with pytest.raises(InputError, match="no run yet"):
            history.get(key)
    assert (history.page(), history.unfinished(), history.count()) == ([], [], 0)


def test_pages_are_newest_first_and_follow_each_other(history: History) -> None:
    for number in range(120):
        history.begin(a_run(f"r-{number:03d}", created=float(number)))
    seen: list[str] = []
    before: float | None = None
    while page := history.page(50, before):
        assert len(page) <= 50
        seen += [run.id for run in page]
        before = page[-1].created
    assert seen == [f"r-{number:03d}" for number in reversed(range(120))]
    assert history.count() == 120


def test_a_page_reads_neither_script_nor_patch_but_the_binding(history: History) -> None:
    history.begin(a_run(binding="[]"))
    (run,) = history.page()
    assert run == replace(
        a_run(binding="[]"), script="", provenance=Provenance("abc123", "main", "", True)
    )


def test_a_page_is_filtered(history: History) -> None:
    history.begin(a_run("a-1", created=1.0, site="x", note="50% done"))
    history.begin(a_run("b-2", created=2.0, state=State.DONE, job_id="4711"))
    history.begin(a_run("c-3", created=3.0, name="Großes"))

    def ids(**filters: object) -> list[str]:
        return [run.id for run in history.page(**filters)]  # type: ignore[arg-type]

    assert ids(site="x") == ["a-1"]
    assert ids(state=State.DONE) == ["b-2"]
    assert ids(text="471") == ["b-2"]
    assert ids(text="B-2") == ["b-2"]
    assert ids(text="große") == ["c-3"]
    assert ids(text="50%") == ["a-1"]
    assert ids(text="%") == ["a-1"]
    assert ids(text="_") == []
    assert ids(text="'; DROP TABLE runs; --") == []
    assert ids(site="x", state=State.DONE) == []
    assert history.count() == 3


def test_a_page_uses_the_index_and_never_sorts(history: History) -> None:
    plan = history._file.rows(
        "EXPLAIN QUERY PLAN SELECT * FROM runs r LEFT JOIN texts t ON t.run = r.id"
        " WHERE r.created < 5 ORDER BY r.created DESC, r.id DESC LIMIT 50"
    )
    words = " ".join(str(row["detail"]) for row in plan)
    assert "runs_created" in words and "TEMP B-TREE" not in words


def test_unfinished_runs_are_all_that_are_not_final(history: History) -> None:
    for number, state in enumerate(State):
        history.begin(a_run(f"r-{number}", state=state, created=float(number), binding="[]"))
    found = history.unfinished()
    assert [run.state for run in found] == [state for state in State if not state.is_final]
    assert found[0].script and found[0].binding == "[]"
    history.update(found[0].id, state=State.DONE)
    assert len(history.unfinished("somewhere")) == len(found) - 1
    assert history.unfinished("elsewhere") == []


def test_a_lineage_is_the_chain_up_and_all_descendants(history: History) -> None:
    tree = {"root": None, "child": "root", "sibling": "root", "mine": "child", "own-1": "mine",
            "own-2": "own-1", "other": None, "orphan": "pruned"}  # fmt: skip
    for created, (name, parent) in enumerate(tree.items()):
        history.begin(a_run(name, parent=parent, created=float(created)))

    def ids(name: str) -> list[str]:
        return [run.id for run in history.lineage(name)]

    assert ids("mine") == ["root", "child", "mine", "own-1", "own-2"]
    assert ids("root") == ["root", "child", "sibling", "mine", "own-1", "own-2"]
    assert ids("orphan") == ["orphan"]
    assert ids("nobody") == []


def test_a_circle_of_parents_ends(history: History) -> None:
    history.begin(a_run("a", parent="b", created=1.0))
    history.begin(a_run("b", parent="a", created=2.0))
    assert [run.id for run in history.lineage("a")] == ["a", "b"]


def test_a_run_of_another_version_is_left_out_and_told(history: History, path: Path) -> None:
    history.begin(a_run("good"))
    history.begin(a_run("bad"))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("""UPDATE runs SET spec = '{"from": "the future"}' WHERE id = 'bad'""")
    for _ in range(2):
        assert [run.id for run in history.page()] == ["good"]
    assert len(history.warnings) == 1 and "bad" in history.warnings[0]
    with pytest.raises(LumiError, match="cannot be read"):
        history.get("bad")


# ------------------------------------------------------------------ metrics and snapshots


def test_metrics_are_kept_in_order_and_broken_lines_counted(history: History) -> None:
    history.begin(a_run())
    lines = [b'{"step": 1}', b"half a li", b"", b'{"step": 2}\n', b"\xff"]
    assert history.add_metrics("vit-tiny-000001", lines) == 2
    assert history.add_metrics("vit-tiny-000001", [b'{"step": 3}', b"[]"]) == 1
    assert [point.step for point in history.metrics("vit-tiny-000001")] == [1, 2, 3]
    assert [point.step for point in history.metrics("vit-tiny-000001", last=2)] == [2, 3]
    assert history.metrics("vit-tiny-000001", last=0) == []
    assert history.broken_metrics("vit-tiny-000001") == 3
    assert (history.metrics("other"), history.broken_metrics("other")) == ([], 0)
    with pytest.raises(LumiError, match="no run 'other'"):
        history.add_metrics("other", [b"{}"])


def test_the_same_bytes_fetched_twice_are_added_once(history: History) -> None:
    history.begin(a_run())
    first, second = [b'{"step": 1}'], [b'{"step": 2}']
    history.add_metrics("vit-tiny-000001", first, span=(0, 12))
    history.add_metrics("vit-tiny-000001", first, span=(0, 12))
    history.add_metrics("vit-tiny-000001", second, span=(12, 24))
    history.add_metrics("vit-tiny-000001", first, span=(0, 12))
    assert [point.step for point in history.metrics("vit-tiny-000001")] == [1, 2]
    assert history.get("last").metrics_offset == 24


def test_one_manifest_is_known_for_each_folder_of_a_site(history: History) -> None:
    history.remember_manifest("s", "/root", "text 1", "id1")
    history.remember_manifest("s", "/other", "text 2", "id2")
    history.remember_manifest("s", "/root", "text 3", "id3")
    assert history.known_manifest("s", "/root") == "text 3"
    assert history.known_manifest("s", "/other") == "text 2"
    assert history.known_manifest("t", "/root") is None


def test_snapshots_of_live_runs_their_parents_and_the_last_one_sent_stay(history: History) -> None:
    rows = [
        ("done", State.DONE, "s-done", None),
        ("base", State.FAILED, "s-base", None),
        ("live", State.QUEUED, "s-live", None),
        ("sending", State.SENDING, None, "base"),
    ]
    for name, state, snapshot, parent in rows:
        history.begin(a_run(name, root="/r", state=state, snapshot=snapshot, parent=parent))
    history.begin(a_run("alone", root="/q", state=State.DONE, snapshot="s-alone"))
    history.begin(a_run("away", root="/r", site="t", state=State.QUEUED, snapshot="s-away"))
    history.remember_manifest("somewhere", "/r", "text", "s-last")
    history.remember_manifest("somewhere", "/new", "text", "s-new")
    assert history.snapshots_in_use("somewhere") == {
        "/r": {"s-base", "s-live", "s-last"}, "/q": set(), "/new": {"s-new"},
    }  # fmt: skip


# --------------------------------------------------------------- the file and its faults


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
    assert (pragma("busy_timeout"), pragma("foreign_keys")) == (5000, 1)


BEGIN_FOREVER = """
import sys
from pathlib import Path
from lumitui.app.history import History
from tests.test_history import a_run
history = History(Path(sys.argv[1]))
for number in range(100_000):
    name = f"{sys.argv[2]}-{number:06d}"
    history.begin(a_run(name, script="x" * 20_000))
    history.update(name, note="written")
    history.add_metrics(f"{sys.argv[2]}-000000", [b'{"step": 1}'])
    print(name, flush=True)
    if number == int(sys.argv[3]):
        break
"""


def test_what_begin_returned_from_survives_kill_9(path: Path) -> None:
    for kill_after in (1, 7, 20):
        writer = child(BEGIN_FOREVER, str(path), f"w{kill_after}", "-1")
        assert writer.stdout is not None
        promised = [writer.stdout.readline().strip() for _ in range(kill_after)]
        os.kill(writer.pid, signal.SIGKILL)
        promised += writer.stdout.read().split()
        writer.communicate(timeout=20)
        history = History(path)
        assert history.warnings == []
        assert history._file.rows("PRAGMA integrity_check")[0][0] == "ok"
        assert [history.get(name).note for name in promised] == ["written"] * len(promised)
        history.close()


def test_two_processes_write_at_once_and_lose_nothing(path: Path) -> None:
    # The file is not there yet: both also race for making and migrating it.
    writers = [child(BEGIN_FOREVER, str(path), name, "30") for name in ("a", "b", "c")]
    for writer in writers:
        _, error = writer.communicate(timeout=60)
        assert (writer.returncode, error) == (0, "")
    history = History(path)
    assert history.count() == 3 * 31
    assert {run.note for run in history.page(limit=100)} == {"written"}
    assert [len(history.metrics(f"{name}-000000")) for name in ("a", "b", "c")] == [31] * 3
    history.close()


def test_threads_share_one_history(history: History) -> None:
    history.begin(a_run())
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for number in range(20):
                history.begin(a_run(f"{name}-{number}"))
                history.add_metrics("vit-tiny-000001", [b'{"step": 1}'])
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
    assert len(history.metrics("vit-tiny-000001")) == 80


def test_a_lock_that_stays_is_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_MS", 50)
    history = History(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LumiError, match="held by another lumitui") as caught:
            history.begin(a_run())
        assert caught.value.hint
        assert history.count() == 0
        other.execute("ROLLBACK")
    history.begin(a_run())
    history.close()


def test_a_full_disk_is_told_and_the_file_stays_good(history: History) -> None:
    history.begin(a_run("before"))
    pages = history._file.rows("PRAGMA page_count")[0][0]
    history._file.rows(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(LumiError, match="the disk is full"):
        history.begin(a_run("big", script="x" * 1_000_000))
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


@pytest.mark.parametrize(
    "content", [b"not a database, " * 300, b"SQLite format 3\0" + b"\xff" * 900]
)
def test_a_damaged_file_is_kept_and_a_fresh_one_begun(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    history = History(path)
    history.begin(a_run())
    (kept,) = path.parent.glob("history.db.corrupt-*")
    assert kept.read_bytes() == content
    assert len(history.warnings) == 1 and kept.name in history.warnings[0]
    history.close()
    again = History(path)
    assert (again.count(), again.warnings) == (1, [])
    again.close()


def test_an_empty_file_is_a_fresh_history(path: Path) -> None:
    path.parent.mkdir()
    path.touch(0o644)
    history = History(path)
    assert (history.count(), history.warnings) == (0, [])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    history.close()


def test_damage_seen_in_use_is_told_and_set_aside_at_the_next_start(path: Path) -> None:
    history = History(path)
    for number in range(40):
        history.begin(a_run(f"r-{number}", script="x" * 5000))
    history.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(12288)
        file.write(b"\xa5" * (size - 12288))
    history = History(path)
    with pytest.raises(LumiError, match="is damaged"):
        for run in history.page(limit=100):
            history.get(run.id)
    history.close()
    fresh = History(path)
    assert fresh.count() == 0 and "kept as" in fresh.warnings[0]
    fresh.close()
    assert list(path.parent.glob("*.suspect")) == []


def test_a_suspicion_that_is_not_confirmed_costs_nothing(path: Path) -> None:
    history = History(path)
    history.begin(a_run())
    history.close()
    path.with_name("history.db.suspect").touch()
    again = History(path)
    assert (again.count(), again.warnings) == (1, [])
    again.close()
    assert not path.with_name("history.db.suspect").exists()


def test_a_newer_schema_is_not_touched(path: Path) -> None:
    History(path).close()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(LumiError, match="newer lumitui"):
        History(path)
    assert path.read_bytes() == before


def test_migrations_run_once_each_and_in_order(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(path)
    history.begin(a_run())
    history.close()

    def add_column(db: sqlite3.Connection) -> None:
        db.execute("ALTER TABLE runs ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue'")

    monkeypatch.setattr(database, "MIGRATIONS", [*database.MIGRATIONS, add_column])
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
        patch.setattr(database, "MIGRATIONS", [*database.MIGRATIONS, half])
        with pytest.raises(LumiError, match="no such column"):
            History(path)
    history = History(path)
    history.add_metrics("vit-tiny-000001", [b'{"step": 1}'])
    assert len(history.metrics("vit-tiny-000001")) == 1
    history.close()


def test_the_first_schema_is_the_one_that_is_released(path: Path) -> None:
    """The list only grows: whoever edits an old migration must see this fail."""
    History(path).close()
    with contextlib.closing(sqlite3.connect(path)) as db:
        columns = {
            table: [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            for table in ("runs", "texts", "metrics", "manifests")
        }
    assert json.dumps(columns["texts"]) == '["run", "script", "patch", "binding"]'
    assert columns["metrics"] == ["run", "ordinal", "line"]
    assert columns["manifests"] == ["site", "root", "id", "manifest"]
    assert len(columns["runs"]) == 38
