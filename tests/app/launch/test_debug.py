"""`lumitui debug`: a job that holds its nodes for a shell, and runs nothing."""

from contextlib import closing
from pathlib import Path

import pytest

from lumitui.app.job.spec import changed
from lumitui.app.launch.compose import compose
from lumitui.app.launch.trial import debug_of
from lumitui.app.runs import InputError, Runs, State
from tests.support.jobs.sites.lumi_job import LUMI, job
from tests.support.jobs.small_jobs import finish, wait_until
from tests.support.program.command_line import CLUSTER, LAPTOP, Here, history, lt, told, write
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
