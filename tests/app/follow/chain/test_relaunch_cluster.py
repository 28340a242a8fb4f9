"""`relaunch:` with Slurm and a bundled trainer: a rank is killed, and the training goes on."""

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from lumitui.app.job.spec import changed, parse_job
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.endings import in_shell, process_of
from tests.support.jobs.small_jobs import TRAIN, finish, wait_until
from tests.support.servers.cluster import Cluster

STEPS = 200
ARGS = f"--model cnn-gn --steps {STEPS} --epochs 1000 --batch-size 8 --eval never --save-every 20"

LOST = "rank (?:1 ended with 137|0 ended with 1)"
"""The one that was killed, or the one that lost it: whom Slurm hears of first is chance."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launcher", "fault", "said"),
    [
        ("srun", signal.SIGKILL, LOST),
        pytest.param("torchrun", signal.SIGKILL, LOST, marks=pytest.mark.slow),
        # It hangs, and `hang:` ends the training.
        pytest.param("srun", signal.SIGSTOP, "rank 0 ended with 88", marks=pytest.mark.slow),
    ],
)
def test_a_training_goes_on_in_its_allocation_after_a_rank_was_lost(
    cluster: Cluster,
    cluster_runs: Runs,
    tmp_path: Path,
    launcher: str,
    fault: signal.Signals,
    said: str,
) -> None:
    runs = cluster_runs
    spec = changed(
        parse_job(TRAIN, "train"),
        {
            "partition": "small-g", "nodes": 2, "gpus_per_node": 1, "args": ARGS.split(),
            "proof": "off", "preflight": "off", "launcher": launcher, "relaunch": 1,
            "hang": "00:01:00", "env": {"TRAINER_STILL_SECONDS": "2"},
        },
        "t",
    )  # fmt: skip
    run = runs.send(runs.preview(spec, tmp_path))

    def events() -> list[dict[str, Any]]:
        text = in_shell(cluster, f"cat {run.folder}/metrics.jsonl 2>/dev/null || true")
        return [json.loads(line) for line in text.splitlines() if line.endswith("}")]

    try:
        wait_until(lambda: any(one.get("step", 0) == 30 for one in events()), 120, "step 30")
        os.kill(process_of(run, 1), fault)
        run = finish(runs, run)
    finally:
        if not runs.history.get(run.id).state.is_final:
            runs.cancel(run.id)
    log = runs.read_log(run.id)[1].decode()
    assert (run.state, run.rc, run.attempt) == (State.DONE, 0, 1), log
    assert re.search(f"^lumitui: launch 2 of 2: {said} after step \\d+; it restarts", log, re.M), (
        log
    )
    found = events()
    starts = [number for number, one in enumerate(found) if one.get("event") == "start"]
    assert len(starts) == 2
    first, second = (
        {one["step"]: one["loss"] for one in part if "loss" in one}
        for part in (found[: starts[1]], found[starts[1] :])
    )
    again = set(first) & set(second)
    assert set(first) | set(second) == set(range(1, STEPS + 1))
    assert 0 < min(second) - 1 <= max(first) and len(again) <= 2 * 20
    assert {step: second[step] for step in again} == {step: first[step] for step in again}
