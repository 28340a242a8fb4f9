"""Waiting for runs, and a cancel that fails."""

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from lumitui.app.cli.output import Reply
from lumitui.app.cli.send_progress import follow_log, wait_for_end
from lumitui.app.cli.verbs.runs import inside_verbs
from lumitui.app.follow import log_follower as waiting
from lumitui.app.follow import transitions
from lumitui.app.follow.log_follower import wait
from lumitui.app.follow.refresh import Refreshed, Watcher
from lumitui.app.history.run import Run
from lumitui.app.job.fields.mapping_fields import After
from lumitui.app.job.settings import Settings
from lumitui.app.runs import LogBegan, LogEnded, NeverStarts, Runs, WaitTimedOut
from lumitui.remote.connect import Connection
from lumitui.remote.scheduler.scheduler_protocol import State, Watch
from lumitui.remote.scheduler.slurm import Slurm
from lumitui.remote.site.errors import (
    AnswerNeeded,
    LinkError,
    LinkLost,
    LumiError,
    OutcomeUnknown,
    RefusedError,
)
from lumitui.remote.transport.local import Local
from tests.support.jobs.made_runs import SPEC, a_run

RUN = a_run("vit", state=State.RUNNING, job_id="7")
LOST = replace(RUN, state=State.UNKNOWN, reason=f"the job left the queue; {transitions._NOBODY}")


