"""What a row says of a run, in the few cells it has."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from lumitui.app.explain import row_words
from lumitui.app.history.run import Run
from lumitui.app.job.launch import Price, RankLayout
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (a_run(state=State.QUEUED, reason="Resources"), "next in line"),
        (a_run(state=State.QUEUED, reason="None"), "no start time yet"),
        (a_run(state=State.QUEUED, reason="JobHeldUser"), "you hold it"),
        (a_run(state=State.SENDING), "on its way to the site"),
        (a_run(state=State.UNKNOWN), "not settled yet"),
        (
            a_run(state=State.FAILED, rc=1, failed_rank=5, reason="NonZeroExitCode"),
            "rank 5, exit 1",
        ),
        (a_run(state=State.FAILED, reason="RaisedSignal:9"), "RaisedSignal:9"),
        (a_run(state=State.FAILED, rc=1, cause="train.py:8: KeyError"), "train.py:8: KeyError"),
        (a_run(state=State.RUNNING, cause="train.py:8: KeyError"), ""),
        (a_run(state=State.TIMEOUT, reason="TimeLimit"), ""),
        (a_run(state=State.OUT_OF_MEMORY, reason="OutOfMemory", failed_rank=0), "rank 0"),
        (a_run(state=State.REFUSED, reason="Invalid account"), "Invalid account"),
        (a_run(state=State.RUNNING, reason="x"), ""),
        (a_run(state=State.DONE), ""),
    ],
)
def test_a_row_says_why_a_run_waits_or_failed(run: Run, words: str) -> None:
    assert row_words.news(run, NOW) == words


@pytest.mark.parametrize(
    ("state", "word", "words"),
    [
        (State.QUEUED, "Priority", "others ahead (Priority)"),
        (State.QUEUED, "DependencyNeverSatisfied",
         "can never start: cancel it (DependencyNeverSatisfied)"),
        (State.QUEUED, "QOSMaxGRES", "your jobs have reached the limit of its quality of service "
         "(QOSMaxGRES)"),
        (State.QUEUED, "SomethingNew", "SomethingNew"),
        (State.QUEUED, "None", ""),
        (State.FAILED, "Priority", "Priority"),
    ],
)  # fmt: skip
def test_a_reason_is_in_words_with_the_schedulers_own(state: State, word: str, words: str) -> None:
    assert row_words.short_reason(a_run(state=state, reason=word)) == words


def test_a_waiting_run_says_when_it_starts() -> None:
    run = a_run(state=State.QUEUED, reason="Priority", expected_start=NOW + 3540)
    assert row_words.news(run, NOW).endswith(", others ahead")
    late = a_run(state=State.QUEUED, reason="Resources", expected_start=NOW - 5)
    assert row_words.news(late, NOW).endswith(" due, next in line")
    broken = a_run(state=State.QUEUED, reason="Resources", expected_start=1e300)
    assert row_words.news(broken, NOW).startswith("~no date")


def test_a_row_has_sizes_shares_costs_and_ages() -> None:
    run = a_run(
        state=State.RUNNING,
        started=NOW - 1800,
        created=NOW - 7200,
        price=Price(32, "GPU-hours", 16),
    )
    assert row_words.size(run) == "2x8"
    assert row_words.size(a_run(layout=RankLayout(4, 2, 2, 1, 0, False))) == "4x2r"
    assert row_words.share(run, NOW) == 0.5
    assert row_words.share(run, NOW + 1e6) == 1.0
    assert row_words.share(a_run(state=State.DONE, started=1.0), NOW) is None
    assert row_words.cost([run], NOW) == "8.00" and row_words.cost([a_run()], NOW) == ""
    other = replace(run, price=replace(run.price, unit="CU"))
    assert row_words.cost([other], NOW) == "8.00 CU"
    dear = a_run(state=State.RUNNING, started=NOW - 1e6, price=Price(12345, "GPU-hours", 1e6))
    assert row_words.cost([dear], NOW) == "12,345.00"
    assert row_words.cost([run, dear], NOW) == "12,353.00" and not row_words.cost([run, other], NOW)
    assert row_words.age(run, NOW) == "2h00" and row_words.age(run, NOW + 1e8) == "1157d"


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, ""), (0.0, "0"), (0.4127, "0.413"), (0.1, "0.10"), (0.00002, "2e-05"), (4.049, "4.05"),
     (98.123, "98.1"), (999.96, "1.0k"), (1234.0, "1.2k"), (61000.4, "61k"), (999_960.0, "1.0M"),
     (1.25e6, "1.2M"), (-3.5, "-3.50"), (1e15, "1e+15")],
)  # fmt: skip
def test_a_figure_is_short(value: float | None, words: str) -> None:
    assert row_words.figure(value) == words


@given(some.floats(-1e300, 1e300))
def test_any_figure_is_a_number_near_it_in_six_cells(value: float) -> None:
    words = row_words.figure(value)
    assert len(words) <= (6 if value >= 0 and abs(value) < 1e100 else 8)
    unit = {"k": 1e3, "M": 1e6, "G": 1e9}.get(words[-1], 1.0)
    assert math.isclose(float(words.rstrip("kMG")) * unit, value, rel_tol=0.6, abs_tol=1e-300)


@given(
    some.lists(some.floats(allow_nan=False, allow_infinity=False), max_size=40),
    some.integers(0, 12),
)
def test_a_shape_rises_where_the_numbers_do(values: list[float], width: int) -> None:
    shape = row_words.shape(values, width)
    assert len(shape) == (min(width, len(values)) if len(values) > 1 else 0)
    assert set(shape) <= set(row_words.BARS)
    ordered = row_words.shape(sorted(values), width)
    assert list(ordered) == sorted(ordered, key=row_words.BARS.index)


def test_a_refused_run_keeps_the_site_s_words_after_its_cause_was_read(runs: Runs) -> None:
    run = a_run(state=State.REFUSED, reason="Invalid account", job_id=None)
    runs.history.begin(run)
    assert runs.why(run.id)[0].id == "refused"
    assert row_words.news(runs.history.get(run.id), NOW) == "Invalid account"
