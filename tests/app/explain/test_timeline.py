"""What happened to a run and when: in order, with what is not known left out."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.explain import run_phrases, timeline
from lumitui.app.explain.waiting import expectations
from lumitui.app.history.metric_points import MetricPoint, parse_line
from lumitui.app.history.run import ENDS, KILLED, AttemptRecord
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site import walltime
from tests.support.jobs.binding.binding_reports import EXACT, reports, verdict_on
from tests.support.jobs.made_runs import a_run

NOW = 1_000_000.0
DAYS = 500_000.0
RUN = a_run(
    state=State.FAILED, job_id="7", created=NOW - 2200, submitted=NOW - 2100, started=NOW - 600,
    ended=NOW - 60, attempt=2, rc=9, failed_rank=3, nodes_used="nid[1-2]", binding="[]",
)  # fmt: skip


def points(*lines: dict[str, object]) -> list[MetricPoint]:
    parsed = [parse_line(json.dumps(line).encode()) for line in lines]
    return [point for point in parsed if point is not None]


def test_a_run_that_was_requeued_is_told_in_order() -> None:
    attempts = timeline.attempts_of(
        points(
            {"event": "start", "time": NOW - 1900, "attempt": 1, "world_size": 16},
            {"step": 1, "seconds": 12.0},
            {"event": "checkpoint", "step": 100, "seconds": 300.0},
            {"event": "stop", "step": 110, "signal": "SIGTERM", "seconds": 320.0},
            {"event": "start", "time": NOW - 590, "attempt": 2, "world_size": 16},
            {"step": 111, "seconds": 10.0},
        )
    )
    found = timeline.happenings(RUN, attempts, verdict_on(reports(EXACT)))
    rows = [(since, what) for _, since, what in timeline.rows(found, NOW)]
    assert rows == [
        ("", "created on a laptop"),
        ("+1 min 40 s", "submitted to somewhere as job 7"),
        ("+3 min 20 s", "program started on 16 ranks (attempt 1)"),
        ("+12 s", "first step 1 (attempt 1)"),
        ("+4 min 48 s", "1 checkpoint, the last after step 100 (attempt 1)"),
        ("+20 s", "program stopped by SIGTERM after step 110 (attempt 1)"),
        ("+16 min", "job started, attempt 2 on nid[1-2]"),
        ("", "binding of the ranks: proved"),
        ("+10 s", "program started on 16 ranks (attempt 2)"),
        ("+10 s", "first step 111 (attempt 2)"),
        ("+8 min 40 s", "job ended: failed (rank 3, exit 9)"),
    ]


def test_what_is_expected_comes_last_and_what_is_not_known_is_left_out() -> None:
    queued = replace(RUN, state=State.QUEUED, started=None, ended=None, attempt=1, binding=None,
                     expected_start=NOW + 600, expected_end=NOW + 4200)  # fmt: skip
    rows = timeline.rows(timeline.happenings(queued, (), None), NOW)
    assert [(since, what) for _, since, what in rows][1:] == [
        ("+1 min 40 s", "submitted to somewhere as job 7"),
        ("in 10 min", "expected to start"),
        ("in 1 h 10 min", "reaches its time limit"),
    ]
    unsent = replace(queued, submitted=None, job_id=None, state=State.SENDING,
                     expected_start=None, expected_end=None)  # fmt: skip
    assert [item.what for item in timeline.happenings(unsent, (), None)] == ["created on a laptop"]


def test_a_short_run_is_told_in_the_order_of_its_life_whatever_the_clocks_say() -> None:
    # Slurm writes whole seconds; the laptop's clock may be ahead.
    short = replace(RUN, submitted=NOW, started=NOW, ended=NOW + 102, attempt=1, rc=0,
                    state=State.DONE)  # fmt: skip
    attempts = timeline.attempts_of(points({"step": 0}, {"event": "end", "step": 9}))
    for created, clock in (
        (NOW + 0.6, ""),
        (NOW + 95, " (its clock is 1 min 35 s ahead of the site's)"),
    ):
        told = timeline.happenings(
            replace(short, created=created), attempts, verdict_on(reports(EXACT))
        )
        assert [(since, what) for _, since, what in timeline.rows(told, NOW)] == [
            ("", f"created on a laptop{clock}"),
            ("" if clock else "+0 s", "submitted to somewhere as job 7"),
            ("+0 s", "job started on nid[1-2]"),
            ("", "binding of the ranks: proved"),
            ("", "first step 0"),
            ("", "program ended after step 9"),
            ("+1 min 42 s", "job ended: done"),
        ]


def test_a_clock_that_is_behind_is_named_and_counts_no_limit_in_years() -> None:
    running = replace(
        RUN, created=NOW - 1 - DAYS, updated=NOW - DAYS, submitted=NOW, started=NOW, ended=None,
        state=State.RUNNING, attempt=1, binding=None, expected_end=NOW + 300,
    )  # fmt: skip
    shown = timeline.rows(timeline.happenings(running, (), None), NOW - DAYS)
    assert shown[0][2] == "created on a laptop (its clock is about 5 d 18 h behind the site's)"
    assert shown[-1][1:] == ("in 5 min", "reaches its time limit")
    ((_, end),) = expectations(running, NOW - DAYS)
    assert end.endswith(", in 5 min")


def test_a_clock_that_is_ahead_makes_no_job_run_for_years() -> None:
    running = replace(
        RUN, updated=NOW + DAYS, submitted=NOW, started=NOW, ended=None, state=State.RUNNING
    )
    limit = walltime.seconds_of(running.brief.time)
    assert running.elapsed(NOW + DAYS) == limit
    seen = replace(running, updated=NOW + limit + 600)
    assert seen.elapsed(NOW + limit + 600) == limit + 600, "the site told so"


@given(
    st.lists(
        st.fixed_dictionaries(
            {"event": st.sampled_from(["start", "step", "checkpoint", "stop", "end", "eval"])},
            optional={
                "time": st.floats(), "seconds": st.floats(), "step": st.integers(-5, 10**20),
                "world_size": st.integers(-2, 10**9), "signal": st.text(max_size=5),
            },
        ),
        max_size=12,
    )
)  # fmt: skip
def test_no_metrics_break_the_order(lines: list[dict[str, object]]) -> None:
    found = timeline.happenings(RUN, timeline.attempts_of(points(*lines)), None)
    assert found[0].what == "created on a laptop"
    moments = [item.moment for item in found if item.moment is not None and not item.leads]
    assert all(one - next_one < 1 for one, next_one in pairwise(moments)), "Slurm's whole seconds"
    assert len(timeline.rows(found, NOW)) == len(found)


def test_a_chain_that_waits_again_is_told_when_it_began_to_wait() -> None:
    records = (AttemptRecord(1, "7", "nid1", NOW - 900, NOW - 840, 85, 12, "requeue"),)
    run = replace(RUN, attempts=records, attempt=1, started=None, ended=None, rc=None,
                  state=State.QUEUED, submitted=NOW - 839, binding=None)  # fmt: skip
    told = [item.what for item in timeline.happenings(run, (), None)]
    assert told[:2] == ["created on a laptop", "submitted to somewhere as job 7"]
    assert told[2] == "attempt 1 started as job 7 on nid1"
    assert told[4:] == ["requeued"]
    again = replace(run, attempt=2, started=NOW - 700, state=State.RUNNING,
                    attempts=(*records, AttemptRecord(2, "7", "nid1", NOW - 699)))  # fmt: skip
    began = timeline.happenings(again, (), None)[4]
    assert (began.moment, began.what[:9]) == (NOW - 700, "attempt 2"), "as the overview dates it"


def test_each_attempt_of_a_chain_is_told() -> None:
    records = (
        AttemptRecord(1, "7", "nid[1-2]", NOW - 900, NOW - 840, 85, 1200, "requeue"),
        AttemptRecord(2, "7", "nid3", NOW - 600, NOW - 540, None, None, KILLED),
        AttemptRecord(3, "7", "nid4", NOW - 300, NOW - 60, 7, 1300, "failed"),
    )
    run = replace(RUN, attempts=records, attempt=3, started=NOW - 300, binding=None)
    told = [item.what for item in timeline.happenings(run, (), None)]
    assert told[2:-1] == [
        "attempt 1 started as job 7 on nid[1-2]",
        "attempt 1 saved at step 1,200 (1,200 new), requeued",
        "attempt 2 started as job 7 on nid3",
        "attempt 2 killed: node failure, requeue or preemption",
        "attempt 3 started as job 7 on nid4",
        "attempt 3 failed at step 1,300 (100 new) with exit 7",
    ]


def test_undated_steps_stay_in_their_attempt() -> None:
    records = (
        AttemptRecord(1, "7", "nid1", NOW - 900, NOW - 840, 85, 12, "requeue"),
        AttemptRecord(2, "7", "nid1", NOW - 600, NOW - 540, 85, 20, "used-up"),
    )
    run = replace(RUN, attempts=records, attempt=2, started=NOW - 600, ended=NOW - 540,
                  binding=None)  # fmt: skip
    attempts = timeline.attempts_of(
        points({"event": "start"}, {"step": 4}, {"event": "start"}, {"step": 16})
    )
    told = [item.what for item in timeline.happenings(run, attempts, None)]
    assert told[3] == "first step 4 (attempt 1)" and told[4].startswith("attempt 1 saved")
    assert told[6] == "first step 16 (attempt 2)" and told[7].startswith("attempt 2 saved")


@pytest.mark.parametrize("end", [*ENDS, KILLED])
def test_every_end_of_an_attempt_has_words(end: str) -> None:
    record = AttemptRecord(2, "7", "nid1", 0.0, 1.0, 1, None, end, "Access denied")
    assert run_phrases.ended(record, None).startswith("attempt 2 ")