class Site:
    """A site whose refreshes bring `answers`: the run as it is then, or a warning; the last stays.

    Each refresh takes a second of a clock that stands still otherwise.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Run | str) -> None:
        self.answers, self.run, self.now = list(answers), RUN, 100.0
        self.attended: list[bool] = []
        history = SimpleNamespace(get=lambda run_id: self.run)
        sites = SimpleNamespace(load=lambda name: SimpleNamespace(poll_seconds=10.0))
        self.watcher = cast(Watcher, SimpleNamespace(history=history, sites=sites))
        monkeypatch.setattr(waiting, "refresh", self.refresh)
        monkeypatch.setattr(waiting, "sleep_unless", lambda seconds, stop: None)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def refresh(self, watcher: Watcher, site_name: str, *, attended: bool) -> Refreshed:
        """Bring the next answer."""
        self.now += 1
        self.attended.append(attended)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, str):
            return Refreshed((), (answer,), 1)
        self.run = answer
        return Refreshed((), (), 1)


def test_a_reason_why_a_site_cannot_be_asked_is_a_warning_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = replace(RUN, state=State.DONE)
    site = Site(monkeypatch, "down", "down", RUN, "down", "closed", "closed", done)
    warnings: list[str] = []
    assert wait(site.watcher, RUN, timeout=None, stop=lambda: False, warn=warnings.append) == done
    assert warnings == ["down", "down", "closed"]
    assert site.attended == [True, *[False] * 6], "only the person asks, not the clock"


def test_a_timeout_returns_the_run_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, RUN)
    assert wait(site.watcher, RUN, timeout=3, stop=lambda: False, warn=print) == RUN
    assert len(site.attended) == 3
    assert wait(site.watcher, RUN, timeout=None, stop=lambda: True, warn=print) == RUN


@pytest.mark.parametrize("answers", [True, False], ids=["it answers", "it is down"])
def test_a_site_is_polled_soon_after_a_send_and_a_start(
    monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    queued = replace(RUN, state=State.QUEUED, submitted=1000.0, started=None)
    started = replace(queued, state=State.RUNNING, started=1060.0)
    site = Site(monkeypatch, *([*[queued] * 5, started] if answers else ["down"]))
    moments: list[float] = []

    def sleep(seconds: float, stop: object) -> None:
        moments.append(site.now - 101)
        site.now += seconds - 1  # a refresh takes a second

    monkeypatch.setattr(waiting, "sleep_unless", sleep)
    monkeypatch.setattr(time, "time", lambda: 1001.0)
    loads = SimpleNamespace(load=lambda name: SimpleNamespace(poll_seconds=60.0))
    monkeypatch.setattr(site.watcher, "sites", loads)
    wait(site.watcher, queued, timeout=250, stop=lambda: False, warn=lambda words: None)
    if answers:
        started_at = 103  # a minute after the poll before
        assert moments[:6] == [0, 3, 8, 18, 43, started_at]
        assert moments[6:] == [started_at + after for after in (2, 5, 10, 20, 45, 105)]
    else:
        assert moments == [0, 60, 120, 180, 240]


def test_a_job_that_can_never_start_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    queued = replace(RUN, state=State.QUEUED, reason="Dependency")
    never = replace(queued, reason="DependencyNeverSatisfied")
    site = Site(monkeypatch, queued, never)
    assert wait(site.watcher, RUN, timeout=None, stop=lambda: False, warn=print) == never
    assert len(site.attended) == 2


def test_the_verb_names_the_runs_that_it_waited_for_in_vain() -> None:
    spec = SPEC.model_copy(update={"after": After(run=("train-000001",))})
    never = replace(RUN, spec=spec, state=State.QUEUED, reason="DependencyNeverSatisfied")
    history = SimpleNamespace(get=lambda run_id: never)
    log = [LogBegan(1, 0), LogEnded("ended: queued")]
    runs = cast(
        Runs,
        SimpleNamespace(
            wait=lambda run_id, **rest: never,
            follow=lambda run_id, **rest: log,
            history=history,
            mark_told=lambda run: None,
        ),
    )
    for waits in (
        partial(wait_for_end, Reply(json=False), runs, never, None),
        partial(follow_log, runs, never.id, 100),
    ):
        with pytest.raises(NeverStarts, match="never start: train-000001 did not end") as raised:
            waits()
        assert raised.value.hint == f"Remove it from the queue with `lumitui cancel {never.id}`."


@pytest.mark.parametrize(
    "state, stays", [(State.QUEUED, "stays in the queue"), (State.RUNNING, "keeps running")]
)
def test_the_end_of_a_wait_names_whole_seconds_and_where_the_job_is(
    monkeypatch: pytest.MonkeyPatch, state: State, stays: str
) -> None:
    clock = iter((100.0, 107.9))
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    runs = cast(
        Runs,
        SimpleNamespace(
            wait=lambda run_id, **rest: replace(RUN, state=state),
            mark_told=lambda run: None,
        ),
    )
    with pytest.raises(WaitTimedOut) as raised:
        wait_for_end(Reply(json=False), runs, RUN, 7.86254)
    assert str(raised.value) == f"{RUN.id} is still {state} after 8 s. The job {stays}."


def test_a_wait_for_several_runs_names_the_time_given_and_all_that_have_not_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = ("train-00000a", "train-00000b", "train-00000c")
    states = dict(zip(ids, (State.RUNNING, State.DONE, State.QUEUED), strict=True))
    made = {name: replace(RUN, id=name, state=state) for name, state in states.items()}
    runs = SimpleNamespace(
        wait=lambda run_id, **rest: made[run_id],
        mark_told=lambda run: None,
        history=SimpleNamespace(get=made.__getitem__),
    )
    monkeypatch.setattr(inside_verbs, "core", lambda: nullcontext(runs))
    seconds = chain((0.0, 0.0, 0.0, 140.0), repeat(140.0))  # the first run takes all of them
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    with pytest.raises(WaitTimedOut) as raised:
        inside_verbs.wait.main(
            [*ids, "--timeout", "140"], obj=Reply(json=False), standalone_mode=False
        )
    assert str(raised.value) == (
        "train-00000a is still running, train-00000c is still queued after 140 s. "
        "The jobs stay in the queue or keep running."
    )


@pytest.mark.parametrize("on_terminal", [True, False])
def test_on_a_terminal_a_wait_tells_each_state_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], on_terminal: bool
) -> None:
    queued, done = replace(RUN, state=State.QUEUED), replace(RUN, state=State.DONE)
    site = Site(monkeypatch, queued, queued, RUN, RUN, done)
    runs = cast(
        Runs,
        SimpleNamespace(
            wait=lambda run_id, **how: wait(site.watcher, queued, stop=lambda: False, **how),
            mark_told=lambda run: None,
        ),
    )
    monkeypatch.setattr(sys.stderr, "isatty", lambda: on_terminal)
    wait_for_end(Reply(json=False), runs, queued, None)
    states = f"{RUN.id} is queued.\n{RUN.id} is running.\n" if on_terminal else ""
    assert capsys.readouterr().err == f"{states}{RUN.id}: done.\n"


def test_a_job_nobody_knows_is_given_up_after_one_more_refresh_as_a_person(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transitions, "ACCOUNTING_SECONDS", 3.0)
    site = Site(monkeypatch, LOST)
    assert wait(site.watcher, RUN, timeout=None, stop=lambda: False, warn=print) == LOST
    assert site.attended == [True, *[False] * 4, True]
    known_again = Site(monkeypatch, LOST, LOST, LOST, LOST, RUN, LOST)
    wait(known_again.watcher, RUN, timeout=None, stop=lambda: False, warn=print)
    assert len(known_again.attended) == 5 + 6, "the time begins anew"


def test_a_login_that_needs_a_person_ends_the_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(monkeypatch, RUN)
    needed = AnswerNeeded("Needs your code.")
    monkeypatch.setattr(
        waiting, "refresh", lambda *_, **__: Refreshed((), ("x",), 0, unanswered=(needed,))
    )
    with pytest.raises(AnswerNeeded):
        wait(site.watcher, RUN, timeout=None, stop=lambda: False, warn=print)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (LinkError("No route.", "Check the network."), "r-000001 is not cancelled: No route."),
        (LinkLost("It was cut.", ""), "It is unknown whether r-000001 was cancelled: It was cut."),
        (RefusedError("Not yours.", ""), "r-000001 is not cancelled: Not yours."),
        (
            OutcomeUnknown("No list.", ""),
            "The cancellation of r-000001 is not yet confirmed: No list.",
        ),
    ],
)
def test_a_cancel_that_fails_names_the_run_and_what_became_of_its_job(
    settings: Settings, tmp_path: Path, error: LumiError, words: str
) -> None:
    class Failing(Slurm):
        """A queue that takes no cancel."""

        def cancel(self, watches: Sequence[Watch]) -> Mapping[str, str]:
            raise error

    local = Local()
    runs = Runs(
        settings, connect=lambda site, ask: Connection(local, Failing(local), lambda: "me", "~")
    )
    runs.history.begin(a_run("r-000001", site="laptop", state=State.RUNNING, job_id="7"))
    with pytest.raises(type(error)) as raised:
        runs.cancel("r-000001")
    assert raised.value.message == words
    assert raised.value.hint.startswith("Its job may still be running")
    assert raised.value.hint.endswith(error.hint)
    runs.close()
