"""Saves while the training goes on, and saves that one rank cannot finish."""

import signal
from pathlib import Path

import pytest

from tests.support.trainers.ranks import checkpoints, events, losses, ranks, train

pytestmark = pytest.mark.usefixtures("needs_torch")

DDP = ("ddp.py", "--model", "cnn-gn", "--limit", "512", "--epochs", "1", "--batch-size", "16",
       "--save-every", "4", "--eval", "never", "--log-every", "1")  # fmt: skip
# The first write takes as long as the file stands; the second finds the disk full.
SLOW_THEN_FULL = """
import errno, os, time, torch
real, calls = torch.save, []
def save(*given, **options):
    calls.append(1)
    while len(calls) == 1 and os.path.exists("hold"):
        time.sleep(0.005)
    if len(calls) == 2:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    real(*given, **options)
torch.save = save
"""


def test_a_training_goes_on_while_it_saves_and_when_a_save_fails(tmp_path: Path) -> None:
    train(tmp_path / "alone", 2, *DDP)
    here = tmp_path / "background"
    here.mkdir()
    (here / "hold").touch()
    with ranks(here, 2, *DDP, "--save-in-background", before=SLOW_THEN_FULL) as job:
        job.wait_for_step(8)  # whose own save has to wait for that of step 4
        assert not checkpoints(here) and not events(here, "checkpoint")
        job.release()
        assert job.wait() == [0, 0], job.output()
    assert losses(here) == losses(tmp_path / "alone")
    saved = {line["step"]: line for line in events(here, "checkpoint")}
    assert list(saved) == [4, 12, 16]
    assert [line["step"] for line in events(here, "not-saved")] == [8]
    assert "No space left on device" in str(events(here, "not-saved")[0]["error"])
    first = saved[4]
    assert float(str(first["blocked_s"])) < float(str(first["save_s"])) / 2
    files = here / "checkpoints" / checkpoints(here)[-1] / "state.pt"
    assert saved[16]["save_bytes"] == files.stat().st_size
    assert checkpoints(here) == ["start-0001-step-00000012", "start-0001-step-00000016"]


@pytest.mark.slow
def test_a_kill_in_a_background_save_costs_that_save_alone(tmp_path: Path) -> None:
    train(tmp_path, 2, *DDP, "--steps", "4")
    (tmp_path / "hold").touch()
    words = (*DDP, "--save-in-background", "--resume")
    with ranks(tmp_path, 2, *words, before=SLOW_THEN_FULL) as job:
        job.wait_for_step(10)
        job.signal(signal.SIGKILL)
        assert job.wait() == [-signal.SIGKILL] * 2
    assert checkpoints(tmp_path) == ["start-0001-step-00000004"]
    train(tmp_path, 2, *words)
    assert max(losses(tmp_path)) == 16


FULL_DISK_OF_RANK_1 = """
import errno, os, torch
real = torch.save
def save(content, path, **options):
    if os.environ["RANK"] == "1" and "step-00000004" in str(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    real(content, path, **options)
torch.save = save
"""


@pytest.mark.slow
@pytest.mark.usefixtures("needs_deepspeed")
def test_a_full_disk_of_one_zero_rank_costs_that_save_alone(tmp_path: Path) -> None:
    words = ("deepspeed_zero.py", "--limit", "512", "--epochs", "1", "--eval", "never",
             "--save-every", "4", "--save-in-background")  # fmt: skip
    train(tmp_path, 2, *words, before=FULL_DISK_OF_RANK_1)
    assert [line["step"] for line in events(tmp_path, "not-saved")] == [4]
    assert checkpoints(tmp_path) == ["start-0001-step-00000008"]
