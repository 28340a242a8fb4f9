"""`lumitui try`, a job for minutes, and `lumitui debug`, which holds its nodes for a shell."""

from contextlib import closing
from pathlib import Path

import pytest

from lumitui.app.job.spec import JobSpec, changed
from lumitui.app.launch.compose import compose
from lumitui.app.launch.trial import debug_of, trial_of
from lumitui.app.runs import InputError, Runs, State
from lumitui.remote.site import walltime
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.sites.lumi_job import LUMI, job
from tests.support.jobs.small_jobs import finish, wait_until
from tests.support.program.command_line import (
    CLUSTER,
    LAPTOP,
    Here,
    envelope,
    history,
    lt,
    told,
    write,
)
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

RANKS = CLUSTER | {"launcher": "srun", "strategy": "ddp", "gpus_per_node": 2, "proof": "on"}
"""Two ranks on the mini cluster."""


def test_it_has_the_jobs_resources_and_environment_and_starts_no_program() -> None:
    spec = job(nodes=4, partition="standard-g", chain=4, relaunch=2, time="12:00:00",
               after="vit-1n", trainer="ddp", script=None, env={"A": "b"})  # fmt: skip
    held = debug_of(spec, LUMI, 1800, 1200)
    assert (held.partition, held.nodes, held.time, held.debug) == (
        "dev-g", 4, "00:30:00", "00:20:00"
    )  # fmt: skip
    assert held.name.endswith("-debug") and held.env == {"A": "b"} and held.after is None
    launch = compose(held, LUMI)
    assert launch.layout.masks == compose(changed(spec, {"after": None}, ""), LUMI).layout.masks
    assert "ddp.py" not in launch.script and "lumitui_debug 1200" in launch.script
    assert "#SBATCH --signal=B:USR1@60" in launch.script, "its end is no failure"


def test_without_a_debug_partition_that_takes_it_the_jobs_own_is_taken() -> None:
    spec = job(partition="standard-g", nodes=4)
    for site in (
        LUMI.model_copy(update={"partitions": {"standard-g": LUMI.partitions["standard-g"]}}),
        LUMI,
    ):
        seconds = 1800 if site is not LUMI else 4 * 3600  # longer than the debug partition gives
        assert debug_of(spec, site, seconds, 600).partition == "standard-g"
    assert debug_of(job(partition="standard-g", nodes=64), LUMI, 1800, 600).partition == (
        "standard-g"
    )


def test_what_cannot_be_held_is_refused(here: Here, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least five minutes"):
        debug_of(job(), LUMI, 60, 600)
    with pytest.raises(InputError, match="excludes `chain:`"):
        job(debug="00:10:00", chain=2)
    path = str(write(tmp_path / "job.yaml", LAPTOP))
    told(here("debug", path, "--yes"), 2, "has no queue")
    told(here("debug", path, "--yes", "--time", "soon"), 2, "'soon' is not a duration")


@pytest.mark.cluster
@pytest.mark.both_slurms
def test_a_shell_goes_there_until_it_is_cancelled(
    cluster: Cluster, home: Home, tmp_path: Path
) -> None:
    home.add_cluster(cluster)
    path = write(tmp_path / "job.yaml", RANKS, "env: {WORDS: here}")
    done = lt(home, "debug", str(path), "--yes", "--time", "5m")
    assert done.returncode == 0, done.stderr
    run_id = done.stdout.strip()
    assert "billed at most" in done.stderr and f"lumitui shell {run_id}" in done.stderr
    (row,) = history(home)
    assert row["state"] == "running" and row["note"] == "#debug"

    def variables() -> str:
        said = lt(home, "shell", run_id, "--rank", "1", "--", "sh", "-c", "echo $RANK-$WORDS")
        assert said.returncode == 0, said.stderr
        return "" if "found no process" in said.stderr else said.stdout.strip()

    wait_until(lambda: variables() == "1-here", what="a rank's environment")
    with closing(Runs(home.settings)) as runs:

        def ranks() -> int:
            runs.refresh()
            return len(runs.proof(runs.history.get(run_id)).rows)

        wait_until(lambda: ranks() == 2, what="what the ranks found")
        assert lt(home, "cancel", run_id, "--yes").returncode == 0
        assert finish(runs, runs.history.get(run_id)).state is State.CANCELLED


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.both_slurms
def test_it_ends_well_once_nobody_has_a_shell(cluster: Cluster, home: Home, tmp_path: Path) -> None:
    home.add_cluster(cluster)
    path = write(tmp_path / "job.yaml", RANKS)
    done = lt(home, "debug", str(path), "--yes", "--time", "10m", "--idle", "1m")
    run_id = done.stdout.strip()
    # Longer than the idle minute: as long as it is open, the job goes on.
    assert lt(home, "shell", run_id, "--", "sleep", "100").returncode == 0
    with closing(Runs(home.settings)) as runs:
        ended = finish(runs, runs.history.get(run_id))
        assert ended.state is State.DONE and ended.rc == 0
        assert ended.ended and ended.started and 150 < ended.ended - ended.started < 280
        assert b"no shell was open for 60 s" in runs.read_log(run_id)[1]


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
