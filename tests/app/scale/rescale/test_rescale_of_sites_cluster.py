"""A job of one node, and the same on two, on a mini cluster in the shape of each new site."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from lumitui.app.explain.proof.binding_proof import verdict_of
from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.small_jobs import finish, hello_job, hello_project
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster, running_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@dataclass(frozen=True)
class Case:
    """A site, and how a job there moves when it gets a second node."""

    shape: str
    site: str
    start: str
    end: str
    gres: str
    """The GPUs of both nodes, as Slurm counts them."""
    gpus: int
    """GPUs of each node that the job asks for."""
    proved: bool = True
    """Whether the profile knows the cores of the GPUs."""
    qos: str = ""
    disk: int | None = None


CASES = [
    Case("puhti", "mini-puhti", "gputest", "gputest", "gres/gpu=8", 4, disk=10),
    Case("mahti", "mini-mahti", "gpusmall", "gpumedium", "gres/gpu=4", 2, proved=False),
    Case("roihu", "mini-roihu", "gpumedium", "gpularge", "gres/gpu=8", 4),
    Case("karolina", "mini-karolina", "qgpu_exp", "qgpu_exp", "gres/gpu=16", 8),
    Case("mn5-acc", "mini-mn5", "acc_debug", "acc_debug", "gres/gpu=8", 4, qos="acc_debug"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.shape)
def test_a_job_grows_to_two_nodes(case: Case, home: Home, tmp_path: Path) -> None:
    with running_cluster(case.shape) as cluster:
        home.add_cluster(cluster, case.site, case.site)
        runs = Runs(home.settings)
        try:
            _grows(case, cluster, runs, tmp_path)
        finally:
            runs.close()


def _grows(case: Case, cluster: Cluster, runs: Runs, folder: Path) -> None:
    disk = {"local_disk": case.disk} if case.disk else {}
    spec = hello_job(
        site=case.site,
        account=cluster.account,
        partition=case.start,
        gpus_per_node=case.gpus,
        **disk,
    )
    first = finish(runs, runs.send(runs.preview(spec, hello_project(folder))))
    _is_right(case, cluster, first, case.start)
    larger = runs.plan_resubmission(first.id, nodes=2)
    second = finish(runs, runs.resubmit(larger))
    _is_right(case, cluster, second, case.end)
    job = _of_slurm(cluster, second)
    assert case.gres in re.split(r"[,\s]", job), job
    assert not case.qos or f"QOS={case.qos}" in job.split(), job
    assert not case.disk or f"nvme:{case.disk}" in job, job
    assert second.price.per_hour > first.price.per_hour


def _is_right(case: Case, cluster: Cluster, run: Run, partition: str) -> None:
    """The job ran where it was planned, on all its ranks, bound as far as that is known."""
    assert (run.state, run.rc) == (State.DONE, 0), run
    assert run.spec.partition == partition
    own = "acc" if case.qos else partition
    assert f"Partition={own}" in _of_slurm(cluster, run).split()
    found = verdict_of(run)
    assert found.kind == ("proved" if case.proved else "not measured"), found


def _of_slurm(cluster: Cluster, run: Run) -> str:
    return cluster.admin("scontrol", "-o", "show", "job", str(run.job_id)).stdout
