"""Small jobs for tests: a project that needs no torch, and waiting with a limit."""

import time
from collections.abc import Callable
from pathlib import Path

from lumitui.app.history.run import Run
from lumitui.app.job.spec import JobSpec, parse_job
from lumitui.app.runs import Runs

HELLO = """\
import json, os, sys
print(json.dumps({"rank": int(os.environ["RANK"]), "argv": sys.argv[1:],
                  "probe": os.environ.get("PROBE_TEXT", "")}), flush=True)
code = os.environ.get("FAIL_RANK")
sys.exit(7 if code == os.environ["RANK"] else 0)
"""


def hello_project(folder: Path) -> Path:
    """Return a project whose script prints its rank and arguments."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hello.py").write_text(HELLO)
    return folder


def hello_job(**changes: object) -> JobSpec:
    """Return a job of two ranks on the mini cluster's shared partition, fast to start."""
    data: dict[str, object] = {
        "name": "hello",
        "site": "minilumi",
        "account": "project_462000001",
        "partition": "small-g",
        "gpus_per_node": 2,
        "time": "00:05:00",
        "script": "hello.py",
    }
    lines = [f"{key}: {value!r}" for key, value in (data | changes).items()]
    return parse_job("\n".join(lines), "hello")


BUSY = 3
"""How much longer a busy machine may take than one at rest."""


def wait_until(check: Callable[[], bool], seconds: float = 60.0, what: str = "") -> None:
    """Wait until `check()` is true; a machine at rest has `seconds`, a busy one more."""
    deadline = time.monotonic() + BUSY * seconds
    while not check():
        assert time.monotonic() < deadline, f"not within {BUSY * seconds} s: {what or check}"
        time.sleep(0.1)


def finish(runs: Runs, run: Run, seconds: float = 180.0) -> Run:
    """Wait until the run has ended and everything of it is here."""
    deadline = time.monotonic() + BUSY * seconds
    while True:
        runs.refresh(run.site)
        run = runs.history.get(run.id)
        if run.state.is_final:
            return run
        assert time.monotonic() < deadline, f"{run.id} is {run.state} ({run.reason})"
        time.sleep(0.2)


TRAIN = """
name: mnist
site: minilumi
account: project_462000001
partition: standard-g
nodes: 1
time: "00:10:00"
launcher: srun
trainer: ddp
args: [--model, cnn-gn, --steps, "4", --batch-size, "16", --lr, "0.02"]
"""
"""A job file: a short training on all GCDs of one node of the mini cluster."""
