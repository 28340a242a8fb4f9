"""The history as a file for another laptop, and that file merged into its history."""

import gzip
import json
import multiprocessing
import random
import sqlite3
import stat
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.history import run_exchange
from lumitui.app.history.history import History
from lumitui.app.history.listing.series_runs import RunSeries, SeriesMember
from lumitui.app.history.run import AttemptRecord, Provenance, Run
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.states import State
from tests.support.jobs.made_runs import SPEC, a_run

ROOT = "/scratch/me/project"
LINES = [b'{"step": 1, "loss": 2.5}', b'{"step": 2, "loss": 1.5}']


def made(run_id: str, **changes: object) -> Run:
    given: dict[str, object] = {"state": State.DONE, "job_id": "7", "updated": 10.0}
    return a_run(run_id, folder=f"{ROOT}/runs/{run_id}", root=ROOT, **given | changes)


def all_of(history: History) -> dict[str, tuple[Run, list[object]]]:
    runs = [history.get(run.id) for run in history.page(limit=1000)]
    return {run.id: (run, list(history.metrics.of(run.id))) for run in runs}


@pytest.fixture
def other(tmp_path: Path) -> Iterator[History]:
    """The history of another laptop."""
    made = History(tmp_path / "other" / "history.db")
    yield made
    made.close()


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    return tmp_path / "runs.history"


def carried(here: History, there: History, path: Path) -> tuple[int, int, int]:
    """Take the runs of `here` to `there`; return how many were added, updated, and unchanged."""
    path.unlink(missing_ok=True)
    here.exchange.export(path)
    done = there.exchange.merge(path)
    return len(done.added), len(done.updated), done.unchanged


def test_every_run_arrives_with_all_that_is_known(
    history: History, other: History, exported: Path
) -> None:
    hostile = "quote ' \" dollar $HOME `id` \\ newline \n tab \t ä \u2028"
    runs = [
        made("done-000001", binding="[1]", note="n #best", log_sizes={1: 10}, exits=1, rc=0,
             attempts=(AttemptRecord(1, "7", "n1", 1.0, 2.0, 0, 9, "done"),), attempts_read=90),
        made("plain-000002", parent="done-000001", machinery="m", probe="p", created=1001.0,
             spec=SPEC.model_copy(update={"args": (hostile,), "secrets": ("WANDB_API_KEY",)})),
        made("odd-000003", script=hostile, project=hostile, note="ends with '",
             provenance=Provenance(None, None, hostile, True), created=1002.0),
        made("queued-000004", state=State.QUEUED, deepspeed_config=None, created=1003.0),
    ]  # fmt: skip
    for run in runs:
        history.begin(run)
    history.metrics.add("done-000001", LINES, (0, 50))
    assert carried(history, other, exported) == (4, 0, 0)
    assert all_of(other) == all_of(history)
    assert stat.S_IMODE(exported.stat().st_mode) == 0o600
    # Both laptops show the same costs and sizes in their lists.
    assert other.facts(check=True).lost_texts == 0


def test_last_is_the_run_begun_last_whatever_the_clock(
    history: History, other: History, exported: Path
) -> None:
    history.begin(made("a-000001", created=5000.0))
    history.begin(made("b-000002", created=1000.0))  # the clock was set back
    assert history.get("last").id == "b-000002"
    # Runs of another laptop count by their times.
    for run_id, created in (("c-000003", 500.0), ("d-000004", 2000.0)):
        other.adopt([made(run_id, created=created)])
        carried(other, history, exported)
        assert history.get("last").id == ("b-000002" if created < 1000 else run_id)
    carried(history, other, exported)
    assert other.get("last").id == "a-000001"


def test_an_import_does_not_need_memory_in_the_size_of_the_file(
    history: History, other: History, exported: Path
) -> None:
    for number in range(40):
        script = random.Random(number).randbytes(100_000).hex()
        history.begin(made(f"a-{number:06}", script=script, created=1000.0 + number))
    history.exchange.export(exported)
    tracemalloc.start()
    assert len(other.exchange.merge(exported).added) == 40
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000, "the scripts have 8 MB"
    assert all_of(other) == all_of(history)


