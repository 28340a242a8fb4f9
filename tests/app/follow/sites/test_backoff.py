"""A job that nobody knows any more is polled ever more rarely, unless a person asks."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.follow.refresh import DAY, Backoff
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run

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
