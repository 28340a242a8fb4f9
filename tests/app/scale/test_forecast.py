"""What a job will probably be billed comes from an earlier run of the same work."""

from dataclasses import replace

from lumitui.app.job.launch import Launch
from lumitui.app.runs import Runs
from lumitui.app.scale.forecast import forecast
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.trained_runs import train, trained


def launch_like(nodes: int, **changes: object) -> Launch:
    """Return the launch of a training on `nodes` nodes."""
    run = trained("x", nodes)
    spec = run.spec.model_copy(update=changes)
    return Launch(spec, "", run.layout, run.price)


def test_a_run_of_the_same_size_says_what_it_took(runs: Runs) -> None:
    runs.history.begin(trained("early", 2, created=1.0, ended=1400.0))
    runs.history.begin(trained("late", 2, created=2.0))
    runs.history.begin(trained("failed", 2, created=3.0, state=State.FAILED))
    found = forecast(launch_like(2), runs.history, runs.scaling)
    assert found is not None
    assert (found.run, found.other_size) == ("late", False)
    assert found.amount == 8.0 * 100 / 3600
    longer = forecast(launch_like(2, time="2-00:00:00"), runs.history, runs.scaling)
    assert longer == found, "the time limit changes nothing of the work"


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
    assert 0 < found.amount < launch_like(4).price.amount
    assert one.layout.nodes == 1
