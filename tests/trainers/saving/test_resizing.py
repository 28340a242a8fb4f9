"""Trainings that go on with another number of ranks, at the same global batch."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.places import TRAINERS
from tests.support.trainers.ranks import checkpoints, losses, ranks, reported, train

pytestmark = pytest.mark.usefixtures("needs_torch")

# Group norm and no dropout: any number of ranks gives the same training.
SMALL = ("--model", "cnn-gn", "--limit", "512", "--epochs", "1", "--save-every", "4",
         "--eval", "never", "--log-every", "1")  # fmt: skip


def batch(world_size: int) -> tuple[str, ...]:
    return ("--batch-size", str(64 // world_size))


@pytest.mark.slow  # tests/trainers/test_equal.py has one of them
@pytest.mark.parametrize(
    "sizes",
    [
        [("fsdp.py", 2), ("ddp.py", 1)],
        [("ddp.py", 4), ("ddp.py", 2), ("ddp.py", 1)],
        [("fsdp.py", 4), ("fsdp.py", 2), ("fsdp.py", 1)],
        [("fsdp.py", 1), ("fsdp.py", 2), ("fsdp.py", 4)],
        [("ddp.py", 2), ("fsdp.py", 4)],
    ],
    ids=str,
)
def test_a_checkpoint_in_parts_goes_on_with_other_ranks(
    tmp_path: Path, sizes: list[tuple[str, int]]
) -> None:
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    train(whole, sizes[0][1], sizes[0][0], *SMALL, *batch(sizes[0][1]))
    for number, (trainer, world_size) in enumerate(sizes, start=1):
        until = ("--steps", str(8 * number // len(sizes)))
        words = ("--resume", *SMALL, *batch(world_size), *until, "--save", "sharded")
        train(parted, world_size, trainer, *words)
        newest = parted / "checkpoints" / checkpoints(parted)[-1]
        parts = {path.name for path in newest.glob("*.distcp")}
        assert len(parts) == world_size
        known = json.loads((newest / "manifest.json").read_text())["content"]["files"]
        assert set(known) == parts | {".metadata"}
    assert losses(parted) == pytest.approx(losses(whole), abs=1e-5)


@pytest.mark.slow
@pytest.mark.usefixtures("needs_deepspeed")
@pytest.mark.parametrize(
    ("stage", "before", "after"),
    [(2, 2, 1)]
    + [
        pytest.param(stage, before, after, marks=pytest.mark.slow)
        for stage, before, after in [(1, 2, 4), (1, 4, 2), (2, 2, 4), (3, 2, 4), (3, 4, 1)]
    ],
)
def test_zero_goes_on_with_other_ranks(tmp_path: Path, stage: int, before: int, after: int) -> None:
    config = json.loads((TRAINERS / "ds_config.json").read_text())
    config["zero_optimization"]["stage"] = stage
    (tmp_path / "ds.json").write_text(json.dumps(config))
    words = ("deepspeed_zero.py", *SMALL, "--deepspeed_config", str(tmp_path / "ds.json"))
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    train(whole, before, *words)
    shutil.copytree(whole, parted)
    shutil.rmtree(parted / "checkpoints" / "start-0001-step-00000008")
    train(parted, after, *words, "--resume")
    assert len(reported(parted)) > len(reported(whole)) + 4
    assert losses(parted) == pytest.approx(losses(whole), abs=1e-5)
    assert checkpoints(parted) == ["start-0001-step-00000004", "start-0002-step-00000008"]
    assert not list(parted.rglob(".universal"))


@pytest.mark.usefixtures("needs_deepspeed")
def test_a_zero_checkpoint_stays_that_of_its_ranks_when_nothing_is_left_to_train(
    tmp_path: Path,
) -> None:
    words = ("deepspeed_zero.py", *SMALL, "--limit", "128", "--resume")
    train(tmp_path, 2, *words)
    for world_size in (1, 2):  # the second died: the manifest named one rank, the parts were two
        train(tmp_path, world_size, *words)
        (manifest,) = tmp_path.glob("checkpoints/*/manifest.json")
        assert json.loads(manifest.read_text())["content"]["position"]["world_size"] == 2


@pytest.mark.slow
@pytest.mark.usefixtures("needs_deepspeed")
def test_a_state_that_deepspeed_cannot_divide_gives_a_sentence(tmp_path: Path) -> None:
    config = json.loads((TRAINERS / "ds_config.json").read_text())
    config["optimizer"] = {"type": "SGD", "params": {"lr": 0.01, "momentum": 0.9}}
    config["zero_allow_untested_optimizer"] = True
    (tmp_path / "ds.json").write_text(json.dumps(config))
    words = ("deepspeed_zero.py", *SMALL, "--deepspeed_config", str(tmp_path / "ds.json"))
    train(tmp_path, 2, *words, "--steps", "4")
    with ranks(tmp_path, 1, *words, "--resume") as job:
        assert job.wait() == [2]
    assert "DeepSpeed repartitions only Adam's state, not SGD's. Resume with 2" in job.output()
