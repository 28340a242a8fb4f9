"""Hydra's launcher `lumitui`: a real multirun of a Hydra application, as runs on this machine."""

import subprocess
import sys
from pathlib import Path

import pytest

from lumitui.app.runs import Runs
from tests.support.program.command_line import environ
from tests.support.program.home import Home

APP = """\
import json, os
import hydra

@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(config):
    print("lr", config.lr, "layers", config.model.layers, "in", os.getcwd(), flush=True)
    if config.lr > 1:
        raise ValueError("diverged")
    with open(os.path.join(os.environ["RUN_DIR"], "metrics.jsonl"), "a") as file:
        print(json.dumps({"step": 1, "loss": config.lr * config.model.layers}), file=file)

if __name__ == "__main__":
    main()
"""
CONFIG = """\
lr: 0.1
model:
  layers: 2
"""
JOB = """\
name: app
site: laptop
partition: local
gpus_per_node: 1
time: "00:05:00"
launcher: plain
strategy: single
proof: "off"
preflight: "off"
script: app.py
args: [+seed=1]
"""


SWEEPER = """\
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper, BasicSweeperConf
from hydra.core.config_store import ConfigStore

class Showing(BasicSweeper):
    def sweep(self, arguments):
        batches = super().sweep(arguments)
        print([job.return_value for jobs in batches for job in jobs])

conf = BasicSweeperConf(_target_="hydra_plugins.showing.Showing")
ConfigStore.instance().store(group="hydra/sweeper", name="showing", node=conf)
"""


@pytest.fixture
def app(tmp_path: Path, home: Home) -> Path:
    profile = home.config / "sites" / "laptop.yaml"
    profile.write_text("extends: laptop\npoll_seconds: 0.2\n")
    folder = tmp_path / "app"
    (folder / "conf").mkdir(parents=True)
    (folder / "app.py").write_text(APP)
    (folder / "conf" / "config.yaml").write_text(CONFIG)
    (folder / "job.yaml").write_text(JOB)
    return folder


def multirun(home: Home, app: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "app.py", "--multirun", "hydra/launcher=lumitui", *words],
        cwd=app,
        env=environ(home, LUMITUI_PYTHON=sys.executable),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_a_multirun_is_one_grid_and_each_run_has_its_overrides(home: Home, app: Path) -> None:
    done = multirun(home, app, "lr=0.5,0.25", "model.layers=1,3", "hydra.launcher.wait=true")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 runs" in done.stdout
    with Runs(home.settings) as runs:
        found = list(reversed(runs.history.page()))
        assert [run.state.value for run in found] == ["done"] * 4
        sweep = runs.sweeps.of(found[0].id)
        assert [row.run for row in sweep.rows] == [run.id for run in found]
        cells = ["lr=0.5 model.layers=1", "lr=0.5 model.layers=3",
                 "lr=0.25 model.layers=1", "lr=0.25 model.layers=3"]  # fmt: skip
        assert [row.setting for row in sweep.rows] == cells
        assert [runs.metrics(run.id)[0].loss for run in found] == [0.5, 1.5, 0.25, 0.75]
        assert (Path(found[0].folder) / "hydra" / ".hydra" / "overrides.yaml").is_file()
        assert found[0].name == "app-lr_0.5-model.layers_1"


def test_a_sweeper_gets_the_last_value_of_a_metric(home: Home, app: Path) -> None:
    (app / "hydra_plugins").mkdir()
    (app / "hydra_plugins" / "showing.py").write_text(SWEEPER)
    words = ("hydra/sweeper=showing", "hydra.launcher.wait=true", "hydra.launcher.result=loss")
    done = multirun(home, app, "lr=0.5,0.25", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "[1.0, 0.5]"


def test_without_wait_it_returns_when_the_runs_are_submitted(home: Home, app: Path) -> None:
    (app / "app.py").write_text(
        APP.replace("    print", "    __import__('time').sleep(600)\n    print", 1)
    )
    done = multirun(home, app, "lr=1,2")
    assert done.returncode == 0, done.stdout + done.stderr
    with Runs(home.settings) as runs:
        found = runs.history.page()
        assert len(found) == 2 and not any(run.state.is_final for run in found)
        for run in found:
            runs.cancel(run.id)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("lr=2,3", "hydra.launcher.wait=true"), "lumitui why app-lr-2-"),
        (("lr=1,2", "hydra.launcher.job=none.yaml"), "none.yaml"),
        (("lr=1,2", "hydra.launcher.wait=true", "hydra.launcher.result=no"), "no metric 'no'"),
    ],
)
def test_what_goes_wrong_is_one_sentence(
    home: Home, app: Path, words: tuple[str, ...], said: str
) -> None:
    done = multirun(home, app, *words)
    assert done.returncode == 1 and said in done.stderr, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_grid_of_one_value_is_refused_as_larger_ones_are(home: Home, app: Path) -> None:
    (app / "job.yaml").write_text(JOB + "grid: {lr: [1]}\n")
    done = multirun(home, app, "lr=0.5")
    assert done.returncode != 0 and "cannot have a `grid:`" in done.stdout + done.stderr
    with Runs(home.settings) as runs:
        assert not runs.history.page()
