"""The bundled trainers under each launcher: the same training, and a wish to stop that saves."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from lumitui.app.history.run import Run
from lumitui.app.job.spec import JobSpec, changed, parse_job
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.binding import binding_jobs
from tests.support.jobs.binding.binding_jobs import Proving
from tests.support.jobs.endings import in_shell
from tests.support.jobs.small_jobs import TRAIN, wait_until
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.cluster]
ARGS = ["--model", "cnn-gn", "--batch-size", "8", "--lr", "0.02", "--seed", "1"]


@dataclass(frozen=True)
class Case:
    """Four ranks under a launcher."""

    launcher: str
    nodes: int
    site: str = "minilumi"


SRUN = Case("srun", 2)
OTHERS = [
    Case("deepspeed", 1),
    Case("accelerate", 2),
    Case("torchrun", 2, "masks"),
    Case("mpirun", 2),
    Case("mpirun", 2, "hydra"),
]


@pytest.fixture
def jobs(home: Home, cluster: Cluster, tmp_path: Path) -> Iterator[Proving]:
    """The core with the mini cluster, and profiles with its other launchers."""
    with binding_jobs.proving(home, cluster, tmp_path) as opened:
        yield opened


def job(case: Case, **more: object) -> JobSpec:
    data: dict[str, object] = {"site": case.site, "launcher": case.launcher, "nodes": case.nodes}
    if case.site == "masks":
        data["container"] = {"none": True}
    ours: dict[str, object] = {"gpus_per_node": 4 // case.nodes, "args": [*ARGS, "--steps", "4"]}
    return changed(parse_job(TRAIN, "train"), data | ours | more, case.launcher)


def losses(jobs: Proving, run: Run) -> dict[int, float]:
    points = jobs.runs.history.metrics.of(run.id)
    return {point.step: point.loss for point in points if point.step and point.loss is not None}


def has_trained(jobs: Proving, run: Run) -> bool:
    jobs.runs.refresh(run.site)
    return bool(losses(jobs, run))


def test_the_same_training_under_each_launcher(jobs: Proving) -> None:
    cases = [SRUN, *OTHERS]
    # One of them measures its GPUs and its network first, in the same launch.
    sent = [
        jobs.send(job(case, preflight="warn" if case.launcher == "mpirun" else "off"))
        for case in cases
    ]
    found = {}
    for case, run in zip(cases, jobs.finish(sent, seconds=500), strict=True):
        assert (run.state, run.rc) == (State.DONE, 0), (case, jobs.log(run))
        assert jobs.runs.proof(run).kind == "proved", (case, jobs.runs.proof(run).sentence)
        found[case] = losses(jobs, run)
    for case in OTHERS:
        assert found[case] == pytest.approx(found[SRUN], abs=1e-5), case


def test_a_wish_to_stop_saves_under_each_launcher(jobs: Proving, cluster: Cluster) -> None:
    """The script's signal is that of the time limit; the job goes on from its checkpoint."""
    cases = [Case("deepspeed", 1), Case("accelerate", 2), *OTHERS[-2:]]
    long = {"args": [*ARGS, "--steps", "100000", "--epochs", "100000"], "proof": "off"}
    sent = [jobs.send(job(case, **long)) for case in cases]
    for case, run in zip(cases, sent, strict=True):
        wait_until(partial(has_trained, jobs, run), 300, f"{case} trains")
        in_shell(cluster, f"scancel --batch --signal=USR1 {run.job_id}")
    for case, run in zip(cases, jobs.finish(sent, seconds=300), strict=True):
        log = jobs.log(run)
        assert (run.state, run.rc) == (State.FAILED, 85), (case, log)
        points = jobs.runs.history.metrics.of(run.id)
        assert points[-1].event == "stop", (case, log)
        assert list((Path(run.folder) / "checkpoints").glob("*/manifest.json")), (case, log)
