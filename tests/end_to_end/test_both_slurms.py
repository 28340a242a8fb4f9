"""The whole way of a run without torch, fast enough for either release of Slurm.

Compose, submit, refresh, proof, resubmission at more nodes. What else must hold under both
bears the same mark in its own module.
"""

from pathlib import Path

import pytest

from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.small_jobs import finish, hello_job, hello_project

pytestmark = pytest.mark.both_slurms


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


def test_two_ranks_on_a_whole_node_have_the_cores_near_their_gpus(
    cluster_runs: Runs, tmp_path: Path
) -> None:
    """Since 23.11, srun takes the cores per task of the job again: a step has no others."""
    spec = hello_job(partition="standard-g", gpus_per_node=2)
    preview = cluster_runs.preview(spec, hello_project(tmp_path))
    run = finish(cluster_runs, cluster_runs.send(preview))
    log = cluster_runs.read_log(run.id)[1].decode()
    assert run.state is State.DONE, log
    assert [row.found for row in cluster_runs.proof(run).rows] == ["49-55", "57-63"]
