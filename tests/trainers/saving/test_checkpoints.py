"""A signal saves a checkpoint, and a resubmission continues from it, on the mini cluster."""

from pathlib import Path

import pytest

from lumitui.app.history.run import Run
from lumitui.app.job.spec import JobSpec, parse_job
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.small_jobs import finish, wait_until
from tests.support.servers.cluster import Cluster

JOB = """
name: long
site: minilumi
account: project_462000001
partition: small-g
gpus_per_node: 2
time: "00:10:00"
launcher: {launcher}
trainer: ddp
args: [--model, cnn-gn, --epochs, "1000", --batch-size, "32", --lr, "0.02"]
"""


def job(launcher: str, **changes: str) -> JobSpec:
    text = JOB.format(launcher=launcher)
    for key, value in changes.items():
        text = "\n".join(line for line in text.splitlines() if not line.startswith(f"{key}:"))
        text += f'\n{key}: "{value}"\n'
    return parse_job(text, "long")


def wait_for_steps(runs: Runs, run: Run) -> None:
    def training() -> bool:
        runs.refresh(run.site)
        return any(point.step for point in runs.history.metrics.of(run.id))

    wait_until(training, 120, "the first steps")


def steps(runs: Runs, run: Run) -> list[int]:
    return [int(point.step) for point in runs.history.metrics.of(run.id) if point.step is not None]


def assert_saved_and_continues(runs: Runs, cluster: Cluster, run: Run) -> None:
    saved = cluster.login(f"ls {run.folder}/checkpoints").stdout.split()
    assert any(name.startswith("start-0001-step-") for name in saved), runs.read_log(run.id)[
        1
    ].decode()
    last = max(steps(runs, run))
    made = runs.plan_resubmission(run.id, settings=[f"--steps={last + 3}"])
    assert made.plan.start == "checkpoint"
    again = finish(runs, runs.resubmit(made))
    assert again.state is State.DONE, runs.read_log(again.id)[1].decode()
    assert (again.parent, again.resumed_from) == (run.id, run.id)
    assert min(steps(runs, again)) == last + 1


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["srun", "torchrun"])
def test_a_signal_saves_and_the_next_run_continues_there(
    cluster_runs: Runs, cluster: Cluster, tmp_path: Path, launcher: str
) -> None:
    runs = cluster_runs
    run = runs.send(runs.preview(job(launcher), tmp_path))
    wait_for_steps(runs, run)
    # What sbatch --signal=USR1@… makes slurmctld send: to the tasks, not to the batch shell.
    cluster.admin("scancel", "--signal=USR1", run.job_id or "")
    run = finish(runs, run, 120)
    assert run.state is State.FAILED
    assert_saved_and_continues(runs, cluster, run)


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["srun", "torchrun"])
def test_the_signal_comes_thirty_seconds_before_the_time_limit(
    cluster_runs: Runs, cluster: Cluster, tmp_path: Path, launcher: str
) -> None:
    runs = cluster_runs
    spec = job(launcher, time="00:02:00", signal="USR1@30")
    run = finish(runs, runs.send(runs.preview(spec, tmp_path)), 240)
    assert run.state is State.FAILED, run.state  # it ended by itself, before the limit
    assert runs.why(run.id)[0].id == "stopped-early"
    assert_saved_and_continues(runs, cluster, run)


@pytest.mark.slow
def test_a_failed_run_without_checkpoints_starts_from_scratch(
    cluster_runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    runs = cluster_runs
    run = runs.send(runs.preview(job("srun"), tmp_path))
    wait_for_steps(runs, run)
    cluster.login(f"rm -rf {run.folder}/checkpoints && scancel --signal=KILL {run.job_id}")
    run = finish(runs, run, 120)
    assert run.state in (State.FAILED, State.CANCELLED)
    made = runs.plan_resubmission(run.id, settings=["--steps=2"])
    again = finish(runs, runs.resubmit(made))
    assert again.state is State.DONE
    assert min(steps(runs, again)) == 1