def test_a_full_disk_for_temporary_files_is_told(
    other: History, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other.begin(made("a-000001"))
    other.exchange.export(exported)

    def full(*args: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(run_exchange, "_checked", full)
    with pytest.raises(InputError, match="database or disk is full") as raised:
        other.exchange.merge(exported)
    assert "TMPDIR" in raised.value.hint


def test_points_of_a_running_runs_log_are_replaced_by_those_of_a_longer_one(
    history: History, other: History, exported: Path, tmp_path: Path
) -> None:
    history.begin(made("a-000001", state=State.RUNNING))
    carried(history, other, tmp_path / "before.history")
    history.metrics.add("a-000001", LINES[:1], (0, -100))
    assert carried(history, other, exported) == (0, 1, 0)
    history.metrics.add("a-000001", LINES, (0, -200))
    assert carried(history, other, exported) == (0, 1, 0)
    assert all_of(other) == all_of(history) and len(all_of(other)["a-000001"][1]) == 2
    other.exchange.merge(tmp_path / "before.history")
    assert all_of(other) == all_of(history)
    history.metrics.add("a-000001", LINES[1:], (0, 10))  # metrics.jsonl
    assert carried(other, history, tmp_path / "of log.history") == (0, 0, 1)
    assert carried(history, other, exported) == (0, 1, 0)
    assert all_of(other) == all_of(history) and len(all_of(other)["a-000001"][1]) == 1


def test_a_second_import_changes_nothing(history: History, other: History, exported: Path) -> None:
    history.begin(made("a-000001"))
    history.metrics.add("a-000001", LINES, (0, 50))
    carried(history, other, exported)
    before = other.stamp(), all_of(other)
    assert other.exchange.merge(exported).unchanged == 1
    assert all_of(other) == before[1]
    # And back again.
    assert carried(other, history, exported) == (0, 0, 1)


@pytest.mark.parametrize(
    "mine, theirs, expected",
    [
        ((State.RUNNING, 20.0), (State.DONE, 10.0), State.DONE),
        ((State.DONE, 10.0), (State.RUNNING, 20.0), State.DONE),
        ((State.UNKNOWN, 20.0), (State.NOT_SENT, 0.0), State.NOT_SENT),
        ((State.QUEUED, 10.0), (State.RUNNING, 20.0), State.RUNNING),
        ((State.RUNNING, 20.0), (State.QUEUED, 10.0), State.RUNNING),
        ((State.TIMEOUT, 10.0), (State.CANCELLED, 20.0), State.CANCELLED),
    ],
)
def test_a_final_state_wins_and_else_the_newer_one(
    history: History,
    other: History,
    exported: Path,
    mine: tuple[State, float],
    theirs: tuple[State, float],
    expected: State,
) -> None:
    other.begin(made("a-000001", state=mine[0], updated=mine[1]))
    history.begin(made("a-000001", state=theirs[0], updated=theirs[1]))
    carried(history, other, exported)
    assert other.get("a-000001").state is expected


def test_the_longer_metrics_stay_whichever_laptop_has_them(
    history: History, other: History, exported: Path
) -> None:
    for each in (history, other):
        each.begin(made("a-000001", state=State.RUNNING))
        each.metrics.add("a-000001", LINES[:1], (0, 25))
    history.metrics.add("a-000001", LINES[1:], (25, 50))
    # The other laptop has the end, and fewer metrics.
    other.update("a-000001", state=State.DONE, updated=99.0)
    assert carried(history, other, exported) == (0, 1, 0)
    assert [point.step for point in other.metrics.of("a-000001")] == [1, 2]
    assert other.get("a-000001").state is State.DONE
    assert carried(other, history, exported) == (0, 1, 0)
    assert all_of(other) == all_of(history)


def test_a_note_of_this_laptop_is_never_replaced(
    history: History, other: History, exported: Path
) -> None:
    for name, mine in (("a-000001", "mine"), ("b-000002", "")):
        other.begin(made(name, note=mine))
        history.begin(made(name, note="theirs", updated=99.0))
    carried(history, other, exported)
    assert [other.get(name).note for name in ("a-000001", "b-000002")] == ["mine", "theirs"]


def test_a_rebuilt_run_gets_back_what_its_folder_does_not_have(
    history: History, other: History, exported: Path
) -> None:
    whole = made("a-000001", binding="[1]", note="n")
    history.begin(whole)
    code = replace(whole.provenance, patch="")
    other.begin(replace(whole, binding=None, note="", provenance=code, state=State.UNKNOWN))
    carried(history, other, exported)
    assert other.get("a-000001") == whole


def test_a_run_that_is_being_sent_stays_with_its_laptop(
    history: History, other: History, exported: Path
) -> None:
    history.begin(made("a-000001", state=State.SENDING, job_id=None))
    history.begin(made("b-000002"))
    assert history.exchange.export(exported).left_out == 1
    assert other.exchange.merge(exported).added == ("b-000002",)


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("runs", "state", "nowhere"),
        ("runs", "note", b"\xff"),
        ("runs", "dirty", b"\xff"),
        ("runs", "attempts", "[null]"),
        ("runs", "created", 1e300),
        ("runs", "folder", ""),
        ("runs", "broken_metrics", "x"),
        ("metrics", "line", b"\xff"),
        ("metrics", "line", "{"),
        ("series", "created", "x"),
        ("series_members", "plan", "["),
    ],
)
def test_one_damaged_row_costs_no_other(
    history: History,
    other: History,
    path: Path,
    exported: Path,
    table: str,
    column: str,
    value: object,
) -> None:
    for run_id in ("good-000001", "bad-000002"):
        history.begin(made(run_id))
    history.metrics.add("bad-000002", LINES, (0, 50))
    members = (SeriesMember(1, "--lr=1", "{}"),)
    history.series.begin(RunSeries("g-000001", "grid", "lumi", "/job.yaml", 1.0, members))
    history.close()
    where = "WHERE id = 'bad-000002'" if table == "runs" else ""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE {table} SET {column} = ? {where}", (value,))
    with closing(History(path)) as damaged:
        is_kept = table != "runs" or column == "dirty"
        assert carried(damaged, other, exported) == (2 if is_kept else 1, 0, 0)
    assert other.get("good-000001") == made("good-000001")


