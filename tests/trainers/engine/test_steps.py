"""What a step asks of the device and of the other ranks, and which tasks there are."""

import json
from pathlib import Path

import pytest

from tests.support.trainers.ranks import reported, train

pytestmark = pytest.mark.usefixtures("needs_torch")

SHORT = ("--model", "cnn-gn", "--limit", "64", "--batch-size", "8", "--eval", "never",
         "--epochs", "1", "--clip", "1", "--optimizer", "adamw")  # fmt: skip

TWICE = ("--batch-size", "4", "--accumulate", "2")

# Counts what PyTorch's dispatcher is asked in each step, between its begin and the next one's. A
# value that the CPU reads (`item`, `bool`, `float`) is _local_scalar_dense; a copy to it, _to_copy.
COUNTED = """
import json, os, torch
from torch.utils._python_dispatch import TorchDispatchMode
from engine import training
ASKED = {}
class Count(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name()
        if name.startswith("c10d::") or "_local_scalar_dense" in name:
            calls[name] = calls.get(name, 0) + 1
        return func(*args, **(kwargs or {}))
calls = {}
def counted(cls, name):
    real = getattr(cls, name)
    def method(self, *given):
        with Count():
            found = real(self, *given)
        if os.environ["RANK"] == "0":
            print("counted", json.dumps([name, dict(calls)]))
        calls.clear()
        return found
    setattr(cls, name, method)
training.WITHIN = 1e9  # a busy machine reads more often
counted(training.Training, "step")
counted(training.StepWindow, "read")
"""


def counted(output: str, what: str) -> list[dict[str, int]]:
    lines = [json.loads(line[8:]) for line in output.splitlines() if line.startswith("counted ")]
    return [calls for name, calls in lines if name == what]


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        (("ddp.py",), {"c10d::allreduce_": 1}),
        # The weights of the whole model once a pass; the gradients; and their length.
        (
            ("fsdp.py",),
            {"c10d::_allgather_base_": 1, "c10d::_reduce_scatter_base_": 1, "c10d::allreduce_": 1},
        ),
        # Two micro batches: gradients meet once with ddp, and are split at once with fsdp.
        (("ddp.py", *TWICE), {"c10d::allreduce_": 1}),
        (
            ("fsdp.py", *TWICE),
            {"c10d::_allgather_base_": 2, "c10d::_reduce_scatter_base_": 2, "c10d::allreduce_": 1},
        ),
        (
            ("fsdp.py", *TWICE, "--keep-gradients"),
            {"c10d::_allgather_base_": 2, "c10d::_reduce_scatter_base_": 1, "c10d::allreduce_": 1},
        ),
        # In groups of two: the parts of the gradients meet between the groups, once a step.
        (
            ("fsdp.py", *TWICE, "--batch-size", "2", "--shard-size", "2"),
            {"c10d::_allgather_base_": 2, "c10d::_reduce_scatter_base_": 2, "c10d::allreduce_": 2},
        ),
    ],
)
def test_a_step_reads_nothing_from_the_device_and_sends_gradients_only(
    tmp_path: Path, words: tuple[str, ...], sent: dict[str, int]
) -> None:
    size = 4 if "--shard-size" in words else 2
    output = train(tmp_path, size, words[0], *SHORT, *words[1:], before=COUNTED).output()
    steps = counted(output, "step")
    assert len(steps) == 4
    assert all(calls == sent for calls in steps[1:]), steps
    # One window of one step, whose time tells how long the next may be.
    assert counted(output, "read") == [{"c10d::allreduce_": 1}] * 2
    losses = [line for line in reported(tmp_path) if "loss" in line]
    assert [line["step"] for line in losses] == [1, 2, 3, 4]
    assert all({"data_s", "forward_backward_s", "optimizer_s"} <= set(line) for line in losses)


@pytest.mark.parametrize(("model", "data"), [("gpt2-tiny", "synthetic:64"), ("autoencoder", "")])
def test_a_model_without_classes_is_tested_by_its_loss(
    tmp_path: Path, model: str, data: str
) -> None:
    words = ["--model", model, "--limit", "64", "--epochs", "2", "--optimizer", "adam"]
    words += ["--lr", "0.005", *(["--data", data] if data else [])]
    output = train(tmp_path, 1, "ddp.py", *words).output()
    tests = [line["test_loss"] for line in reported(tmp_path) if line.get("event") == "eval"]
    first = next(line["loss"] for line in reported(tmp_path) if "loss" in line)
    assert len(tests) == 2
    assert reported(tmp_path)[-1]["test_loss"] == tests[1]
    assert isinstance(first, float)
    assert isinstance(tests[1], float)
    assert 0.5 * first < tests[1] < first
    assert output.splitlines()[-1] == f"test loss {tests[1]:.4f}"
