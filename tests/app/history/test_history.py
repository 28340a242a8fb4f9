"""The history of runs: what is kept, and how it is found again."""

import contextlib
import sqlite3
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lumitui.app.history.file.sqlite_errors import PendingWarnings
from lumitui.app.history.history import History
from lumitui.app.history.listing.filters import FilterTerm, WordTerm
from lumitui.app.history.listing.find_runs import Filter
from lumitui.app.history.listing.series_runs import RunSeries
from lumitui.app.history.rows.kept_texts import digest_of, pack
from lumitui.app.history.run import AttemptRecord, Changes, Provenance, Run
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError, LumiError
from lumitui.remote.site.gpu_use import GpuUse
from tests.support.jobs.made_runs import a_run

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


def test_a_run_sent_while_the_clock_was_ahead_does_not_stay_the_newest(history: History) -> None:
    ahead = a_run("ahead-1", created=9_000_000.0, submitted=1_000.0)
    unsent = a_run("unsent-2", created=900.0)
    for run in (unsent, ahead, a_run("new-3", created=2_000.0)):
        history.begin(run)
    assert [run.id for run in history.page()] == ["new-3", "ahead-1", "unsent-2"]
    assert history.get("ahead-1").created == 1_000.0
    # A clock that is behind makes no run older.
    history.begin(a_run("behind-4", created=5.0))
    assert [history.get(name).created for name in ("new-3", "ahead-1")] == [2_000.0, 1_000.0]


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
            "expected_start": 5.0, "expected_end": 6.0,
        "updated": 4.0, "nodes_used": "n", "log_sizes": {3: 30}, "binding": "[1]",
        "metrics_offset": 5, "exits": 2, "snapshot": "s", "note": "note", "folder": "/f",
        "resumed_from": "p", "attempts": (AttemptRecord(1, "8", "n", 2.0, 3.0, 85, 9, "requeue"),),
        "attempts_read": 12, "cause": "rank 5 train.py:88: KeyError", "missed": 7.0,
        "gpu_use": GpuUse(7200, 8, 4, 0.31, 55.0, 31000, 65520),
    }  # fmt: skip
    assert set(changes) == set(Changes.__annotations__)
    assert get_type_hints(Changes).items() <= get_type_hints(Run).items()
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


def test_a_look_that_comes_late_changes_no_end(history: History) -> None:
    asked = a_run(state=State.RUNNING, job_id="7", attempt=2, exits=1)
    history.begin(asked)
    # Another process looked later and was faster.
    history.update(asked.id, attempt=3, exits=2)
    assert history.observe([(asked, {"state": State.QUEUED, "attempt": 2, "exits": 1})]) == [
        asked.id
    ]
    run = history.get(asked.id)
    assert (run.state, run.attempt, run.exits) == (State.QUEUED, 3, 2)
    assert history.observe([(asked, {"state": State.DONE, "rc": 0})]) == [asked.id]
    assert history.observe([(asked, {"state": State.RUNNING, "rc": None, "updated": 9.0})]) == []
    run = history.get(asked.id)
    assert (run.state, run.rc, run.updated) == (State.DONE, 0, asked.updated)


def test_a_look_at_another_job_is_not_this_ones(history: History) -> None:
    history.begin(a_run(state=State.RUNNING, job_id="8"))
    assert history.observe([(a_run(job_id="7"), {"state": State.FAILED})]) == []
    assert history.get("last").state is State.RUNNING
    with pytest.raises(LumiError, match="no run 'gone'"):
        history.observe([(a_run("gone"), {"state": State.FAILED})])


def test_the_same_run_twice_is_refused_and_changes_nothing(history: History) -> None:
    history.begin(a_run())
    with pytest.raises(LumiError, match="rejected a record"):
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
    history.listed(3, Filter(terms=(FilterTerm(text, False, WordTerm(text)),)))
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
    with pytest.raises(InputError, match=r"'vit' matches several runs: vit-12, vit-1\."):
        history.get("vit")
    with pytest.raises(InputError, match=r"'vti-12' is not a run.*vit-12"):
        history.get("vti-12")
    with pytest.raises(InputError, match="'' is not a run"):
        history.get("")
    for wild in ("%", "_", "*", "vit_"):
        with pytest.raises(InputError):
            history.get(wild)


def test_a_run_is_found_by_its_job_a_unique_end_of_its_id_or_its_name(history: History) -> None:
    for created, (key, name, job) in enumerate(
        (("vit-a1b2", "vit", "101"), ("vit-c3d4", "vit", "102"), ("vit-big-c3d5", "vit-big", "102"))
    ):
        history.begin(a_run(key, created=float(created), name=name, job_id=job))
    assert history.get("101").id == history.get("b2").id == history.get("vit-a").id == "vit-a1b2"
    assert history.get("vit").id == "vit-c3d4", "the newest of the name"
    assert history.get("vit-big").id == history.get("d5").id == "vit-big-c3d5"
    with pytest.raises(InputError, match=r"'102' matches several runs: vit-big-c3d5, vit-c3d4\."):
        history.get("102")
    with pytest.raises(InputError, match="'10' is not a run"):
        history.get("10")


