"""What a run waits for, when it starts and ends, in words."""

from dataclasses import replace

import pytest

from lumitui.app.cli.views import show
from lumitui.app.explain import waiting
from lumitui.app.explain.proof.binding_proof import verdict
from lumitui.app.follow.results.summary import Curve, Figures, summarize
from lumitui.app.scale.lineage_overview import Relative, RunOverview
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run

NOW = 1_000_000.0
QUEUED = a_run(state=State.QUEUED, job_id="7", submitted=NOW - 600, updated=NOW)
RUNNING = replace(QUEUED, state=State.RUNNING, started=NOW - 450, expected_end=NOW + 3150)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Resources", "free nodes"),
        ("Priority", "higher priority"),
        ("QOSMaxGRESPerUser", "quality of service"),
        ("QOSMaxGRESPerJob", "more GPUs than a job may have"),
        ("AssocGrpGRESMinutes", "no hours left"),
        ("Dependency", "another job"),
        ("ReqNodeNotAvail, UnavailableNodes:nid[005001-005002]", "maintenance"),
        ("Nodes required for job are DOWN, DRAINED or reserved", "maintenance"),
        ("", "not considered it yet"),
        ("None", "not considered it yet"),
        ("SomethingNew", "SomethingNew"),
    ],
)
def test_a_reason_is_in_plain_words_with_the_word_itself(reason: str, words: str) -> None:
    shown = waiting.plain_reason(replace(QUEUED, reason=reason))
    assert words in shown
    assert reason in shown or reason == "None"


def test_a_run_that_does_not_wait_has_no_such_reason() -> None:
    assert waiting.plain_reason(replace(RUNNING, reason="Resources")) == ""


def test_what_is_expected_of_a_run() -> None:
    lines = dict(waiting.expectations(QUEUED, NOW))
    assert lines["expected start"] == "the scheduler has not estimated a time yet"
    assert lines["waiting for"] == "10 min"
    assert "expected end" not in lines
    # Without the scheduler's word for it, the end follows from the time limit.
    lines = dict(waiting.expectations(replace(QUEUED, expected_start=NOW + 90), NOW))
    assert lines["expected start"].endswith(", in 1 min 30 s")
    assert lines["expected end"].endswith(", in 1 h 01 min")
    assert dict(waiting.expectations(replace(QUEUED, expected_start=NOW - 9), NOW))[
        "expected start"
    ].endswith(", due now")
    late = dict(waiting.expectations(replace(QUEUED, expected_start=NOW - 300), NOW))
    assert late["expected start"].endswith(", 5 min ago; due any moment")
    assert late["expected end"].endswith(", in 1 h 00 min")
    (line,) = waiting.expectations(RUNNING, NOW)
    assert line[1].endswith(", in 52 min")
    assert waiting.expectations(replace(RUNNING, expected_end=None), NOW) == [line]
    assert waiting.expectations(replace(RUNNING, state=State.DONE, ended=NOW), NOW) == []


@pytest.mark.parametrize("state", [state for state in State if state.is_final])
def test_only_what_may_have_failed_is_searched_for_a_cause(state: State) -> None:
    quiet = state in (State.DONE, State.CANCELLED, State.NOT_SENT)
    assert bool(waiting.no_failure(replace(QUEUED, state=state, ended=NOW), NOW)) == quiet


def test_show_prints_it_too() -> None:
    queued = replace(QUEUED, reason="Priority", expected_start=NOW + 600)
    summary, proof = summarize([]), verdict(None, queued.layout)
    figures = Figures(summary, Curve(), 0, 0)
    overview = RunOverview(queued, proof, figures, (Relative(queued, 0, summary, None),))
    page = show.ShownRun(overview, {}, (), ())
    text = show.page_text(page, NOW, 100)
    for words in ("higher priority", ", in 10 min", "at most 32 GPU-hours"):
        assert words in text
    data = show.page_data(page)["run"]
    assert isinstance(data, dict)
    assert (data["expected_start"], data["expected_end"]) == (NOW + 600, NOW + 4200)
