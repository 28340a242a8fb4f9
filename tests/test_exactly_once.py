"""The client killed and the link cut around the submit step: exactly one job, the right id."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lumitui.app.records import Run
from lumitui.app.runs import Runs
from lumitui.app.sending import STEPS
from lumitui.remote.errors import LumiError
from lumitui.remote.scheduler import State
from tests.cluster_fixture import Cluster, LinkProxy
from tests.conftest import Home
from tests.jobs import finish, hello_job, hello_project, wait_until

CLIENT = """
import os, signal, sys, threading, time
from pathlib import Path
from lumitui.app.runs import Runs
from lumitui.app.settings import settings
from lumitui.remote.login import Login
from tests.jobs import hello_job

def report(step, words):
    print(step, flush=True)
    if step == {step!r}:
        os.kill(os.getpid(), signal.SIGKILL)

runs = Runs(settings())
runs.send(runs.preview(hello_job(), Path({project!r})), report=report)
"""


def jobs_named(cluster: Cluster, name: str) -> set[str]:
    queue = cluster.admin("squeue", "-h", "-t", "all", "--name", name, "-o", "%A")
    account = cluster.admin("sacct", "-nPXa", "-S", "now-1hour", "--name", name, "-o", "JobIDRaw")
    return set(queue.stdout.split()) | set(account.stdout.split())


@contextmanager
def slurmctld_stopped(cluster: Cluster) -> Iterator[None]:
    process = int((cluster.root / "run" / "slurmctld.pid").read_text())
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def settled(runs: Runs) -> Run:
    def known() -> bool:
        runs.refresh("minilumi")
        run = runs.history.get("last")
        return run.job_id is not None or run.state.is_final

    wait_until(known, 60, "the submission settles")
    return runs.history.get("last")


def assert_one_job(runs: Runs, cluster: Cluster, run: Run) -> None:
    assert run.job_id is not None, run.reason
    done = finish(runs, run)
    assert done.state is State.DONE
    assert jobs_named(cluster, run.id) == {done.job_id}


def run_client(home: Home, project: Path, step: str) -> "subprocess.Popen[str]":
    code = textwrap.dedent(CLIENT).format(step=step, project=str(project))
    path = os.pathsep.join(p for p in sys.path if p)
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=home.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("step", [step for step in STEPS if step != "begin"])
def test_the_client_is_killed_before_a_step(
    cluster_runs: Runs, cluster: Cluster, home: Home, tmp_path: Path, step: str
) -> None:
    with run_client(home, hello_project(tmp_path / "p"), step) as client:
        client.communicate(timeout=60)
    assert client.returncode == -signal.SIGKILL
    run = settled(cluster_runs)
    if step == "record":
        assert_one_job(cluster_runs, cluster, run)
    else:
        # Before the submit step there is certainly no job, and none can start any more.
        assert run.state is State.NOT_SENT
        assert jobs_named(cluster, run.id) == set()


def test_the_client_is_killed_while_sbatch_runs(
    cluster_runs: Runs, cluster: Cluster, home: Home, tmp_path: Path
) -> None:
    cluster.clear_calls()
    with slurmctld_stopped(cluster):
        client = run_client(home, hello_project(tmp_path / "p"), "never")
        wait_until(lambda: any(c.command == "sbatch" for c in cluster.calls()), 60, "sbatch")
        client.kill()
        client.communicate(timeout=20)
    run = settled(cluster_runs)
    assert_one_job(cluster_runs, cluster, run)


def behind_proxy(home: Home, cluster: Cluster, proxy: LinkProxy) -> Runs:
    home.add_cluster(cluster.behind(proxy))
    return Runs(home.settings)


def test_the_link_is_cut_before_the_submit_step(
    home: Home, cluster: Cluster, tmp_path: Path
) -> None:
    with cluster.proxy() as proxy:
        runs = behind_proxy(home, cluster, proxy)

        def report(step: str, words: str) -> None:
            if step == "submit":
                proxy.cut()

        preview = runs.preview(hello_job(), hello_project(tmp_path / "p"))
        try:
            run = runs.send(preview, report=report)
        except LumiError:
            run = settled(runs)
        if run.state is not State.NOT_SENT:
            assert_one_job(runs, cluster, run)
        assert len(jobs_named(cluster, run.id)) == (run.job_id is not None)
        runs.close()


def test_the_link_is_cut_while_sbatch_runs(home: Home, cluster: Cluster, tmp_path: Path) -> None:
    with cluster.proxy() as proxy:
        runs = behind_proxy(home, cluster, proxy)
        preview = runs.preview(hello_job(), hello_project(tmp_path / "p"))
        cluster.clear_calls()

        def cut_in_sbatch() -> None:
            wait_until(lambda: any(c.command == "sbatch" for c in cluster.calls()), 60, "sbatch")
            proxy.cut()

        with slurmctld_stopped(cluster):
            cutter = threading.Thread(target=cut_in_sbatch)
            cutter.start()
            sender = threading.Thread(target=_send_quietly, args=(runs, preview))
            sender.start()
            cutter.join(60)
            time.sleep(0.5)
        sender.join(60)
        assert_one_job(runs, cluster, settled(runs))
        runs.close()


def test_the_link_is_cut_after_sbatch_before_its_reply(
    home: Home, cluster: Cluster, tmp_path: Path
) -> None:
    with cluster.proxy(rtt_ms=600) as proxy:
        runs = behind_proxy(home, cluster, proxy)
        preview = runs.preview(hello_job(), hello_project(tmp_path / "p"))

        def cut_after_receipt() -> None:
            wait_until(lambda: bool(runs.history.page(1)), 60, "the run")

            def accepted() -> bool:
                folder = Path(runs.history.page(1)[0].folder)
                return (folder / "attempt-1.receipt").exists()

            deadline = time.monotonic() + 60
            while not accepted() and time.monotonic() < deadline:
                time.sleep(0.005)
            proxy.cut()

        cutter = threading.Thread(target=cut_after_receipt)
        cutter.start()
        _send_quietly(runs, preview)
        cutter.join(60)
        assert_one_job(runs, cluster, settled(runs))
        runs.close()


def _send_quietly(runs: Runs, preview: object) -> None:
    try:
        runs.send(preview)  # type: ignore[arg-type]  # a Preview; kept loose for the thread
    except LumiError:
        return
