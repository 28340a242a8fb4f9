"""`chain:` with Lightning on Slurm: it saves when it is asked to stop, and the next one goes on."""

import json
from pathlib import Path
from typing import Any

import pytest

from lumitui.app.job.spec import parse_job
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.chained_runs import hurry, retrained, steps_of
from tests.support.jobs.endings import in_shell
from tests.support.jobs.small_jobs import finish, wait_until
from tests.support.servers.cluster import Cluster

STEPS = 1500
TRAINING = f"""
name: lightning
site: minilumi
account: project_462000001
partition: small-g
nodes: 2
gpus_per_node: 1
time: "00:05:00"
chain: 3
launcher: srun
trainer: lightning_trainer
strategy: lightning
proof: "off"
args: [--model, cnn-gn, --steps, "{STEPS}", --epochs, "1000", --batch-size, "8", --eval, never]
"""


@pytest.mark.cluster
@pytest.mark.slow
def test_lightning_saves_when_slurm_signals_and_goes_on_in_the_next_attempt(
    cluster: Cluster, cluster_runs: Runs, tmp_path: Path
) -> None:
    runs = cluster_runs
    run = runs.send(runs.preview(parse_job(TRAINING, "lightning"), tmp_path))

    def metrics() -> str:
        return in_shell(cluster, f"cat {run.folder}/metrics.jsonl 2>/dev/null || true")

    def trained(attempt: int, most: int) -> bool:
        hurry(cluster, [run])
        lines = "".join(line for line in metrics().splitlines(keepends=True) if line[-1] == "\n")
        return sum(number == attempt for _, number in steps_of(lines)) > most

    wait_until(lambda: trained(1, 20), 240, "attempt 1 trains")
    # As if its limit were near: Slurm sends the signal.
    cluster.admin("scontrol", "update", f"jobid={run.job_id}", "EndTime=now+62seconds")
    wait_until(lambda: trained(2, 0), 300, "attempt 2 trains")
    run = finish(runs, run, 300)
    log = runs.read_log(run.id)[1].decode()
    assert (run.state, run.rc) == (State.DONE, 0), log
    assert run.attempts[0].end == "requeue"
    assert run.attempts[-1].end == "done"
    steps = steps_of(metrics())
    assert [step for step, _ in steps] == list(range(1, STEPS + 1)) and not retrained(steps)
    events: list[dict[str, Any]] = [json.loads(line) for line in metrics().splitlines()]
    starts = [line for line in events if line.get("event") == "start"]
    last = [step for step, number in steps if number == 1][-1]
    assert starts[1]["first_step"] == last + 1
    assert {line["strategy"] for line in starts} == {"lightning"}
