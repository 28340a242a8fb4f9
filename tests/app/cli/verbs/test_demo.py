"""The demo: a training, the same again on twice the nodes, and the comparison."""

import json
import os
import sys
from pathlib import Path

import pytest

from lumitui.app.cli.main import lumitui
from lumitui.app.cli.process import run_verb
from tests.support.program.command_line import HELLO, Here, lt, runs_of
from tests.support.program.home import Home

TRAINS = """\
import json, os
world = int(os.environ["WORLD_SIZE"])
if os.environ["RANK"] == "0":
    with open(os.environ["RUN_DIR"] + "/metrics.jsonl", "a") as file:
        for step in range(1, 11):
            line = {"event": "step", "step": step, "samples_per_s": 80.0 * world,
                    "world_size": world, "global_batch": 32 * world, "loss": 1.0}
            print(json.dumps(line), file=file)
"""


def measured(shown: str) -> list[list[str]]:
    """Return the cells of the sizes that were measured."""
    return [line.split() for line in shown.splitlines() if line.endswith(" steps)")]


def test_the_demo_follows_resubmits_on_two_nodes_and_compares(
    home: Home, here: Here, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = HELLO.replace("gpus_per_node: 1\n", "").replace("strategy: single", "strategy: ddp")
    job.write_text(text.replace("launcher: plain", "launcher: srun"))
    job.write_text(job.read_text().replace('proof: "off"\n', "scale: {lr: {rule: sqrt}}\n"))
    (job.parent / "hello.py").write_text(TRAINS)
    monkeypatch.setenv("DEMO", "headless")
    monkeypatch.setenv("LUMITUI_PYTHON", sys.executable)
    done = here("demo", "--to", str(job.parent))
    assert done.returncode == 0, done.stdout + done.stderr
    # What a job is, its proof, and its scaling: all three on this machine, in true words.
    assert "1 node, 2 ranks on CPU; " in done.stdout and "GPU" not in done.stdout
    kind = "proved" if len(os.sched_getaffinity(0)) >= 2 else "not measured"
    assert done.stdout.count(f": {kind}. ") == 2, done.stdout
    first, second = measured(done.stdout)
    assert first[:8] == ["1", "2", "160", "-", "1", "x", "100", "%"]
    assert second[:8] == ["2", "4", "320", "-", "2", "x", "100", "%"]
    assert [row["state"] for row in runs_of(home)] == ["done", "done"]

    (job.parent / "hello.py").write_text("raise SystemExit(3)\n")
    assert here("demo", "--to", str(job.parent)).returncode == 5


@pytest.mark.slow
def test_the_demo_trains_with_torch(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = lt(home, "demo", "--to", str(folder), DEMO="headless")
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = measured(done.stdout)
    assert (first[:2], second[:2]) == (["1", "2"], ["2", "4"])
    assert "lr 0.02828," in done.stdout and "0.028284" not in done.stdout
    assert "masks" not in done.stdout and done.stdout.count(": proved. ") == 2
    accuracy = json.loads(lt(home, "show", "last", "--json").stdout)["data"]["metrics"]
    assert accuracy["test_accuracy"] > 0.9
    assert [row["state"] for row in runs_of(home)] == ["done", "done"]


def test_the_demo_without_torch_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv("LUMITUI_PYTHON", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert run_verb(lumitui, ["demo", "--to", str(tmp_path / "demo")]) == 2
    assert "pip install 'torch" in capsys.readouterr().err
