"""A plain MPI program in C, through lumitui: compiled on the site, stopped, and resumed."""

from pathlib import Path

import pytest

from lumitui.app.follow.results.summary import summarize
from lumitui.app.job import examples
from lumitui.app.job.spec import changed, parse_job
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.small_jobs import finish, wait_until
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

pytestmark = pytest.mark.cluster


@pytest.fixture
def runs(home: Home, cluster: Cluster) -> Runs:
    """The core with the mini cluster, on which MPICH's mpirun is the site's."""
    home.add_cluster(cluster)
    profile = home.config / "sites" / "minilumi.yaml"
    text = profile.read_text()
    profile.write_text(
        text.replace("openmpi, command: mpirun.openmpi", "hydra, command: mpiexec.hydra")
    )
    return Runs(home.settings)


@pytest.mark.slow
def test_a_plain_mpi_program_runs_stops_and_resumes(
    runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    site = runs.sites.load("minilumi")
    begin = examples.Beginning(example="mpi", gpus=4)
    text = examples.text_for(site, begin)
    examples.write_all(tmp_path / "job.yaml", text, examples.chosen(begin).files)
    more = {
        "env": {"MPICC": "mpicc.mpich"},
        "container": {"none": True},
        "partition": "small-g",
        "args": ["--steps", "400", "--parts", "2000000"],
    }
    spec = changed(parse_job(text, "job"), more, "job")
    assert spec.launcher == "mpirun"
    run = runs.send(runs.preview(spec, tmp_path))
    wait_until(lambda: (Path(run.folder) / "metrics.jsonl").exists())
    # By the person: they could not remove a file of root's.
    assert cluster.login(f"touch {run.folder}/stop").returncode == 0
    run = finish(runs, run)
    log = runs.read_log(run.id)[1].decode()
    assert (run.state, run.rc) == (State.FAILED, 85), log
    summary = summarize(runs.history.metrics.of(run.id))
    assert summary.world_size == 4
    again = finish(runs, runs.resubmit(runs.plan_resubmission(run.id, start="checkpoint")))
    log = runs.read_log(again.id)[1].decode()
    assert again.state is State.DONE, log
    assert "pi is about 3.14159265" in log and "after step 400 on 4 ranks" in log
    # It went on from its checkpoint: the steps before the stop were not done again.
    steps = [point.step for point in runs.history.metrics.of(again.id) if point.event == "step"]
    assert steps == list(range(summary.steps + 1, 401))
