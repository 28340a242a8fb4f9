"""What is told of a run, and of many at once."""

from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.follow.notifications.events import (
    Happened,
    away_words,
    event_of,
    happened,
    joint_sentence,
    runs_with_events,
)
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run


def test_each_event_is_a_sentence() -> None:
    run = a_run("vit-1", site="lumi", started=100.0, ended=100.0 + 58 * 60)
    told = {
        state: event_of(a_run("vit-1", site="lumi", state=state), State.QUEUED) for state in State
    }
    assert told[State.QUEUED] is None and told[State.FINISHING] is None
    running = told[State.RUNNING]
    assert running is not None and running.sentence == "vit-1 is running on lumi."
    done = event_of(a_run("vit-1", state=State.DONE, started=run.started, ended=run.ended),
                    State.RUNNING)  # fmt: skip
    assert done is not None and done.sentence == "vit-1 is done after 58 min."
    failed = event_of(
        a_run("vit-1", state=State.FAILED, rc=9, failed_rank=3, reason="NonZeroExitCode"),
        State.RUNNING,
    )
    assert failed is not None
    assert failed.sentence == "vit-1: failed (rank 3, exit 9)."
    many = [event for event in (failed, failed, done, running) if event]
    assert joint_sentence(many) == "1 run started; 3 runs ended: 2 failed, 1 done."


def test_what_ended_meanwhile_is_counted() -> None:
    states = [State.DONE, State.FAILED, State.DONE, State.RUNNING]
    assert away_words(states) == "3 ended while you were away: 2 done, 1 failed"
    assert away_words([State.QUEUED]) == ""


@given(st.sampled_from(State), st.sampled_from(State))
def test_an_end_is_told_once_and_none_is_missed(before: State, now: State) -> None:
    kind = happened(before, now)
    assert (kind in (Happened.ENDED, Happened.FAILED)) == (now.is_final and not before.is_final)
    assert runs_with_events({"a": before}, {"a": now} if not now.is_final else {}) == (
        ["a"] if before is not now or now.is_final else []
    )
