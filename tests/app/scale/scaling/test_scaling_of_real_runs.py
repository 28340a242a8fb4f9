"""How real runs scale: two small trainings on this machine, compared by what they wrote."""

from pathlib import Path

from lumitui.app.job.spec import parse_job
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.small_jobs import finish

TRAIN = """\
import json, os
world = int(os.environ["WORLD_SIZE"])
if os.environ["RANK"] == "0":
    with open(os.path.join(os.environ["RUN_DIR"], "metrics.jsonl"), "a") as file:
        start = {"event": "start", "world_size": world, "global_batch": 8 * world}
        print(json.dumps(start), file=file)
        for step in range(1, 21):
            line = {"step": step, "epoch": 1, "samples_per_s": 90.0 * world + step % 3}
            print(json.dumps(line), file=file)
"""
JOB = """
name: small
site: laptop
partition: local
time: "00:05:00"
script: train.py
proof: "off"
"""


def test_a_run_and_its_resubmission_are_two_sizes(runs: Runs, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    first = finish(runs, runs.send(runs.preview(parse_job(JOB, "job.yaml"), tmp_path)))
    second = finish(runs, runs.resubmit(runs.plan_resubmission(first.id, nodes=2)))
    assert (first.state, second.state) == (State.DONE, State.DONE)
    for asked in (first, second):
        found = runs.scaling.of(asked.id)
        assert [size.nodes for size in found.measured] == [1, 2]
        assert [size.source for size in found.measured] == [
            f"{first.id} (15 steps)",
            f"{second.id} (15 steps)",
        ]
        assert [size.nodes for size in found.sizes] == [1, 2, 4, 8], "up to the site's limit"
        two = found.measured[1]
        assert two.speed_up and two.speed_up.likely == 361 / 181
        assert found.whole.samples == 20 * 8 * (2 if asked is first else 4)
