"""`lumitui try`: a job for minutes on one node, before it costs hours."""

from pathlib import Path

import pytest

from lumitui.app.job.spec import JobSpec, changed
from lumitui.app.launch.compose import compose
from lumitui.app.launch.trial import trial_of
from lumitui.app.runs import Runs
from lumitui.remote.site import walltime
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.sites.lumi_job import LUMI, job
from tests.support.program.command_line import CLUSTER, LAPTOP, Here, envelope, lt, told, write
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

SITES = Sites([BUILT_IN])


@pytest.mark.parametrize("name", [name for name in SITES.names() if name != "laptop"])
def test_each_site_has_a_partition_for_trials_that_takes_one(name: str) -> None:
    site = SITES.load(name)
    own = next(iter(site.partitions))
    spec = job(site=name, partition=own, account="p", gpus_per_node=None, launcher="srun")
    trial = trial_of(spec, site)
    partition = site.partitions[trial.partition]
    assert partition.trials and trial.nodes == 1
    assert 0 < walltime.seconds_of(trial.time) <= min(600, walltime.seconds_of(partition.max_time))


def test_a_trial_has_the_ranks_and_the_batch_of_the_job_and_two_steps() -> None:
    spec = job(nodes=16, partition="standard-g", chain=4, relaunch=2, time="12:00:00",
               after="vit-1n", trainer="ddp", script=None,
               args=["--batch-size", "64", "--epochs=3"])  # fmt: skip
    trial = trial_of(spec, LUMI)
    assert (trial.partition, trial.nodes, trial.chain, trial.relaunch) == ("dev-g", 1, 1, 0)
    assert trial.after is None and trial.time == "00:10:00"
    assert trial.args == ("--batch-size", "64", "--epochs=3", "--steps", "2")
    whole = compose(changed(spec, {"after": None}, ""), LUMI).layout
    assert compose(trial, LUMI).layout.masks == whole.masks
    assert trial_of(changed(spec, {"time": "00:02:00"}, ""), LUMI).time == "00:02:00"


def test_where_no_partition_is_for_trials_the_jobs_own_is_taken() -> None:
    spec = job(partition="standard-g", name="x" * 100)
    ordinary = {name: each.model_copy(update={"trials": False})
                for name, each in LUMI.partitions.items()}  # fmt: skip
    trial = trial_of(spec, LUMI.model_copy(update={"partitions": ordinary}))
    assert trial.partition == "standard-g" and len(trial.name) == 100


@pytest.mark.cluster
def test_a_trial_is_sent_proved_and_judged(cluster: Cluster, home: Home, tmp_path: Path) -> None:
    home.add_cluster(cluster)
    ranks = {"strategy": "ddp", "launcher": "srun", "proof": "on", "nodes": 2,
             "partition": "standard-g", "gpus_per_node": 8}  # fmt: skip
    path = write(tmp_path / "job.yaml", CLUSTER | ranks)
    done = lt(home, "try", str(path), "--yes", "--json")
    assert done.returncode == 0, done.stderr
    data = envelope(done)["data"]
    assert (data["binding"], data["nodes"], data["state"]) == ("proved", 1, "done")
    assert "Binding: proved" in done.stderr and f"lumitui submit {path}" in done.stderr


def test_a_trial_that_fails_says_why(here: Here, tmp_path: Path) -> None:
    path = write(tmp_path / "job.yaml", LAPTOP | {"env": {"FAIL_RANK": "0"}})
    told(here("try", str(path), "--yes"), 5, "ended as failed", "lumitui why")
    spec = JobSpec.model_validate(LAPTOP | {"grid": {"--lr": ["1", "2"]}})
    assert trial_of(spec, SITES.load("laptop")).args == ("--lr", "1")


def test_a_trial_is_not_advised_against_the_partition_that_lumitui_chose(
    runs: Runs, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    keys = CLUSTER | {"site": "lumi", "memory": "60G", "script": "train.py"}
    path = write(tmp_path / "job.yaml", keys | {"partition": "dev-g"})
    assert "lumi-dev-g" in {one.rule for one in runs.preview(path).findings}
    for preview in (runs.trial(path), runs.debug(path)):
        assert preview.launch.spec.partition == "dev-g"
        assert "lumi-dev-g" not in {one.rule for one in preview.findings}
