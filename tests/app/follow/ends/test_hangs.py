"""A rank that stops in a running job: on the real Slurm, from the node to the words of a person."""

import os
import signal
from pathlib import Path

import pytest

from lumitui.app.history.run import Run
from lumitui.app.job.spec import changed, parse_job
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.endings import process_of
from tests.support.jobs.small_jobs import TRAIN, finish, wait_until

ENDLESS = ("--epochs", "5000", "--limit", "256", "--batch-size", "8", "--eval", "never")


@pytest.mark.slow
@pytest.mark.parametrize("still", ["2", pytest.param("", marks=pytest.mark.slow)])
def test_a_stopped_rank_is_named_and_said_to_move_again(
    cluster_runs: Runs, tmp_path: Path, still: str
) -> None:
    runs = cluster_runs
    spec = changed(
        parse_job(TRAIN, "train"),
        {
            "nodes": 2,
            "gpus_per_node": 2,
            "args": list(ENDLESS),
            "env": {"TRAINER_STILL_SECONDS": still} if still else {},
        },
        "t",
    )
    run = runs.send(runs.preview(spec, tmp_path))

    def now() -> Run:
        runs.refresh(run.site)
        found = runs.history.get(run.id)
        assert not found.state.is_final, f"{found.state}: {runs.read_log(run.id)[1].decode()}"
        return found

    try:
        wait_until(lambda: bool(now().metrics_offset > 2000), 120, "its first steps")
        assert now().hang == ""
        pid = process_of(run, 3)
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda: bool(now().hang), 120, "the name of the rank")
        said = now().hang
        assert said.startswith("Rank 3 on nid"), said
        assert ", its process is stopped; the others wait at step " in said
        assert runs.why(run.id)[0].sentence.startswith("Rank 3 on nid")
        os.kill(pid, signal.SIGCONT)
        wait_until(lambda: not now().hang, 120, "that it moves again")
        assert now().state is State.RUNNING
        assert b" moves again." in runs.read_log(run.id)[1]
    finally:
        runs.cancel(run.id)
        finish(runs, runs.history.get(run.id))
