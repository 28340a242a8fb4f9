"""A script of one's own takes several time limits with Slurm, under srun and under torchrun."""

import json
from pathlib import Path

import pytest

from lumitui.app.job import examples
from lumitui.app.job.spec import changed, parse_job
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.chained_runs import hurry
from tests.support.jobs.endings import in_shell
from tests.support.jobs.small_jobs import finish, wait_until
from tests.support.servers.cluster import Cluster

pytestmark = pytest.mark.cluster


# An attempt of two ranks and their torchrun takes 15 s of a processor to import torch.
@pytest.mark.parametrize(
    ("launcher", "limits"), [("torchrun", 2), pytest.param("srun", 4, marks=pytest.mark.slow)]
)
def test_a_script_with_the_run_file_goes_on_over_its_time_limits(
    cluster: Cluster, cluster_runs: Runs, tmp_path: Path, launcher: str, limits: int
) -> None:
    # torchrun ends with 1 whatever its ranks end with: the reported stop carries the chain.
    runs = cluster_runs
    site = runs.sites.load("minilumi")
    begin = examples.Beginning(example="simple-ddp", gpus=2, launcher=launcher)
    text = examples.text_for(site, begin)
    examples.write_all(tmp_path / "job.yaml", text, examples.chosen(begin).files)
    more = {
        "partition": "small-g",
        "args": ["--steps", "100000000", "--save-every", "100000000"],
        "chain": limits,
        "relaunch": 0,
        "proof": "off",
    }
    run = runs.send(runs.preview(changed(parse_job(text, "job"), more, "job"), tmp_path))

    def lines() -> list[dict[str, object]]:
        told = in_shell(cluster, f"cat {run.folder}/metrics.jsonl 2>/dev/null || true")
        return [json.loads(line) for line in told.splitlines() if line.endswith("}")]

    def stopped(times: int) -> bool:
        """Ask the attempt to stop once it trains; return whether so many have stopped."""
        events = [line.get("event") for line in lines()]
        trains = "loss" in (lines() or [{}])[-1]
        if events.count("start") == times and trains and events.count("stop") < times:
            in_shell(cluster, f": >{run.folder}/stop")
        hurry(cluster, [run])
        return events.count("stop") == times

    try:
        for number in range(1, limits + 1):
            wait_until(lambda times=number: stopped(times), 90, f"stop {number}")  # type: ignore[misc]
        run = finish(runs, run, 30)
    finally:
        if not runs.history.get(run.id).state.is_final:
            runs.cancel(run.id)
    assert (run.state, run.rc) == (State.FAILED, 85), runs.read_log(run.id)[1].decode()
    assert [record.end for record in run.attempts] == ["requeue"] * (limits - 1) + ["used-up"]
    steps = [line["step"] for line in lines() if "loss" in line]
    assert steps == list(range(1, len(steps) + 1)), "a step was left out, or trained twice"