def test_a_grid_arrives_and_its_last_claims_are_those_of_both_laptops(
    history: History, other: History, exported: Path
) -> None:
    members = (SeriesMember(1, "--lr=1", "{}"), SeriesMember(2, "--lr=2", "{}"))
    grid = RunSeries("grid-1", "grid", "somewhere", "job.yaml", 5.0, members)
    history.begin(made("old-000001", state=State.NOT_SENT, job_id=None, created=1.0))
    history.series.begin(grid)
    history.series.claim("grid-1", 1, "old-000001")
    carried(history, other, exported)
    assert other.series.get("grid-1").members[0].run == "old-000001"
    # The other laptop sends the member again; an older file must not make it look unsent.
    other.series.claim("grid-1", 1, "new-000002")
    other.begin(made("new-000002", created=2.0))
    other.exchange.merge(exported)
    assert other.series.get("grid-1").members[0].run == "new-000002"
    carried(other, history, exported)
    assert history.series.get("grid-1") == other.series.get("grid-1")
    assert [entry.run for entry in history.series.get("grid-1").members] == ["new-000002", None]


def test_a_series_with_a_run_on_its_way_stays_with_its_laptop(
    history: History, other: History, exported: Path
) -> None:
    members = (SeriesMember(1, "--lr=1", "{}"),)
    history.series.begin(RunSeries("grid-1", "grid", "somewhere", "", 5.0, members))
    history.series.claim("grid-1", 1, "a-000001")
    history.begin(made("a-000001", state=State.SENDING, job_id=None))
    carried(history, other, exported)
    assert other.series.offered() == []


# -- files that are refused


def refused(other: History, path: Path) -> str:
    before = all_of(other)
    with pytest.raises(InputError) as caught:
        other.exchange.merge(path)
    assert all_of(other) == before
    return str(caught.value)


def rewritten(path: Path, change: dict[str, object]) -> None:
    """Change columns of the first run of an exported file."""
    entries = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    next(entry["run"] for entry in entries if "run" in entry).update(change)
    path.write_bytes(gzip.compress(b"".join(json.dumps(e).encode() + b"\n" for e in entries)))


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04 a zip", b"SQLite format 3\x00", gzip.compress(b"text\n"),
                gzip.compress(b'{"a": 1}\n'), gzip.compress(b"")],
    ids=["empty", "zip", "sqlite", "text", "json", "packed-empty"],
)  # fmt: skip
def test_a_foreign_file_is_refused(other: History, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "foreign").write_bytes(content)
    said = refused(other, tmp_path / "foreign")
    assert "not an exported history" in said or "damaged" in said


def test_a_missing_file_and_a_folder_are_refused(other: History, tmp_path: Path) -> None:
    assert "cannot be read" in refused(other, tmp_path / "missing")
    assert "cannot be read" in refused(other, tmp_path)


