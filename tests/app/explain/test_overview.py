"""The overview of a run in words: how far it is, how well it does, what to do next."""

from dataclasses import replace

import pytest

from lumitui.app.explain import overview, row_words, run_facts, words
from lumitui.app.history.attempts import AttemptRecord
from lumitui.app.results.summary import Summary
from lumitui.app.scale.speedup import Speedup
from lumitui.remote.scheduler.protocol import State
from tests.support.jobs.binding_reports import reports, verdict_on
from tests.support.jobs.made_runs import a_run

NOW = 1_000_000.0
RUN = a_run(state=State.RUNNING, job_id="7", submitted=NOW - 2100, started=NOW - 1860, updated=NOW)
TOTALS = Summary(812, 0.41, 61_000.0, None, 12.0, 16, 256)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "runs for 31 min of at most 1 h 00 min, after 4 min in the queue"),
        ({"started": None, "state": State.QUEUED}, "35 min in the queue"),
        (
            {"state": State.DONE, "ended": NOW - 179, "attempt": 2},
            "ran 28 min of at most 1 h 00 min, attempt 2, after 4 min in the queue; "
            "ended 2 min 59 s ago",
        ),
        (
            {"state": State.CANCELLED, "started": None, "ended": NOW - 100},
            "ended after 33 min in the queue",
        ),
        ({"job_id": None, "state": State.SENDING, "started": None}, ""),
    ],
)
def test_the_timing_is_told_in_one_line(changes: dict[str, object], words: str) -> None:
    assert overview.story(replace(RUN, **changes), NOW) == words  # type: ignore[arg-type]


def test_a_run_is_compared_with_its_parent() -> None:
    parent = replace(RUN, id="vit-1n", layout=replace(RUN.layout, nodes=1))
    child = replace(RUN, parent=parent.id, layout=replace(RUN.layout, nodes=4))
    rows = dict(overview.rows(child, NOW, None, TOTALS, (parent, Speedup(RUN.id, 3.7612, 94.03))))
    assert rows["throughput"] == "61000 samples/s on 16 ranks"
    assert rows["efficiency"] == "94 % of vit-1n: 3.76 x its throughput, 1 to 4 nodes"
    assert rows["loss"] == "0.41 after 812 steps"
    more = overview.against(Speedup(RUN.id, 4.4, 110.0), parent, child)
    assert more.startswith("110 % of vit-1n, which is noise above 100 %: 4.4 x")
    assert rows["billed"] == "about 8.27 GPU-hours so far, at most 32"
    alone = dict(overview.rows(child, NOW, None, None, None))
    assert set(alone) == {"timing", "billed", "next"}, "what is not known is left out"


def test_every_state_says_what_to_do_or_is_waiting() -> None:
    waiting = {State.SENDING, State.QUEUED, State.FINISHING}
    for state in State:
        told = overview.next_step(replace(RUN, state=state), None)
        assert bool(told) != (state in waiting), state
    wrong = verdict_on([item | {"cores": "1-2"} for item in reports(RUN.layout)])
    assert overview.next_step(RUN, wrong) == overview.UNPROVED
    failed = replace(RUN, state=State.FAILED)
    assert "Ask why" in overview.next_step(failed, None)
    assert overview.next_step(failed, None, explained=True) == overview.EXPLAINED
    assert overview.next_step(replace(RUN, state=State.DONE), wrong) != overview.UNPROVED


def test_a_silent_site_lets_neither_time_nor_bill_go_on() -> None:
    run = replace(RUN, started=NOW - 3000, updated=NOW - 1200, nodes_used="nid1")
    at = f"as of {words.clock(run.updated)[11:16]}"
    assert run.elapsed(NOW) == 1800 and run.elapsed(NOW + 500) == 1800
    assert run.billed(NOW + 500) == run.billed(NOW) == 8.0
    for said in (
        overview.story(run, NOW),
        words.billed(run, NOW),
        row_words.news(run, NOW),
    ):
        assert at in said, said
    assert "was seen running for 30 min" in overview.story(run, NOW)
    hour = at.removeprefix("as of ")
    assert run_facts.state(run, NOW) == f"running when last heard, {hour}"
    assert dict(run_facts.facts(run, NOW))["latest end"].endswith(f"10 min, as heard at {hour}")
    assert overview.next_step(run, None, NOW).startswith("Wait for somewhere")
    waits = replace(run, state=State.QUEUED, started=None, expected_start=NOW - 600)
    assert "10 min ago, as heard at" in dict(run_facts.facts(waits, NOW))["expected start"]
    assert at in row_words.news(waits, NOW) and run_facts.state(waits, NOW).startswith("queued wh")
    assert "so far" not in words.billed(run, NOW)
    assert words.elapsed_of_limit(run, NOW) == "30m/1h00"
    fresh = replace(run, updated=NOW - 30)
    assert run_facts.state(fresh, NOW) == "running"
    assert fresh.elapsed(NOW) == 3000 and "as of" not in overview.story(fresh, NOW)


def test_a_chain_that_has_no_limit_left_is_to_be_continued() -> None:
    record = AttemptRecord(1, "7", "nid1", 100.0, 160.0, 85, 30, "used-up")
    spec = RUN.spec.model_copy(update={"chain": 4})
    ended = replace(RUN, state=State.FAILED, attempts=(record,), spec=spec)
    assert overview.next_step(ended, None, explained=True) == overview.CONTINUE
    failed = replace(ended, attempts=(replace(record, end="failed"),))
    assert overview.next_step(failed, None) == overview.NEXT[State.FAILED]
    assert "attempt 1 of at most 4" in overview.story(replace(ended, job_id="7"), NOW)


def test_a_cause_that_is_known_is_the_reason_and_needs_no_question() -> None:
    failed = replace(RUN, state=State.FAILED, rc=1, failed_rank=5, ended=NOW)
    known = replace(failed, cause="rank 5 model.py:88: A GPU ran out of memory")
    asked, told = (dict(overview.rows(run, NOW, None, None, None)) for run in (failed, known))
    assert asked["reason"] == "rank 5, exit 1" and "Ask why" in asked["next"]
    assert told["reason"] == known.cause and "Ask why" not in told["next"]
