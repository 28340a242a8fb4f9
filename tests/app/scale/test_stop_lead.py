"""A resubmission stops its job as early as the saves that were measured need."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.explain import run_overview
from lumitui.app.follow.results.summary import summarize
from lumitui.app.history.run import Run
from lumitui.app.job.spec import parse_job
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run

JOB = (
    "name: t\nsite: lumi\naccount: project_462000001\npartition: standard-g\n"
    "time: '01:00:00'\ntrainer: ddp\nnodes: 2\nargs: [--batch-size, 16]\n"
)


def mine(project: Path, **changes: object) -> Run:
    """Return a run at LUMI that can be submitted again."""
    spec = parse_job(JOB, "t")
    return a_run(site="lumi", spec=spec, project=str(project), snapshot="s", **changes)


@pytest.fixture
def run(runs: Runs, tmp_path: Path) -> Run:
    """A run whose slowest save took 41 s."""
    found = mine(tmp_path, state=State.RUNNING, started=1.0, updated=1.0)
    runs.history.begin(found)
    saves = [{"event": "checkpoint", "step": n, "save_s": took} for n, took in ((1, 3), (2, 41.0))]
    lines = [*saves, {"event": "end", "save_s": 99.0}, {"step": 3, "loss": 1}]
    runs.history.metrics.add(found.id, [json.dumps(line).encode() for line in lines])
    return found


def test_slow_saves_bring_the_stop_signal_forward(runs: Runs, run: Run) -> None:
    made = runs.plan_resubmission(run.id)
    assert "#SBATCH --signal=B:USR1@160\n" in made.preview.launch.script
    rows = {row.what: (row.before, row.after) for row in made.plan.changes}
    assert rows["stop signal"] == ("USR1, 60 s before the limit", "USR1, 160 s before the limit")
    # What a person asks for counts, and a child without saves takes over what is known.
    own = runs.plan_resubmission(run.id, settings=["signal=USR1@70"])
    assert own.preview.launch.spec.signal == "USR1@70"
    child = a_run(
        "child-1", parent=run.id, site="lumi", spec=run.spec, project=run.project, snapshot="s"
    )
    runs.history.begin(child)
    assert runs.plan_resubmission(child.id).preview.launch.spec.signal == "USR1@160"


def test_fast_saves_change_nothing(runs: Runs, run: Run) -> None:
    other = replace(run, id="other-1")
    runs.history.begin(other)
    line = {"event": "checkpoint", "step": 1, "save_s": 2.0}
    runs.history.metrics.add(other.id, [json.dumps(line).encode()])
    made = runs.plan_resubmission(other.id)
    assert made.preview.launch.spec.signal is None
    assert "stop signal" not in {row.what for row in made.plan.changes}


def test_a_running_job_says_that_its_saves_are_too_slow(runs: Runs, run: Run) -> None:
    totals = summarize(runs.history.metrics.of(run.id))
    rows = dict(run_overview.rows(run, 2.0, None, totals, None))
    assert rows["saves"].startswith("up to 41 s, more than half of the 60 s between the stop ")
