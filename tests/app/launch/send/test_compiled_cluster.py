"""What Inductor compiled in one job is there on the nodes of the next, with Slurm."""

import json
from pathlib import Path

import pytest

from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.endings import in_shell
from tests.support.jobs.small_jobs import finish, hello_job
from tests.support.servers.cluster import Cluster

COMPILES = """\
import json
import os
import torch
from torch._dynamo.utils import counters
torch.set_num_threads(1)
torch.compile(lambda x: (x * 3.125).sin() + 1)(torch.randn(64))
print(json.dumps({"node": os.uname().nodename, **counters["inductor"]}), flush=True)
"""
STANDS_IN = """\
import json, os, pathlib
made = pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]) / "fxgraph" / "one"
found = made.exists()
made.parent.mkdir(parents=True, exist_ok=True)
made.write_text("compiled")
print(json.dumps({"fxgraph_cache_" + ("hit" if found else "miss"): 1}), flush=True)
"""


@pytest.mark.cluster
@pytest.mark.parametrize(
    "program", [STANDS_IN, pytest.param(COMPILES, marks=pytest.mark.slow)], ids=["file", "inductor"]
)
def test_the_next_job_finds_it_on_every_node(
    cluster: Cluster, cluster_runs: Runs, tmp_path: Path, program: str
) -> None:
    runs = cluster_runs
    (tmp_path / "hello.py").write_text(program)

    def ended(nodes: int, **changes: object) -> tuple[Run, list[dict[str, int]]]:
        spec = hello_job(gpus_per_node=1, nodes=nodes, proof="off", **changes)
        run = finish(runs, runs.send(runs.preview(spec, tmp_path)))
        log = runs.read_log(run.id)[1].decode()
        assert run.state is State.DONE, log
        assert "lumitui:" not in log
        lines = [line[line.index("{") :] for line in log.splitlines() if "fxgraph_cache" in line]
        return run, [json.loads(line) for line in lines]

    first, said = ended(2)
    root = first.folder.rpartition("/runs/")[0]
    try:
        assert [bool(one.get("fxgraph_cache_miss")) for one in said] == [True, True]
        _, said = ended(2)
        assert [bool(one.get("fxgraph_cache_hit")) for one in said] == [True, True]
        assert not any(one.get("fxgraph_cache_miss") for one in said)
    finally:
        in_shell(cluster, f"ls -l {root}/compiled; rm -r {root}/compiled")