def test_the_name_of_a_grid_is_its_newest_run(history: History) -> None:
    history.series.begin(RunSeries("g1", "grid", "lumi", "job.yaml", 1.0, ()))
    for number in range(3):
        history.begin(a_run(f"sweep-lr{number}-ab", created=float(number)))
        history.series.claim("g1", number, f"sweep-lr{number}-ab")
    assert history.get("sweep").id == "sweep-lr2-ab"
    again = replace(a_run("sweep-lr1-cd", created=5.0), parent="sweep-lr1-ab")
    history.begin(again)
    history.begin(replace(again, id="sweep-lr1-ef", parent=again.id, created=4.0))
    assert history.get("sweep").id == "sweep-lr2-ab", "a resubmission is not in the grid"
    with pytest.raises(InputError, match="matches several runs"):
        history.get("swe")
    history.begin(a_run("sweep-alone", created=9.0))
    with pytest.raises(InputError, match="matches several runs"):
        history.get("sweep")


def test_an_ambiguous_prefix_names_five_and_says_there_are_more(history: History) -> None:
    for number in range(9):
        history.begin(a_run(f"x-{number}", created=float(number)))
    with pytest.raises(InputError, match="x-8, x-7, x-6, x-5, x-4, …"):
        history.get("x")


def test_an_empty_history_says_so(history: History) -> None:
    for key in ("last", "x"):
        with pytest.raises(InputError, match="no runs yet"):
            history.get(key)
    assert (history.page(), history.unfinished(), history.count()) == ([], [], 0)


def test_a_page_reads_no_text_that_it_does_not_show(history: History) -> None:
    history.begin(a_run(binding="[]"))
    (run,) = history.page()
    assert run == replace(
        a_run(), script="", command="", deepspeed_config=None,
        provenance=Provenance("abc123", "main", "", True),
    )  # fmt: skip


def test_a_page_is_filtered(history: History) -> None:
    history.begin(a_run("a-1", created=1.0, site="x", note="50% done"))
    history.begin(a_run("b-2", created=2.0, state=State.DONE, job_id="4711"))
    history.begin(a_run("c-3", created=3.0, name="Großes"))

    def with_word(text: str) -> list[str]:
        terms = (FilterTerm(text, False, WordTerm(text)),)
        return [run.id for run in history.listed(9, Filter(terms=terms))]

    def ids(**filters: object) -> list[str]:
        return [run.id for run in history.page(**filters)]  # type: ignore[arg-type]

    assert ids(site="x") == ["a-1"]
    assert ids(state=State.DONE) == ["b-2"]
    assert with_word("471") == ["b-2"]
    assert with_word("B-2") == ["b-2"]
    assert with_word("große") == ["c-3"]
    assert with_word("50%") == ["a-1"]
    assert with_word("%") == ["a-1"]
    assert with_word("_") == []
    assert with_word("'; DROP TABLE runs; --") == []
    assert ids(site="x", state=State.DONE) == []
    assert history.count() == 3


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
        text = b'{"from": "the future"}'
        db.execute("INSERT INTO blobs VALUES (99, 'spec', ?, ?)", (digest_of(text), pack(text)))
        db.execute("UPDATE runs SET spec = 99 WHERE id = 'bad'")
    for _ in range(2):
        assert [run.id for run in history.page()] == ["good"]
    (warning,) = history.take_warnings()
    assert "bad" in warning
    with pytest.raises(LumiError, match="cannot be read"):
        history.get("bad")


def test_threads_share_the_warnings_and_none_is_lost_or_doubled() -> None:
    warnings, taken = PendingWarnings(), list[str]()

    def write(part: int) -> None:
        for number in range(500):
            warnings.add(f"{part}-{number}")

    writers = [Thread(target=write, args=(part,)) for part in range(4)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        taken += warnings.take()
    taken += warnings.take()
    assert sorted(taken) == sorted(f"{part}-{n}" for part in range(4) for n in range(500))


def test_one_manifest_is_known_for_each_folder_of_a_site(history: History) -> None:
    history.snapshots.remember("s", "/root", "text 1", "id1")
    history.snapshots.remember("s", "/other", "text 2", "id2")
    history.snapshots.remember("s", "/root", "text 3", "id3")
    assert history.snapshots.manifest("s", "/root") == "text 3"
    assert history.snapshots.manifest("s", "/other") == "text 2"
    assert history.snapshots.manifest("t", "/root") is None


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
    history.snapshots.remember("somewhere", "/r", "text", "s-last")
    history.snapshots.remember("somewhere", "/new", "text", "s-new")
    assert history.snapshots.in_use("somewhere") == {
        "/r": {"s-base", "s-live", "s-last"}, "/q": set(), "/new": {"s-new"},
    }  # fmt: skip
