"""A training on photos: any ranks and workers continue it within an epoch, with the same crops."""

from pathlib import Path

import pytest

from tests.support.trainers.pictures import make_folder
from tests.support.trainers.ranks import losses, train, train_alone

SMALL = ("--size", "28", "--grey", "--workers", "1")
"""Photos of the size that the small networks were made for, so that they are cropped."""


@pytest.fixture
def packed(tmp_path: Path, needs_torch: None) -> Path:
    """80 photos of two classes, 72 of them to learn from."""
    make_folder(tmp_path / "from", {"a": 40, "b": 40})
    words = ("pack.py", str(tmp_path / "from"), str(tmp_path / "packed"), *SMALL)
    code, said = train_alone(tmp_path, *words)
    assert code == 0, said
    return tmp_path / "packed"


def words(where: Path, *more: str) -> tuple[str, ...]:
    model = (
        "--model",
        "cnn-gn",
        "--epochs",
        "2",
        "--eval",
        "end",
        "--log-every",
        "1",
        "--lr",
        "0.002",
    )
    return ("ddp.py", *model, "--data", str(where), *more)


@pytest.mark.slow
def test_other_ranks_and_workers_continue_within_an_epoch(packed: Path, tmp_path: Path) -> None:
    whole, parts, folder = tmp_path / "whole", tmp_path / "parts", tmp_path / "folder"
    train(whole, 1, *words(packed, "--batch-size", "8"))
    train(parts, 2, *words(packed, "--batch-size", "4", "--steps", "4", "--workers", "1"))
    train(parts, 1, *words(packed, "--batch-size", "8", "--workers", "2", "--resume"))
    assert losses(parts) == pytest.approx(losses(whole), abs=1e-5)
    assert sorted(losses(whole)) == list(range(1, 19))
    # The folder that was packed gives the same training.
    again = words(tmp_path / "from", "--batch-size", "8", "--steps", "3", "--workers", "1")
    train(folder, 1, *again)
    assert losses(folder) == pytest.approx(
        {step: loss for step, loss in losses(whole).items() if step <= 3}, abs=1e-6
    )
