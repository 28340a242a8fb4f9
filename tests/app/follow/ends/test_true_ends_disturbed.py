"""Ends while the cluster itself is disturbed: a node killed, accounting and controller away.

In order, each test leaves the cluster as it was; jobs are forgotten by squeue after ten seconds.
"""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import OutcomeUnknown
from tests.support.jobs.endings import (
    accident,
    bring_up,
    ended_daemon,
    in_shell,
    kill_node,
    opened,
    pid_of,
    queue,
    send,
    start_again,
    text_of,
    until_it_says,
)
from tests.support.jobs.small_jobs import finish, wait_until
from tests.support.servers.cluster import Cluster

pytestmark = pytest.mark.cluster

NODE = "nid005006"


@pytest.fixture
def runs(cluster: Cluster, tmp_path: Path) -> Iterator[Runs]:
    """A core of its own; every daemon that was ended runs again afterwards."""
    with opened(cluster, tmp_path) as core:
        yield core
        bring_up(cluster)
        jobs = [run.job_id for run in core.history.page() if run.job_id]
        cluster.login(f"scancel {' '.join(jobs)}")


@pytest.fixture
def forgetful(cluster: Cluster) -> Iterator[None]:
    """Let slurmctld forget a job two seconds after its end; it checks every ten (MinJobAge)."""
    config = cluster.root / "etc" / "slurm.conf"
    text = config.read_text()
    config.write_text(text.replace("MinJobAge=300", "MinJobAge=2"))
    assert cluster.admin("scontrol", "reconfigure").returncode == 0
    yield
    config.write_text(text)
    assert cluster.admin("scontrol", "reconfigure").returncode == 0


def on_a_killed_node(runs: Runs, cluster: Cluster, folder: Path) -> tuple[Run, Run]:
    """Return a run that may be requeued and one that may not, their node killed."""
    there = [f"--nodelist={NODE}"]
    again = send(runs, folder / "p", "again-0", sbatch=there)
    last = send(runs, folder / "p", "rank-3", gpus_per_node=1, sbatch=[*there, "--no-requeue"])
    for run in (again, last):
        until_it_says(runs, run, f"rank 0 of {run.name}, attempt 1")
    runs.refresh("minilumi")
    kill_node(cluster, NODE)
    return again, last


def check_killed_node(runs: Runs, cluster: Cluster, again: Run, last: Run) -> None:
    """Check what is known about both when Slurm has noticed, and after the node is back."""
    wait_until(lambda: queue(cluster, last) == "NODE_FAIL", 90)
    runs.refresh("minilumi")
    # At once: squeue's NODE_FAIL is not shown where the job runs again.
    lost = runs.history.get(last.id)
    assert (lost.state, lost.word, lost.rc, lost.attempt) == (
        State.NODE_FAILED, "NODE_FAIL", None, 1
    )  # fmt: skip
    assert lost.reason == "NodeDown"
    assert lost.started
    assert lost.ended
    assert lost.started <= lost.ended <= time.time() + 2  # whole seconds
    assert runs.why(last.id)[0].id == "node-failed"
    waiting = runs.history.get(again.id)
    assert (waiting.state, waiting.started, waiting.rc) == (State.QUEUED, None, None)
    bring_up(cluster)
    start_again(cluster, again)
    done = finish(runs, again, 90)
    assert (done.state, done.rc, done.attempt) == (State.DONE, 0, 2)
    assert "rank 1 of again-0, attempt 1" in text_of(runs, done, 1)
    assert "rank 1 of again-0, attempt 2" in text_of(runs, done, 2)


@pytest.mark.slow
def test_a_node_is_killed(runs: Runs, cluster: Cluster, tmp_path: Path) -> None:
    again, last = on_a_killed_node(runs, cluster, tmp_path)
    runs.refresh("minilumi")
    assert runs.history.get(last.id).state is State.RUNNING  # nobody has noticed yet
    # An administrator does, before SlurmdTimeout is over.
    cluster.admin("scontrol", "update", f"nodename={NODE}", "state=down", "reason=killed")
    check_killed_node(runs, cluster, again, last)


