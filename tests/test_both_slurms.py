"""The whole way of a run without torch, fast enough for either release of Slurm.

Compose, submit, refresh, every kind of end, proof, resubmission at more nodes. What else must
hold under both bears the same mark in its own module.
"""

from pathlib import Path

import pytest

from lumitui.app.runs import Runs
from lumitui.remote.scheduler import State
from tests.cluster_fixture import Cluster
from tests.jobs import finish, hello_job, hello_project, wait_until

pytestmark = pytest.mark.both_slurms

STAYS = "import time\nprint('started', flush=True)\ntime.sleep(120)\n"


def test_a_run_is_proved_and_again_on_two_nodes(cluster_runs: Runs, tmp_path: Path) -> None:
    runs = cluster_runs
    spec = hello_job(partition="standard-g", gpus_per_node=8)
    first = finish(runs, runs.send(runs.preview(spec, hello_project(tmp_path))))
    second = finish(runs, runs.resubmit(runs.plan_resubmission(first.id, nodes=2)))
    for run, ranks in ((first, 8), (second, 16)):
        log = runs.read_log(run.id)[1].decode()
        assert (run.state, run.word, run.rc) == (State.DONE, "COMPLETED", 0), log
        assert log.count('"argv"') == ranks
        proof = runs.proof(run)
        assert (proof.kind, proof.measured) == ("proved", ranks)
        planned = dict(enumerate(run.layout.planned_cores))
        assert {(row.local_rank, row.found) for row in proof.rows} == set(planned.items())
    assert second.parent == first.id
    assert len({row.host for row in runs.proof(second).rows}) == 2


def test_every_end_is_told_by_its_name(
    cluster_runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    runs = cluster_runs
    stays = hello_project(tmp_path / "stays")
    (stays / "hello.py").write_text(STAYS)
    hello = hello_project(tmp_path / "hello")
    sent = {
        "fails": runs.send(runs.preview(hello_job(env={"FAIL_RANK": "1"}), hello)),
        "cancelled": runs.send(runs.preview(hello_job(), stays)),
        "limit": runs.send(runs.preview(hello_job(), stays)),
        "waits": runs.send(runs.preview(hello_job(sbatch=["--begin=now+1hour"]), hello)),
        "requeued": runs.send(runs.preview(hello_job(), stays)),
    }
    running = [sent[name].id for name in ("cancelled", "limit", "requeued")]
    wait_until(lambda: all(b"started" in runs.read_log(run_id)[1] for run_id in running))
    jobs = {name: run.job_id or "" for name, run in sent.items()}
    cluster.admin("scontrol", "update", f"jobid={jobs['limit']}", "EndTime=now+1second")
    held = cluster.login(f"scontrol requeuehold {jobs['requeued']}")
    assert held.returncode == 0, held.stderr
    runs.cancel(sent["cancelled"].id)
    runs.cancel(sent["waits"].id)
    ended = {name: finish(runs, run) for name, run in sent.items() if name != "requeued"}
    assert {name: (run.state, run.word, run.rc) for name, run in ended.items()} == {
        "fails": (State.FAILED, "FAILED", 7),
        "cancelled": (State.CANCELLED, "CANCELLED", None),
        "limit": (State.TIMEOUT, "TIMEOUT", None),
        "waits": (State.CANCELLED, "CANCELLED", None),
    }
    assert ended["fails"].failed_rank == 1
    assert ended["waits"].started is None
    # Not an end: it waits for its second attempt.
    waits = runs.history.get(sent["requeued"].id)
    assert waits.state is State.QUEUED
    assert runs.cancel(waits.id).job_id
    assert finish(runs, waits).state is State.CANCELLED
