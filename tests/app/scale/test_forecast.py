"""What other sizes would take, and the speedup of those that were measured."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.explain.training_summary import Summary, TrainedRun, speedups
from lumitui.app.job.launch import Launch
from lumitui.app.runs import Runs
from lumitui.app.scale.forecast import forecast
from lumitui.app.scale.scaling.studies import ScalingQuestion
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.trained_runs import lines_of, size_of, train, trained


def launch_like(nodes: int, **changes: object) -> Launch:
    """Return the launch of a training on `nodes` nodes."""
    run = trained("x", nodes)
    spec = run.spec.model_copy(update=changes)
    return Launch(spec, "", run.layout, run.price, global_batch=run.global_batch)


def test_a_run_of_the_same_size_says_what_it_took(runs: Runs) -> None:
    runs.history.begin(trained("early", 2, created=1.0, ended=1400.0))
    runs.history.begin(trained("late", 2, created=2.0))
    runs.history.begin(trained("failed", 2, created=3.0, state=State.FAILED))
    found = forecast(launch_like(2), runs.history, runs.scaling)
    assert found is not None
    assert (found.run, found.runs, found.other_size) == ("late", 2, False)
    # The two took different times, so the amount is an interval.
    assert (found.amount.low, found.amount.high) == (8.0 * 100 / 3600, 8.0 * 400 / 3600)
    longer = forecast(launch_like(2, time="2-00:00:00"), runs.history, runs.scaling)
    assert longer == found, "the time limit changes nothing of the work"
    runs.history.begin(trained("newest", 2, created=4.0, snapshot="fedcba9876543210"))
    alone = forecast(launch_like(2), runs.history, runs.scaling)
    assert alone and (alone.run, alone.runs) == ("newest", 1), "the others had other code"


def test_other_work_says_nothing(runs: Runs) -> None:
    runs.history.begin(trained("one", 2))
    for changes in ({"args": ("--lr", "7")}, {"trainer": "fsdp"}, {"name": "other"}):
        assert forecast(launch_like(2, **changes), runs.history, runs.scaling) is None
    free = replace(launch_like(2), price=replace(launch_like(2).price, amount=0.0))
    assert forecast(free, runs.history, runs.scaling) is None


def test_another_size_says_it_by_its_scaling(runs: Runs) -> None:
    made = train(runs.history, {1: 1000.0, 2: 1940.0})
    found = forecast(launch_like(4), runs.history, runs.scaling)
    assert found is not None and found.other_size and found.run in {run.id for run in made}
    one = runs.history.get(made[0].id)
    assert 0 < found.amount.middle < launch_like(4).price.amount
    assert one.layout.nodes == 1


def summary(speed: float | None, world_size: int | None) -> Summary:
    return Summary(10, 0.1, speed, None, 10.0, world_size, None)


def test_runs_are_compared_with_the_first_that_has_a_throughput() -> None:
    rows = speedups(
        [
            TrainedRun("none", 1, summary(None, 8)),
            TrainedRun("one", 1, summary(1000.0, 8)),
            TrainedRun("four", 4, summary(3160.0, 32)),
            TrainedRun("nodes", 2, summary(1500.0, None)),
        ]
    )
    assert [row.run for row in rows] == ["none", "one", "four", "nodes"]
    assert (rows[0].speed_up, rows[0].efficiency) == (None, None)
    assert (rows[1].speed_up, rows[1].efficiency) == (1.0, 100.0)
    assert rows[2].speed_up == pytest.approx(3.16)
    assert rows[2].efficiency == pytest.approx(79.0)
    assert rows[3].efficiency == pytest.approx(75.0)


_summaries = st.builds(
    summary,
    st.none() | st.floats(min_value=0, allow_infinity=False),
    st.none() | st.integers(0, 10**6),
)


@given(st.lists(st.builds(TrainedRun, st.text(), st.integers(0, 10**6), _summaries)))
def test_odd_summaries_never_raise(runs: list[TrainedRun]) -> None:
    assert [row.run for row in speedups(runs)] == [item.run for item in runs]


def test_a_fixed_number_of_steps_trains_more_on_more_nodes(runs: Runs) -> None:
    run = trained("one", 1)
    fixed = ("--steps", "20")
    spec = run.spec.model_copy(update={"args": (*run.spec.args, *fixed)})
    runs.history.begin(replace(run, spec=spec))
    runs.history.metrics.add("one", lines_of([1000.0] * 20, 8, 256, 60_000))
    launch = launch_like(2, args=(*trained("x", 2).spec.args, *fixed))
    found = forecast(replace(launch, global_batch=512), runs.history, runs.scaling)
    sent = runs.scaling.of("one", ScalingQuestion(as_sent=True))
    size = size_of(sent, 2)
    assert found and size.whole and found.amount.middle == pytest.approx(size.whole.price.middle)
    unknown = forecast(replace(launch, global_batch=None), runs.history, runs.scaling)
    assert unknown is None, "nobody knows how many samples it trains"
