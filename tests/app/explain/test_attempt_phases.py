"""What each attempt of a run spent its time on: bars that differ without colour, and words."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.explain.timeline import MARKS, Attempt, AttemptPhases, attempt_phases, attempts_of
from lumitui.app.history.metric_points import MetricPoint
from lumitui.app.history.run import KILLED, AttemptRecord, Run
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run

NOW = 1_000_000.0
RUN = a_run(
    state=State.DONE, job_id="7", created=NOW - 4100, submitted=NOW - 4000, started=NOW - 3400,
    ended=NOW - 400,
)  # fmt: skip
STARTS = attempts_of(
    [
        MetricPoint("start", extra={"time": NOW - 3300}),
        MetricPoint(step=1, seconds=20.0),
        MetricPoint("checkpoint", step=100, seconds=300.0, extra={"save_s": 40.0}),
        MetricPoint("checkpoint", step=200, seconds=600.0, extra={"save_s": 260.0}),
    ]
)


def shown(run: Run, starts: tuple[Attempt, ...] = (), now: float = NOW) -> list[str]:
    found = attempt_phases(run, starts, now)
    longest = max((sum(part.seconds for part in one.phases) for one in found), default=0.0)
    return [
        f"{one.number} {''.join(marks for _, marks in one.bar(36, longest))} {one.words}"
        for one in found
    ]


def test_an_attempt_waits_starts_trains_and_saves() -> None:
    (text,) = shown(RUN, STARTS)
    bar = "·" * 6 + "░" + "█" * 26 + "▒" * 3
    assert text == f"1 {bar} · queued 10m  ░ starting 2m  █ training 43m  ▒ saving 5m"
    assert len({mark for kind, mark in MARKS.items() if kind != "running"}) == 5


def test_without_metrics_a_job_only_runs_and_one_that_goes_on_says_so() -> None:
    running = replace(RUN, state=State.RUNNING, ended=None, updated=NOW)
    assert shown(running) == [f"1 {'·' * 5}{'█' * 31} · queued 10m  █ running 56m …"]
    queued = replace(RUN, state=State.QUEUED, started=None, ended=None)
    assert shown(queued) == [f"1 {'·' * 36} · queued 1h06 …"]
    unsent = replace(queued, state=State.NOT_SENT, job_id=None, submitted=None)
    assert shown(unsent) == []


def test_a_chain_has_a_bar_for_each_attempt_and_for_its_wait() -> None:
    records = (
        AttemptRecord(1, "7", "nid1", NOW - 3000, NOW - 2000, end="requeue"),
        AttemptRecord(2, "7", "nid2", NOW - 1500, NOW - 1000, end=KILLED),
    )
    run = replace(
        RUN, state=State.QUEUED, created=NOW - 3600, submitted=NOW - 1000, attempt=3, started=None,
        ended=None, attempts=records,
    )  # fmt: skip
    assert [words.split(" ", 2)[2] for words in shown(run)] == [
        "· queued 10m  █ running 16m",
        "~ requeued 8m20  █ running 8m20",
        "~ requeued 16m …",
    ]
    bars = [words.split(" ")[1] for words in shown(run)]
    assert [len(bar) for bar in bars] == [36, 22, 22], "on one scale"


@given(
    st.lists(st.floats(-1e12, 1e12), min_size=4, max_size=4),
    st.lists(st.tuples(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12)), max_size=3),
    st.integers(1, 200),
)
def test_wrong_clocks_break_no_bar(
    times: list[float], starts: list[tuple[float, float]], width: int
) -> None:
    submitted, started, ended, now = times
    run = replace(RUN, submitted=submitted, started=started, ended=ended)
    found: list[AttemptPhases] = attempt_phases(
        run, [Attempt(began, saving=saving) for began, saving in starts], now
    )
    longest = max((sum(part.seconds for part in one.phases) for one in found), default=0.0)
    for one in found:
        marks = "".join(marks for _, marks in one.bar(width, longest))
        assert len(one.phases) <= len(marks) <= max(width, len(one.phases)) and one.words
