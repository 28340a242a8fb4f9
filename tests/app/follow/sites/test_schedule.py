"""When sites are polled: each once at a time, rarely while nothing changes, and never no more."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.follow.refresh import DAY, Backoff
from lumitui.app.follow.sites.poll_schedule import (
    END_SECONDS,
    IDLE_SECONDS,
    LONGEST_PAUSE,
    RETRY_SECONDS,
    RefreshEnding,
    Schedule,
)
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run


def test_a_site_is_asked_once_at_a_time_and_less_often_when_it_fails() -> None:
    schedule = Schedule(last_input=0.0)
    assert schedule.due(["a", "b"], 0.0) == ["a", "b"]
    schedule.began("a")
    assert schedule.due(["a"], 100.0) == []
    schedule.ended("a", 100.0, RefreshEnding(1), pause=10)
    assert schedule.due(["a"], 109.0) == []
    assert schedule.due(["a"], 110.0) == ["a"]
    pauses = []
    now = 110.0
    for _ in range(8):
        schedule.began("a")
        schedule.ended("a", now, RefreshEnding(1, ("a: down",)), pause=10)
        following = next(s for s in range(1, 2000) if schedule_due(schedule, now + s))
        pauses.append(following)
        now += following
    assert pauses == [20, 40, 80, 160, 320, 600, 600, 600]
    assert schedule.requests == 9
    assert " ".join(schedule.warnings) == "a: down"
    schedule.hurry(["a"])
    assert schedule_due(schedule, now)
    schedule.drop_warnings([])
    assert not schedule.warnings


def test_a_site_whose_log_showed_an_end_is_polled_once_soon_unless_it_fails() -> None:
    schedule = Schedule(last_input=0.0)
    schedule.began("a")
    schedule.ended("a", 100.0, RefreshEnding(1), pause=60)
    schedule.hasten("a", 110.0)
    assert schedule.next_refresh("a", 110.0) == END_SECONDS
    schedule.began("a")
    schedule.ended("a", 116.0, RefreshEnding(1, ("a: down",)), pause=60)
    due = schedule.next_refresh("a", 120.0)
    schedule.hasten("a", 120.0)
    assert schedule.next_refresh("a", 120.0) == due


@pytest.mark.parametrize(("least", "rest"), [(0, END_SECONDS), (30, 20.0), (60, 50.0)])
def test_a_logs_end_keeps_the_least_pause_of_the_site(least: float, rest: float) -> None:
    schedule = Schedule(last_input=0.0)
    schedule.began("a")
    schedule.ended("a", 100.0, RefreshEnding(1), pause=60, least=least)
    schedule.hasten("a", 110.0)
    assert schedule.next_refresh("a", 110.0) == rest
    schedule.lose("a", 110.0)
    assert schedule.next_refresh("a", 110.0) == max(0.0, least - 10.0)


def polls_of_an_hour(*moved: float, answers: bool = True) -> list[float]:
    """Return when a site is polled that has a job, each 45 s; jobs move at these seconds."""
    schedule, polls = Schedule(last_input=0.0), list[float]()
    for now in map(float, range(3600)):
        schedule.last_input = now
        if now in moved:
            schedule.quicken("a", now)
        if schedule_due(schedule, now):
            polls.append(now)
            schedule.began("a", now)
            warnings = () if answers else ("a: down",)
            schedule.ended("a", now, RefreshEnding(1, warnings), pause=45)
    return polls


def test_a_site_is_polled_soon_after_a_send_and_a_start_which_costs_ten_polls() -> None:
    usual = polls_of_an_hour()
    assert len(usual) == 80
    polls = polls_of_an_hour(100, 1000)
    for moment in (100, 1000):
        assert [at - moment for at in polls if 0 < at - moment <= 45] == [2, 5, 10, 20, 45]
    assert len(usual) + 6 <= len(polls) <= len(usual) + 10


def test_many_sends_are_polled_once_each_five_seconds_and_a_silent_site_no_sooner() -> None:
    polls = polls_of_an_hour(*range(100, 400))
    assert len([at for at in polls if 100 <= at < 400]) <= 60
    assert polls_of_an_hour(*range(100, 400), answers=False) == polls_of_an_hour(answers=False)


def test_a_site_that_does_not_answer_is_tried_sooner_at_first() -> None:
    schedule, now, pauses = Schedule(last_input=0.0), 0.0, []
    for _ in range(9):
        schedule.began("a", now)
        schedule.ended("a", now, RefreshEnding(1, ("a: no route",), answered=False), pause=60)
        left = schedule.next_refresh("a", now)
        assert left is not None
        pauses.append(left / RETRY_SECONDS)
        now += left
        schedule.last_input = now
    assert pauses == [2, 4, 8, 16, 32, 64, 120, 120, 120]


def test_a_machine_that_slept_asks_every_site_at_once() -> None:
    schedule = Schedule(last_input=0.0)
    assert not schedule.wake(0.0, 1000.0)
    schedule.began("a", 0.0)
    schedule.ended("a", 1.0, RefreshEnding(1), pause=60)
    assert not schedule.wake(2.0, 1002.0) and schedule.due(["a"], 2.0) == []
    assert not schedule.wake(3.0, 503.0), "a clock that was set back says nothing"
    assert schedule.wake(4.0, 9000.0) and schedule.due(["a"], 4.0) == ["a"]
    assert not schedule.wake(5.0, 9001.0)


def test_a_person_s_wish_during_a_refresh_is_not_lost() -> None:
    schedule = Schedule(last_input=0.0)
    assert not schedule.began("a")
    schedule.hurry(["a", "b"])
    assert schedule.due(["a"], 1.0) == []
    schedule.ended("a", 1.0, RefreshEnding(1), pause=10)
    assert schedule.due(["a", "b"], 1.0) == ["a", "b"]
    assert schedule.began("a") and schedule.began("b"), "the person may be asked in these"
    schedule.ended("a", 2.0, RefreshEnding(1), pause=10)
    assert schedule.due(["a"], 3.0) == []
    assert not schedule.began("a")


def schedule_due(schedule: Schedule, now: float) -> bool:
    schedule.last_input = now
    return schedule.due(["a"], now) == ["a"]


def test_nothing_is_asked_when_nobody_is_there() -> None:
    schedule = Schedule(last_input=0.0)
    assert schedule.due(["a"], IDLE_SECONDS - 1)
    assert not schedule.due(["a"], IDLE_SECONDS + 1)
    schedule.focused = True
    assert schedule.due(["a"], IDLE_SECONDS + 1)
    schedule.focused = False
    assert not schedule.due(["a"], IDLE_SECONDS + 1)


@given(st.floats(0.1, 86_400), st.integers(1, 3000), st.floats(0, 1e12))
def test_no_number_of_failures_ends_the_refreshes(pause: float, failures: int, now: float) -> None:
    schedule = Schedule(last_input=now)
    for _ in range(failures):
        schedule.began("a")
        schedule.ended("a", now, RefreshEnding(1, ("a: down",), answered=False), pause=pause)
    left = schedule.next_refresh("a", now)
    assert left is not None and math.isfinite(left) and left <= max(LONGEST_PAUSE, pause) + 1


@given(st.lists(st.tuples(st.sampled_from(["fails", "works", "person", "away", "drop"]),
                          st.floats(0, 1e9)), max_size=60),
       st.floats(-1e12, 1e12), st.floats(0.1, 86_400))  # fmt: skip
def test_every_site_comes_again_whatever_happens(
    steps: list[tuple[str, float]], began: float, pause: float
) -> None:
    schedule, now = Schedule(last_input=began), began
    for what, later in steps:
        now += later
        if what == "person":
            schedule.last_input = now
            schedule.hurry(["a"])
            assert schedule.due(["a"], now) == ["a"]
        elif what == "away":
            schedule.focused = False
        elif what == "drop":
            schedule.drop_warnings([])
        else:
            schedule.began("a")
            warnings = ("a: down",) if what == "fails" else ()
            schedule.ended("a", now, RefreshEnding(1, warnings, answered=not warnings), pause=pause)
    schedule.last_input = now
    left = schedule.next_refresh("a", now)
    assert left is None or 0 <= left <= max(LONGEST_PAUSE, pause) + 1
    schedule.last_input = now + (left or 0) + 1
    assert schedule.due(["a"], now + (left or 0) + 1) == ["a"]


LOST = a_run("lost", state=State.UNKNOWN, job_id="7", updated=1000.0)
TRAINING = a_run("training", state=State.RUNNING, job_id="8")


def test_polls_become_rare_and_never_stop() -> None:
    backoff = Backoff()
    asked = []
    for tick in range(0, 10 * int(DAY), 45):
        now = 1000.0 + tick
        due = backoff.due([LOST, TRAINING], now, attended=False)
        assert TRAINING in due
        if LOST in due:
            asked.append(tick)
    assert len([tick for tick in asked if tick < DAY]) < 25
    assert all(after - before <= DAY + 45 for before, after in pairwise(asked))
    assert len([tick for tick in asked if tick > 5 * DAY]) == 5


def test_a_person_may_ask_at_any_time() -> None:
    backoff = Backoff()
    now = 1000.0 + DAY
    assert backoff.due([LOST], now, attended=False) == [LOST]
    assert backoff.due([LOST], now + 45, attended=False) == []
    assert backoff.due([LOST], now + 46, attended=True) == [LOST]
    assert backoff.due([LOST], now - 9999, attended=False) == [LOST], "the clock was set back"


def test_a_job_that_was_known_again_is_polled_often_again() -> None:
    backoff = Backoff()
    assert backoff.due([LOST], 1000.0 + DAY, attended=False)
    backoff.due([replace(LOST, state=State.RUNNING)], 1045.0 + DAY, attended=False)
    again = replace(LOST, updated=1045.0 + DAY)
    assert backoff.due([again], 1090.0 + DAY, attended=False) == [again]


CLOCKS = st.floats() | st.sampled_from([0.0, -1.0, 1e300, float("inf"), float("nan")])


@given(st.lists(CLOCKS, max_size=20), CLOCKS, CLOCKS, st.booleans())
def test_no_clock_silences_a_run_for_a_person(
    clocks: list[float], updated: float, created: float, attended: bool
) -> None:
    backoff = Backoff()
    lost = replace(LOST, updated=updated, created=created)
    for now in clocks:
        due = backoff.due([lost, TRAINING], now, attended=attended)
        assert TRAINING in due and (lost in due or not attended)
        assert lost in backoff.due([lost], now, attended=True)


@given(st.floats(0, 1e12), st.floats(-1e12, 1e12))
def test_a_run_is_asked_about_once_a_day_whatever_its_times_say(now: float, updated: float) -> None:
    backoff = Backoff()
    lost = replace(LOST, updated=updated)
    backoff.due([lost], now, attended=True)
    assert backoff.due([lost], now + DAY + 1, attended=False) == [lost]
    assert backoff.due([lost], now - DAY, attended=False) == [lost], "the clock was set back"
