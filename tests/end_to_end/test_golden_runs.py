"""Every golden job is also run: the same bytes, on the mini cluster, to the end."""

from pathlib import Path

import pytest

from lumitui.app.follow.results.summary import summarize
from lumitui.app.job.spec import changed
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.guide.scripts import NAMES, SCRIPTS, Script
from tests.support.jobs.sites.golden_jobs import job_of, launch_of
from tests.support.jobs.small_jobs import finish
from tests.support.servers.cluster import Cluster
from tests.support.systems.resources import put_resources

NOT_HERE = ("--numa-binding=exclusive", "lumitui_preflight")
"""What CPU torch cannot do, or not fast; minilumi's profile says so."""


@pytest.fixture(scope="module")
def resources(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Put what the guide's setup copies where the legacy jobs look: a venv, two folders."""
    put_resources(cluster, tmp_path_factory.mktemp("environment"))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_a_golden_job_trains(
    cluster_runs: Runs, resources: None, tmp_path: Path, script: Script
) -> None:
    runs = cluster_runs
    spec = changed(job_of(script), {"site": "minilumi"}, "minilumi")
    preview = runs.preview(spec, tmp_path)
    golden = launch_of(script).script.splitlines()
    left_out = [line for line in golden if line not in preview.launch.script.splitlines()]
    assert all(any(word in line for word in NOT_HERE) for line in left_out)
    run = finish(runs, runs.send(preview), 500)
    log = runs.read_log(run.id)[1].decode()
    assert run.state is State.DONE, f"{run.reason}\n{log}"
    summary = summarize(runs.history.metrics.of(run.id))
    assert (summary.world_size, summary.steps) == (script.world_size, 3)
