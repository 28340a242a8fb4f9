"""The trainer with PyTorch Lightning: what it says where that is missing, and how it requeues."""

import os
import sys
from pathlib import Path

import pytest

from tests.support.trainers.ranks import Load


def test_without_lightning_a_sentence_says_what_to_install(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lightning", None)
    with pytest.raises(load("engine.reporting").UsageError, match="Install `lightning` into"):
        load("strategies.lightning_loop")


@pytest.mark.parametrize(
    ("received", "rank", "array", "asked"),
    [
        ("SIGUSR1", 0, "", "requeue 7\n"),
        ("SIGUSR1", 0, "5", "requeue 5_2\n"),
        ("SIGUSR1", 1, "", ""),
        ("SIGTERM", 0, "", ""),  # of scancel
        ("the file stop", 0, "", ""),
    ],
)
def test_a_job_is_requeued_once_and_after_the_time_limit_only(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, received: str, rank: int,
    array: str, asked: str,
) -> None:  # fmt: skip
    told, scontrol = tmp_path / "told", tmp_path / "scontrol"
    scontrol.write_text(f'#!/bin/sh\necho "$@" >>"{told}"\n')
    scontrol.chmod(0o700)
    told.touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "2")
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", array)
    trainer, ranks = load("lightning_trainer"), load("engine.ranks")
    monkeypatch.setattr(trainer.STOP, "received", received)
    trainer.requeue(ranks.Ranks(rank, rank, 2, 2, tmp_path))
    assert told.read_text() == asked


def test_a_requeue_that_is_refused_is_said_in_a_sentence(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scontrol = tmp_path / "scontrol"
    scontrol.write_text("#!/bin/sh\nexit 1\n")
    scontrol.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    trainer = load("lightning_trainer")
    monkeypatch.setattr(trainer.STOP, "received", "SIGUSR1")
    trainer.requeue(load("engine.ranks").Ranks(0, 0, 1, 1, tmp_path))
    assert "could not be requeued" in capsys.readouterr().err
