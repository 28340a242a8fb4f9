"""A full queue (MaxJobCount): sbatch itself tries again for two minutes, and is outwaited."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.scheduler_bench import Bench
from tests.support.jobs.small_jobs import wait_until
from tests.support.servers.cluster import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

SAYS = "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying"


@contextmanager
def full(cluster: Cluster, bench: Bench) -> Iterator[None]:
    """Let the controller take no more jobs than it knows already."""
    for _ in range(2):
        waiting = bench.run("true")
        waiting.submit()
        waiting.cancel()
    conf = cluster.root / "etc" / "slurm.conf"
    before = conf.read_text()
    conf.write_text(f"{before}\nMaxJobCount=2\n")
    try:
        restart(cluster)
        yield
    finally:
        conf.write_text(before)
        restart(cluster)


def restart(cluster: Cluster) -> None:
    """MaxJobCount is read at the start alone (slurm.conf(5))."""
    process = int((cluster.root / "run" / "slurmctld.pid").read_text())
    os.kill(process, signal.SIGTERM)
    wait_until(lambda: not Path(f"/proc/{process}").exists(), 30, "slurmctld ends")
    cluster.admin("slurmctld")
    wait_until(lambda: cluster.admin("scontrol", "ping").returncode == 0, 30, "slurmctld answers")


def test_a_queue_that_stays_full_refuses_the_job(cluster: Cluster, slurm: Bench) -> None:
    with full(cluster, slurm):
        run, began = slurm.run("true"), time.monotonic()
        answer = run.submit()
        took = time.monotonic() - began
        assert answer.state is State.REFUSED, answer
        assert SAYS in answer.message and took > 115
        assert run.here("readlink attempt-1.claim") == "void\n"
    assert slurm.jobs(run) == 0


def test_a_queue_that_gets_room_takes_the_job(cluster: Cluster, slurm: Bench) -> None:
    run = slurm.run("true")
    answers = []
    with full(cluster, slurm):
        sender = threading.Thread(target=lambda: answers.append(run.submit()))
        sender.start()
        said = f"cat {run.submission.folder}/attempt-1.submit/err"
        wait_until(lambda: SAYS in cluster.login(said).stdout, 30, "sbatch waits")
        time.sleep(9)  # it sleeps 1, 2, 3, 4, 5 s … between its tries
    sender.join(150)
    assert [answer.state for answer in answers] == [State.QUEUED]
    assert slurm.jobs(run) == 1
    run.cancel()
