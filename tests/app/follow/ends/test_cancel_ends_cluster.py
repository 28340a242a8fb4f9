"""A cancel ends a run in each phase of its job, and no attempt trains after a requeue.

The nodes' epilog takes some seconds, in which a job is COMPLETING: Slurm says so of one that ends
and of one that goes back into the queue.
"""

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import OutcomeUnknown
from tests.support.jobs.chained_runs import chained, hurry
from tests.support.jobs.endings import accident, ended_daemon, in_shell, opened, queue, send
from tests.support.jobs.small_jobs import finish, hello_job, wait_until
from tests.support.servers.cluster import Cluster

pytestmark = pytest.mark.cluster

CHAINS = ("back", "waits", "held", "training", "meanwhile")
"""The phases of a run with `chain:`; the other ones have none."""
PHASES = ("pending", "running", "requeued", "undone", "ended", "between", *CHAINS)
FAILS = """#!/bin/bash
echo trained
mkdir -p "$RUN_DIR/checkpoints"
: >"$RUN_DIR/checkpoints/$RANDOM"
until [[ -e $RUN_DIR/go-on ]]; do sleep 0.2; done
exit 9
"""
"""A program that fails, and is launched again."""


SLOW = pytest.mark.slow


@pytest.fixture(params=[6, *(pytest.param(seconds, marks=SLOW) for seconds in (0, 2, 10))])
def epilog(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[int]:
    """Let each node take so many seconds after a job before it is done with it."""
    with epilogs(cluster, request.param):
        yield request.param


@contextmanager
def epilogs(cluster: Cluster, seconds: int) -> Iterator[None]:
    config, script = cluster.root / "etc" / "slurm.conf", cluster.root / "etc" / "epilog"
    text = config.read_text()
    script.write_text(f"#!/bin/sh\nexec sleep {seconds}\n")
    script.chmod(0o755)
    config.write_text(f"{text}Epilog={script}\n" if seconds else text)
    assert cluster.admin("scontrol", "reconfigure").returncode == 0
    try:
        yield
    finally:
        config.write_text(text)
        assert cluster.admin("scontrol", "reconfigure").returncode == 0


def trained(cluster: Cluster, run: Run) -> list[int]:
    """Return the attempts whose programs ran."""
    said = in_shell(cluster, f"grep -lE 'trained|rank 0' {run.folder}/attempt-*.out || true")
    return sorted(int(name.rpartition("-")[2].partition(".")[0]) for name in said.split())


def begin(runs: Runs, cluster: Cluster, folder: Path, phase: str) -> Run:
    """Bring a run's job into a phase, as far as that does not pass by itself."""
    job: dict[str, object] = {
        "name": phase,
        "sbatch": ["--begin=now+1hour"] if phase == "pending" else [],
    }
    if phase in CHAINS:
        return chained(runs, folder / "c", "wait 0" if phase == "training" else "hold 0 0", **job)
    if phase == "between":
        (folder / "f").mkdir()
        (folder / "f" / "fails").write_text(FAILS)
        (folder / "f" / "fails").chmod(0o755)
        job |= {"script": "fails", "relaunch": 5, "container": {"none": True}, "proof": "off"}
        job |= {"cpus_per_task": 1, "memory": "400M", "resume": ["--resume"]}
        return runs.send(runs.preview(hello_job(**job), folder / "f"))
    how = "until-told" if phase == "ended" else "again-0"
    return send(runs, folder / "p", how, **job)


def admin(cluster: Cluster, *words: str) -> None:
    done = cluster.admin("scontrol", *words)
    assert done.returncode == 0, done.stderr


def bring(cluster: Cluster, run: Run, phase: str, epilog: int) -> None:
    """Bring the run's job into its phase."""
    job = run.job_id or ""
    if phase == "pending":
        return
    wait_until(lambda: trained(cluster, run) == [1], 15, f"{phase} runs")
    if phase in ("back", "waits"):
        in_shell(cluster, f": >{run.folder}/go-on-1")
    if phase in ("ended", "between"):
        in_shell(cluster, f": >{run.folder}/go-on")
    if phase in ("requeued", "held"):
        admin(cluster, "requeuehold" if phase == "held" else "requeue", job)
    if phase in ("ended", "requeued", "back") and epilog:
        wait_until(lambda: queue(cluster, run) == "COMPLETING", 15, f"{phase} is completing")
    if phase in ("waits", "held"):
        words = ("PENDING", "REQUEUE_HOLD", "SPECIAL_EXIT")
        wait_until(lambda: queue(cluster, run) in words, 15, f"{phase} waits")


def test_no_attempt_trains_after_a_cancel(cluster: Cluster, tmp_path: Path, epilog: int) -> None:
    with opened(cluster, tmp_path) as runs:
        sent = {phase: begin(runs, cluster, tmp_path, phase) for phase in PHASES}
        try:
            for phase, run in sent.items():
                bring(cluster, run, phase, epilog)
                if phase == "meanwhile":
                    # It goes back into the queue by itself in the moment of the cancel.
                    in_shell(cluster, f": >{run.folder}/go-on-1")
                    time.sleep(0.3)
                runs.cancel(run.id)
                if phase == "undone":
                    # Somebody else, who does not know of the cancel, in a moment or later.
                    cluster.admin("scontrol", "requeue", run.job_id or "")
            _let_go_on(cluster, list(sent.values()))
            for phase, run in sent.items():
                assert trained(cluster, run) == ([] if phase == "pending" else [1]), phase
                # Two of them may end by themselves in the moment of the cancel.
                alone = {"ended": State.DONE, "between": State.FAILED}
                state = finish(runs, run, 60).state
                assert state in (alone.get(phase), State.CANCELLED), phase
        finally:
            cluster.login("scancel " + " ".join(run.job_id or "" for run in sent.values()))


def test_a_cancel_that_did_not_arrive_is_sent_again_by_the_next_refresh(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Only the mark is there: the controller was away."""
    away = "echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1"
    with opened(cluster, tmp_path) as runs:
        run = send(runs, tmp_path / "p", "until-told")
        wait_until(lambda: trained(cluster, run) == [1], 30, "it runs")
        try:
            with accident(cluster, "squeue", away), accident(cluster, "scancel", away):
                with pytest.raises(OutcomeUnknown) as raised:
                    runs.cancel(run.id)
                assert raised.value.exit_code == 6
                assert (
                    f"The cancellation of {run.id} is not yet confirmed: " in raised.value.message
                )
                assert "Unable to contact" in raised.value.message
            assert queue(cluster, run) == "RUNNING"
            runs.refresh("minilumi")
            wait_until(lambda: queue(cluster, run) == "CANCELLED", 20)
            assert finish(runs, run, 30).state is State.CANCELLED
        finally:
            cluster.login(f"scancel {run.job_id}")


@pytest.mark.slow
def test_a_controller_that_lost_its_state_gave_the_id_to_another_job(
    cluster: Cluster, tmp_path: Path
) -> None:
    config = cluster.root / "etc" / "slurm.conf"
    text = config.read_text()
    with opened(cluster, tmp_path) as runs:
        run = send(runs, tmp_path / "p", "until-told")
        wait_until(lambda: trained(cluster, run) == [1], 30, "it runs")
        runs.refresh("minilumi")
        ended_daemon(cluster, "slurmctld")
        for entry in (cluster.root / "state").iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        config.write_text(re.sub(r"FirstJobId=\d+", f"FirstJobId={run.job_id}", text))
        try:
            assert cluster.admin("slurmctld").returncode == 0
            options = f"-A {cluster.account} -p small-g -t 5 -o /dev/null -D {run.folder}"
            submit = f"sbatch --parsable {options} --wrap 'exec sleep 300'"
            wait_until(lambda: cluster.login("squeue").returncode == 0, 30)
            assert in_shell(cluster, submit) == run.job_id
            with pytest.raises(OutcomeUnknown) as raised:
                runs.cancel(run.id)
            assert "belongs to another job (wrap), which keeps running" in raised.value.hint
            assert queue(cluster, run) in ("PENDING", "RUNNING", "CONFIGURING")
        finally:
            cluster.login(f"scancel {run.job_id}")
            config.write_text(text)
            assert cluster.admin("scontrol", "reconfigure").returncode == 0


def _let_go_on(cluster: Cluster, sent: list[Run]) -> None:
    """Start each job that waits, and wait until the queue has none of them any more."""

    def over() -> bool:
        rows = [(run, queue(cluster, run)) for run in sent]
        for run, word in rows:
            if word in ("REQUEUE_HOLD", "SPECIAL_EXIT"):
                cluster.admin("scontrol", "release", run.job_id or "")
        hurry(cluster, sent)
        live = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "REQUEUE_HOLD", "SPECIAL_EXIT")
        return not any(word in live for _, word in rows)

    wait_until(over, 60, "all ended")
