"""What shows a training: TensorBoard and the other watchers, a trace of some steps."""

import gzip
import json
from pathlib import Path

import pytest

from tests.support.trainers.ranks import losses, reported, train_alone

SHORT = ("ddp.py", "--limit", "320", "--epochs", "1", "--eval", "never")


@pytest.mark.usefixtures("needs_torch")
def test_steps_are_traced(tmp_path: Path) -> None:
    code, said = train_alone(tmp_path, *SHORT, "--profile", "3:5")
    assert code == 0, said
    (trace,) = (tmp_path / "profile").iterdir()
    assert trace.name == "rank-0-steps-3-5.json.gz"
    traced = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    names = {item.get("name", "") for item in traced}
    assert {name for name in names if name.startswith("step ")} == {"step 3", "step 4", "step 5"}
    assert any("backward" in name.lower() for name in names)


@pytest.mark.usefixtures("needs_torch")
def test_a_package_that_is_missing_is_told_before_anything_starts(tmp_path: Path) -> None:
    code, said = train_alone(tmp_path, *SHORT, "--watch", "mlflow,tensorboard", before=ABSENT)
    assert code == 2 and "--watch mlflow needs the Python package mlflow" in said
    assert "omit mlflow" in said and "Traceback" not in said
    assert reported(tmp_path) == [] and not (tmp_path / "watch").exists()


ABSENT = """
import sys
sys.modules["mlflow"] = None
"""

# The real packages are too large for these tests, and neither fails when it is asked to.
STAND_INS = """
import json, sys, types
mlflow, wandb = types.ModuleType("mlflow"), types.ModuleType("wandb")
tensorboard = types.ModuleType("torch.utils.tensorboard")
def note(what):
    return lambda *args, **named: open("called", "a").write(
        json.dumps([what, args, named], default=str) + "\\n")
for name in ("set_tracking_uri", "set_experiment", "start_run", "log_params", "log_metrics",
             "end_run"):
    setattr(mlflow, name, note(name))
class Run:
    def log(self, numbers, step):
        if step == 4:
            raise ConnectionError("the service ended")
        note("log")(numbers, step)
wandb.init = lambda **named: note("init")(**named) and Run()
wandb.Settings = dict
class SummaryWriter:
    def __init__(self, folder):
        note("SummaryWriter")(folder)
        self.add_scalar, self.flush, self.close = note("scalar"), note("flush"), note("closed")
tensorboard.SummaryWriter = SummaryWriter
sys.modules |= {"mlflow": mlflow, "wandb": wandb, "tensorboard": types.ModuleType("tensorboard"),
                "torch.utils.tensorboard": tensorboard}
"""


@pytest.mark.usefixtures("needs_torch")
def test_a_watcher_that_fails_is_left_out_and_the_training_goes_on(tmp_path: Path) -> None:
    words = (*SHORT, "--watch", "mlflow,wandb,tensorboard")
    code, said = train_alone(tmp_path, *words, before=STAND_INS)
    assert code == 0 and said.count("wandb failed (the service ended).") == 1
    calls = [json.loads(line) for line in (tmp_path / "called").read_text().splitlines()]
    names = [name for name, _, _ in calls]
    assert names.count("log") == 3 and {"end_run", "closed"} <= set(names)
    assert calls[0][1] == [(tmp_path / "watch" / "mlflow").as_uri()]
    ((_, _, begun),) = (call for call in calls if call[0] == "init")
    assert begun["mode"] == "offline" and begun["dir"] == str(tmp_path / "watch" / "wandb")
    logged = {call[2]["step"] for call in calls if call[0] == "log_metrics"}
    assert logged >= set(range(1, 11))
    scalars = [call[1] for call in calls if call[0] == "scalar"]
    shown = {(name, step): number for name, number, step in scalars}
    for step, loss in losses(tmp_path).items():
        assert shown["loss", step] == loss
