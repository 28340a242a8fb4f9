"""What was trained becomes Hugging Face's files, and those compute the same."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.trainers.own_scripts import TRANSFORMERS, environment
from tests.support.trainers.ranks import Load, train, train_alone

pytestmark = pytest.mark.usefixtures("needs_torch")
LLAMA = ("--model", "llama-tiny", "--data", "synthetic:64", "--batch-size", "4", "--eval", "never")
LOGITS = """
import json, sys, torch
from transformers import AutoModelForCausalLM
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32)
tokens = torch.arange(24).view(2, 12) % 7
print(json.dumps(model(tokens).logits.flatten().tolist()))
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder of two ranks."""
    run_dir = tmp_path_factory.mktemp("trained")
    train(run_dir, 2, "fsdp.py", *LLAMA, "--steps", "3")
    return run_dir


def export(trained: Path, out: Path, *more: str) -> None:
    words = (str(trained / "checkpoints"), str(out), "--model", "llama-tiny", *more)
    code, output = train_alone(out.parent, "export_weights.py", *words)
    assert code == 0, output
    assert "weights of llama-tiny in" in output


def test_what_was_exported_is_what_was_trained(load: Load, trained: Path, tmp_path: Path) -> None:
    begin_with, table = load("saving.weights").begin_with, load("models.table")
    export(trained, tmp_path / "out", "--dtype", "float32")
    shape = table.MODELS["llama-tiny"].sample
    saved, exported = (table.build("llama-tiny", shape, seed) for seed in (1, 2))
    begin_with(saved, trained / "checkpoints")
    begin_with(exported, tmp_path / "out")
    for name, value in saved.state_dict().items():
        assert (value == exported.state_dict()[name]).all(), name
    export(trained, tmp_path / "half")
    sizes = [(tmp_path / one / "model.safetensors").stat().st_size for one in ("out", "half")]
    assert sizes[1] < 0.6 * sizes[0]
    assert sorted(path.name for path in (tmp_path / "half").iterdir()) == [
        "config.json", "model.safetensors",
    ]  # fmt: skip


def test_what_lies_beside_the_first_weights_goes_with_them(trained: Path, tmp_path: Path) -> None:
    like = tmp_path / "like"
    like.mkdir()
    (like / "config.json").write_text(json.dumps({"model_type": "llama", "rope_theta": 1e6}))
    (like / "tokenizer.json").write_text("{}")
    (like / "optimizer.bin").touch()
    export(trained, tmp_path / "out", "--like", str(like))
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["rope_theta"], config["dtype"]) == (1e6, "bfloat16")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"config.json", "model.safetensors", "tokenizer.json"}


def test_another_model_is_refused_and_nothing_is_written(trained: Path, tmp_path: Path) -> None:
    words = (str(trained / "checkpoints"), str(tmp_path / "out"), "--model", "llama-125m")
    code, output = train_alone(tmp_path, "export_weights.py", *words)
    assert code == 2 and "is not for this --model" in output, output
    assert "Traceback" not in output and not (tmp_path / "out").exists()


@pytest.mark.slow
def test_transformers_computes_the_same_logits(load: Load, trained: Path, tmp_path: Path) -> None:
    python = environment("transformers", TRANSFORMERS, sees_ours=True)
    torch, table = load("torch"), load("models.table")
    export(trained, tmp_path / "out", "--dtype", "float32")
    net = table.build("llama-tiny", table.MODELS["llama-tiny"].sample, 0)
    load("saving.weights").begin_with(net, trained / "checkpoints")
    ours = net(torch.arange(24).view(2, 12) % 7).flatten().tolist()
    command = [str(python), "-c", LOGITS, str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(done.stdout) == pytest.approx(ours, abs=1e-5)
