"""Every strategy trains the same: single, ddp, fsdp and zero, accumulated or not, within 1e-5."""

from pathlib import Path

import pytest

from tests.support.trainers.ranks import losses, reported, train

pytestmark = pytest.mark.usefixtures("needs_torch")

# Group norm, so that the number of ranks changes nothing but the order of float32 sums. A global
# batch of 32 in every case; a clip that is at work in every step.
SAME = ("--model", "cnn-gn", "--limit", "256", "--eval", "never", "--optimizer", "adamw",
        "--weight-decay", "0.1", "--clip", "0.5", "--lr", "0.001",
        "--schedule", "constant")  # fmt: skip
SHORT = (*SAME, "--steps", "4")
EXACT = 1e-5


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[int, float]:
    """The losses of one rank."""
    run_dir = tmp_path_factory.mktemp("alone")
    train(run_dir, 1, "ddp.py", *SHORT, "--batch-size", "32")
    assert reported(run_dir)[0]["strategy"] == "single"
    return losses(run_dir)


def test_ddp_with_accumulation_trains_as_one_rank(tmp_path: Path, alone: dict[int, float]) -> None:
    train(tmp_path, 2, "ddp.py", *SHORT, "--batch-size", "4", "--accumulate", "4")
    assert losses(tmp_path) == pytest.approx(alone, abs=EXACT)
    assert reported(tmp_path)[0].items() >= {"strategy": "ddp", "global_batch": 32}.items()


def test_fsdp_trains_as_one_rank_which_goes_on_from_its_checkpoint(
    tmp_path: Path, alone: dict[int, float]
) -> None:
    split = ("--batch-size", "8", "--accumulate", "2")
    train(tmp_path, 2, "fsdp.py", *SHORT, *split, "--steps", "2")
    assert reported(tmp_path)[0].items() >= {"strategy": "fsdp", "global_batch": 32}.items()
    train(tmp_path, 1, "ddp.py", *SHORT, "--batch-size", "32", "--resume", "--steps", "3")
    train(tmp_path, 2, "fsdp.py", *SHORT, *split, "--resume")
    assert [line["first_step"] for line in reported(tmp_path) if "first_step" in line] == [1, 3, 4]
    assert losses(tmp_path) == pytest.approx(alone, abs=EXACT)
