"""The time between the stop signal and the time limit, beside what saves take."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.job.spec import JobSpec, parse_job
from lumitui.app.job.stop_lead import lead_of, longer_signal, needed, short_lead


def job(**changes: str) -> JobSpec:
    """Return a job of a bundled trainer."""
    known = {"name": "t", "site": "lumi", "partition": "small-g", "time": "01:00:00"}
    program = {} if "script" in changes else {"trainer": "ddp"}
    return parse_job("\n".join(f"{k}: '{v}'" for k, v in (known | program | changes).items()), "t")


@given(st.floats(0.001, 1e4))
def test_three_saves_fit_into_the_lead(seconds: float) -> None:
    assert needed(seconds) >= max(60, 3 * seconds + 30)
    assert needed(seconds) < max(60, 3 * seconds + 30) + 10.001


@pytest.mark.parametrize(
    ("spec", "slowest", "signal"),
    [
        (job(), None, None),
        (job(), 9.0, None),
        (job(), 40.0, "USR1@150"),
        (job(signal="USR1@300"), 40.0, None),  # a person's lead never becomes shorter
        (job(signal="USR2@90"), 40.0, "USR2@150"),
        (job(time="00:04:00"), 400.0, "USR1@120"),  # at most half of the time limit
        (job(script="train.py", signal="USR1@60"), 400.0, None),
    ],
)
def test_the_signal_comes_as_early_as_the_saves_need(
    spec: JobSpec, slowest: float | None, signal: str | None
) -> None:
    assert longer_signal(spec, slowest) == signal


def test_a_running_job_is_told_of_saves_that_take_more_than_half_of_the_lead() -> None:
    assert lead_of(job()) == 60 and lead_of(job(script="train.py")) is None
    assert short_lead(job(), 30.0) == short_lead(job(), None) == ""
    assert short_lead(job(), 31.0).startswith("up to 31 s, more than half of the 60 s between ")
    assert short_lead(job(script="train.py"), math.inf) == ""