@pytest.mark.slow
def test_a_node_is_killed_and_slurm_notices_by_itself(
    runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    again, last = on_a_killed_node(runs, cluster, tmp_path)
    check_killed_node(runs, cluster, again, last)


@pytest.mark.slow
def test_a_laptop_sleeps_while_jobs_end_and_are_forgotten(
    runs: Runs, cluster: Cluster, forgetful: None, tmp_path: Path
) -> None:
    project = tmp_path / "p"
    ended, late = send(runs, project, "until-told"), send(runs, project, "until-told")
    for run in (ended, late):
        until_it_says(runs, run, "rank 1 of until-told")
    runs.refresh("minilumi")
    # From here nobody refreshes.
    well, failed = send(runs, project, "well"), send(runs, project, "rank-3", gpus_per_node=4)
    # A warning says what keeps the site from being asked, whatever else was wanted.
    told: list[str] = []
    with accident(cluster, "squeue", "echo 'squeue: error: no' >&2; exit 1"):
        with pytest.raises(OutcomeUnknown, match="squeue gave no list"):
            runs.cancel(ended.id, warn=told.append)
        runs.prune("minilumi", dry=True, warn=told.append)
    assert told == ["minilumi: squeue: error: no"] * 2
    wait_until(lambda: known_to_accounting(cluster, ended) == "CANCELLED", 60)
    ended_daemon(cluster, "slurmdbd")
    in_shell(cluster, f"scancel {late.job_id}")
    everyone = (well, failed, ended, late)
    wait_until(lambda: not any(queue(cluster, run) for run in everyone), 60, "all forgotten")

    # Awake: no accounting at all, in the words of a real site that keeps none.
    with accident(cluster, "sacct", without_accounting(cluster)):
        news = runs.refresh("minilumi")
    assert "accounting storage is disabled" in " ".join(news.warnings)
    for run, state, rc in ((well, State.DONE, 0), (failed, State.FAILED, 7)):
        known = runs.history.get(run.id)
        assert (known.state, known.rc) == (state, rc)
        assert known.reason.startswith("from the exit file: accounting cannot be queried")
        assert known.started
        assert known.ended
        assert known.started <= known.ended
    assert runs.history.get(failed.id).failed_rank == 3
    # slurmdbd is away: a run without an exit file is unknown, and says so.
    news = runs.refresh("minilumi")
    assert "Connection refused" in " ".join(news.warnings)
    before = runs.history.get(late.id)
    for run in (ended, late):
        known = runs.history.get(run.id)
        assert known.state is State.UNKNOWN
        assert known.reason.startswith("unknown since ")
        assert "the job left the queue; accounting cannot be queried" in known.reason
        assert runs.why(run.id)[0].id == "unknown-end"
    # slurmdbd is back: each run ends with its own times, however late.
    bring_up(cluster)
    last = finish(runs, late, 120)
    first = runs.history.get(ended.id)
    for known in (first, last):
        assert (known.state, known.word, known.rc) == (State.CANCELLED, "CANCELLED", None)
        assert known.reason.startswith("by ")
        assert known.started
        assert known.ended
        assert known.started < known.ended <= before.updated + 120
    assert runs.history.unfinished() == []


def known_to_accounting(cluster: Cluster, run: Run) -> str:
    """Return sacct's word for the run's job."""
    shown = cluster.admin("sacct", "-n", "-P", "-X", "-j", run.job_id or "", "-o", "State")
    return shown.stdout.partition(" ")[0].strip()


def without_accounting(cluster: Cluster) -> str:
    """Return sh that runs a command as on a site that keeps no accounting."""
    lines = (cluster.root / "etc" / "slurm.conf").read_text().splitlines(keepends=True)
    config = cluster.root / "etc" / "slurm-without-accounting.conf"
    kept = [line for line in lines if not line.startswith("AccountingStor")]
    config.write_text("".join([*kept, "AccountingStorageType=accounting_storage/none\n"]))
    return f'SLURM_CONF={config} exec "$@"'


def without_controller(
    runs: Runs, cluster: Cluster, folder: Path, *, ends: bool = False, stalled: bool = False
) -> Run:
    """Return a run that was running when slurmctld ended; with `ends` it has ended since."""
    run = send(runs, folder / "p", "until-told")
    until_it_says(runs, run, "rank 1 of until-told")
    assert runs.refresh("minilumi").warnings == ()
    before = runs.history.get(run.id)
    assert before.state is State.RUNNING
    if stalled:
        os.kill(pid_of(cluster, "slurmctld"), signal.SIGSTOP)
    else:
        ended_daemon(cluster, "slurmctld")
    if ends:
        in_shell(cluster, f"touch {run.folder}/go-on")
        in_shell(cluster, f"until [ -e {run.folder}/attempt-1.exit ]; do sleep 0.1; done")
    # The waiting person is warned once, and waits on.
    told: list[str] = []
    waited = runs.wait(run.id, timeout=3, stop=lambda: len(told) > 1, warn=told.append)
    assert len(told) == 1
    words = "Socket timed out" if stalled else "Unable to contact slurm controller"
    assert words in told[0]
    # An exit file may be there, but Slurm may requeue the job: the state stays.
    assert (waited.state, waited.updated, waited.ended) == (State.RUNNING, before.updated, None)
    return before


def finish_with_controller(runs: Runs, cluster: Cluster, before: Run) -> None:
    """Bring slurmctld back, and check the run's end."""
    bring_up(cluster)
    assert runs.refresh("minilumi").warnings == ()
    in_shell(cluster, f"touch {before.folder}/go-on")
    done = finish(runs, before, 180)
    assert (done.state, done.rc, done.word) == (State.DONE, 0, "COMPLETED")
    assert done.started == before.started
    assert done.started
    assert done.ended
    assert done.started < done.ended


@pytest.mark.slow
def test_the_controller_is_away(runs: Runs, cluster: Cluster, tmp_path: Path) -> None:
    before = without_controller(runs, cluster, tmp_path)
    finish_with_controller(runs, cluster, before)


@pytest.mark.slow
def test_the_controller_is_away_while_a_job_ends(
    runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    # slurmstepd tries for up to a minute to report it.
    before = without_controller(runs, cluster, tmp_path, ends=True)
    finish_with_controller(runs, cluster, before)


@pytest.mark.slow
def test_the_controller_is_stalled(runs: Runs, cluster: Cluster, tmp_path: Path) -> None:
    # It takes connections and answers none: squeue gives up after MessageTimeout, ten seconds.
    try:
        before = without_controller(runs, cluster, tmp_path, stalled=True)
    finally:
        os.kill(pid_of(cluster, "slurmctld"), signal.SIGCONT)
    finish_with_controller(runs, cluster, before)
