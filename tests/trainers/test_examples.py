"""The examples of the bundled trainers: their arguments are right, and each of them trains."""

import argparse
import json
import math
from pathlib import Path
from typing import Any

import pytest

from lumitui.app.job import examples
from lumitui.app.job.examples import JobExample
from lumitui.app.job.grid import cells
from lumitui.app.job.spec import JobSpec
from lumitui.app.job.strategies import STRATEGIES, TRAINERS
from lumitui.app.launch.adviser.trainer_arguments import trainer_parser
from lumitui.app.launch.deepspeed_batch import with_strategy
from tests.support.places import TRAINERS as FOLDER
from tests.support.trainers.ranks import Load, alone, losses, reported, train, train_alone

BUNDLED = {item.name: item for item in examples.examples().values() if item.spec.trainer}
TINY = {
    "resnet18-cifar": "resnet-tiny",
    "resnet50": "resnet-tiny",
    "vit-b16": "vit-tiny",
    "gpt2-124m": "gpt2-tiny",
    "llama-7b": "llama-tiny",
    "llama-1b": "llama-tiny",
}
"""What is trained here in place of a model of an example: the same code."""
Config = dict[str, Any]
OFFLOAD = [name for name, row in STRATEGIES.items() if row.offload]


def parts(parser: argparse.ArgumentParser) -> dict[str, tuple[object, ...]]:
    return {
        flag: (one.nargs, one.choices and sorted(one.choices), getattr(one.type, "__name__", ""))
        for flag, one in parser._option_string_actions.items()
    }


def test_the_parser_read_from_a_trainers_source_is_the_trainers(load: Load) -> None:
    parser_of = load("engine.arguments").parser_of
    ddp = parts(trainer_parser("ddp.py"))
    assert ddp == parts(parser_of("ddp.py")) == parts(parser_of("lightning_trainer.py"))
    fsdp = parts(trainer_parser("fsdp.py"))
    assert fsdp == parts(parser_of("fsdp.py"))
    assert fsdp.keys() - ddp.keys() == {"--keep-gradients", "--shard-size"}
    zero = parts(trainer_parser("deepspeed_zero.py"))
    assert "--deepspeed_config" in zero and "--lr" not in zero
    own = [flag for flag, row in zero.items() if row != ddp.get(flag)]
    assert all(flag.startswith("--deep") or flag == "--local_rank" for flag in own)


@pytest.mark.parametrize("name", BUNDLED)
def test_every_example_has_arguments_that_its_trainer_takes(
    load: Load, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cell in cells(BUNDLED[name].spec):
        file = f"{STRATEGIES[cell.spec.strategy].trainer}.py"
        args = load("engine.arguments").parser_of(file).parse_args(list(cell.spec.args))
        assert args.model in load("models.table").MODELS


def shortened(spec: JobSpec) -> list[str]:
    """The arguments for three steps of a tiny model."""
    words = [TINY.get(word, word) for word in spec.args]
    words = ["synthetic:128" if word.startswith("synthetic") else word for word in words]
    batch = [] if "--batch-size" not in words else ["--batch-size", "4"]
    return [*words, *batch, "--workers", "1", "--steps", "3", "--limit", "128", "--eval", "never"]


def config_of(example: JobExample, folder: Path) -> list[str]:
    """The arguments for the DeepSpeed configuration that would be sent, for one rank."""
    spec = example.spec
    if not STRATEGIES[spec.strategy].zero_stage:
        return []
    own = dict(example.files).get(spec.deepspeed.config) if spec.deepspeed else None
    config: Config = json.loads(own or (FOLDER / "ds_config.json").read_text())
    row = STRATEGIES[spec.strategy]
    config = config if own else dict(with_strategy(config, row))
    config["train_batch_size"] = config.pop("train_micro_batch_size_per_gpu", 4)
    config.pop("gradient_accumulation_steps", None)
    if STRATEGIES[spec.strategy].offload:  # DeepSpeed's own would be compiled for two minutes
        config["optimizer"]["params"]["torch_adam"] = True
    (folder / "ds.json").write_text(json.dumps(config))
    return ["--deepspeed", "--deepspeed_config", str(folder / "ds.json")]


@pytest.mark.slow
@pytest.mark.usefixtures("needs_torch", "needs_deepspeed", "needs_lightning")
@pytest.mark.parametrize("name", BUNDLED)
def test_every_example_trains(tmp_path: Path, name: str) -> None:
    example = BUNDLED[name]
    spec = cells(example.spec)[-1].spec
    words = [*shortened(spec), *config_of(example, tmp_path)]
    code, output = train_alone(tmp_path, TRAINERS[str(spec.trainer)].file, *words)
    assert code == 0, output
    found = losses(tmp_path)
    assert sorted(found) == [1, 2, 3] and all(map(math.isfinite, found.values()))


ZERO = ("deepspeed_zero.py", "--model", "cnn-gn", "--limit", "64", "--epochs", "1", "--eval",
        "never", "--deepspeed", "--deepspeed_config")  # fmt: skip


def offloaded(folder: Path, strategy: str, **params: object) -> str:
    """Write the configuration of a strategy, with more parameters for its optimizer."""
    config: Config = json.loads((FOLDER / "ds_config.json").read_text()) | {"train_batch_size": 16}
    config = dict(with_strategy(config, STRATEGIES[strategy]))
    config["optimizer"]["params"] |= params
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{strategy}.json"
    path.write_text(json.dumps(config))
    return str(path)


@pytest.mark.slow
@pytest.mark.usefixtures("needs_torch", "needs_deepspeed")
@pytest.mark.parametrize("strategy", OFFLOAD)
def test_the_cpus_memory_changes_nothing_of_what_is_learnt(tmp_path: Path, strategy: str) -> None:
    """With PyTorch's Adam: DeepSpeed's own, which is compiled first, is tried below."""
    there, plain = tmp_path / "there", tmp_path / "plain"
    train(there, 2, *ZERO, offloaded(there, strategy, torch_adam=True))
    train(plain, 1, *ZERO, offloaded(plain, strategy.removesuffix("-offload"), torch_adam=True))
    assert losses(there) == pytest.approx(losses(plain), abs=1e-5)
    assert reported(there)[0]["strategy"] == strategy.removesuffix("-offload")


@pytest.mark.usefixtures("needs_torch", "needs_deepspeed")
def test_a_node_without_a_compiler_is_told_what_to_do(tmp_path: Path) -> None:
    config = offloaded(tmp_path, "zero1-offload")
    with alone(tmp_path, *ZERO, config, CXX="/bin/false") as job:
        assert job.wait() == [2], job.output()
    assert "could not compile its CPU optimizer" in job.output()
    assert "Traceback" not in job.output()


@pytest.mark.slow
@pytest.mark.usefixtures("needs_torch", "needs_deepspeed")
def test_deepspeeds_own_optimizer_for_the_cpu_trains_and_resumes(tmp_path: Path) -> None:
    """Compiling takes two minutes of a core; the folder keeps it for the second start."""
    config = offloaded(tmp_path, "zero3-offload")
    kept = {"TORCH_EXTENSIONS_DIR": str(tmp_path / "compiled")}
    with alone(tmp_path, *ZERO, config, "--steps", "2", **kept) as job:
        assert job.processes[0].wait(timeout=600) == 0, job.output()
    with alone(tmp_path, *ZERO, config, "--resume", **kept) as job:
        assert job.wait() == [0], job.output()
    plain = tmp_path / "plain"
    train(plain, 1, *ZERO, offloaded(plain, "zero3", torch_adam=True))
    assert losses(tmp_path) == pytest.approx(losses(plain), abs=1e-4)