def test_a_file_is_never_replaced(history: History, exported: Path) -> None:
    exported.write_text("mine")
    with pytest.raises(InputError, match="already exists"):
        history.exchange.export(exported)
    assert exported.read_text() == "mine"
    with pytest.raises(InputError, match="cannot be written"):
        history.exchange.export(exported.parent / "no" / "folder")
    assert [path.name for path in exported.parent.glob(".*part*")] == []


def test_every_cut_and_every_flipped_bit_is_noticed(
    history: History, other: History, exported: Path
) -> None:
    for number in range(3):
        history.begin(made(f"a-00000{number}", state=State.DONE))
    other.begin(made("a-000000", state=State.RUNNING))
    history.exchange.export(exported)
    whole, dice = exported.read_bytes(), random.Random(7)
    for cut in range(0, len(whole), max(1, len(whole) // 25)):
        exported.write_bytes(whole[:cut])
        refused(other, exported)
    for _ in range(40):
        place = dice.randrange(10, len(whole))  # the header's bytes mean nothing
        broken = bytearray(whole)
        broken[place] ^= 1 << dice.randrange(8)
        exported.write_bytes(broken)
        refused(other, exported)
    exported.write_bytes(whole)
    assert len(other.exchange.merge(exported).added) == 2


@pytest.mark.parametrize(
    "change, words",
    [
        ({"token": "f" * 16}, "differs from the run with that id"),
        ({"root": "/"}, "root"),
        ({"root": "/scratch/me/../../etc"}, "root"),
        ({"folder": "/etc/runs/other"}, "the record of"),
        ({"id": "$(id)"}, "id"),
        ({"state": "flying"}, "State"),
        ({"created": "yesterday"}, "created"),
        ({"attempts": '[{"number": "x"}]'}, "attempts"),
        ({"spec": 99}, "one of its entries"),
        ({"updated": None}, "updated"),
    ],
)
def test_a_run_that_lumitui_cannot_have_written_is_refused(
    history: History, other: History, exported: Path, change: dict[str, object], words: str
) -> None:
    for each in (history, other):
        each.begin(made("a-000001", state=State.RUNNING))
    history.begin(made("b-000002", created=2000.0))
    history.exchange.export(exported)
    rewritten(exported, change)
    assert words in refused(other, exported)


@pytest.mark.parametrize("value", [10**30, -(10**40), float("inf"), float("-inf"), float("nan")])
@pytest.mark.parametrize(
    "name",
    ["rc", "attempt", "failed_rank", "exits", "metrics_offset", "created", "started", "ended",
     "updated", "submitted", "broken_metrics"],
)  # fmt: skip
def test_a_number_that_no_clock_or_column_holds_is_refused(
    history: History, other: History, exported: Path, name: str, value: float
) -> None:
    history.begin(made("a-000001"))
    history.exchange.export(exported)
    rewritten(exported, {name: value})
    assert "cannot be imported" in refused(other, exported)
    assert other.page(limit=5) == []


def test_a_file_of_a_newer_lumitui_says_so(
    history: History, other: History, exported: Path
) -> None:
    history.begin(made("a-000001"))
    history.exchange.export(exported)
    text = gzip.decompress(exported.read_bytes())
    text = text.replace(b'"lumitui history": 1', b'"lumitui history": 2')
    exported.write_bytes(gzip.compress(text))
    assert "a newer version" in refused(other, exported)


def poll(path: Path, rounds: int) -> None:
    """Write like a TUI that polls, in a process of its own."""
    history = History(path)
    for number in range(rounds):
        history.update("a-000000", updated=float(number), reason=f"{number}")
    history.close()


def test_an_import_while_another_process_writes_loses_nothing(
    history: History, other: History, exported: Path, tmp_path: Path
) -> None:
    for number in range(60):
        history.begin(made(f"b-{number:06}", created=float(number)))
        history.metrics.add(f"b-{number:06}", LINES, (0, 50))
    other.begin(made("a-000000", state=State.RUNNING))
    history.exchange.export(exported)
    writer = multiprocessing.get_context("spawn").Process(
        target=poll, args=(tmp_path / "other" / "history.db", 50)
    )
    writer.start()
    added = other.exchange.merge(exported).added
    writer.join(60)
    assert (writer.exitcode, len(added), other.count()) == (0, 60, 61)
    assert other.get("a-000000").reason == "49"
