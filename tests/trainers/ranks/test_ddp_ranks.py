"""ddp.py on several real ranks that communicate over gloo: losses, resuming, signals."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import TRAINERS
from tests.support.trainers.forked import PYTHON
from tests.support.trainers.ranks import (
    STOPPED_EARLY,
    checkpoints,
    clean_environ,
    events,
    held_at,
    losses,
    ranks,
    reported,
    started,
    train,
)

pytestmark = pytest.mark.usefixtures("needs_torch")

# 12 steps of 64 images; group norm, so that the number of ranks changes nothing. Only the order
# of float32 sums differs (1e-7 in the first step), and training amplifies that: over 3 seeds up to
# 4e-6 at this rate, but 1.5e-4 at ten times of it. A wrong share of the batch differs at once.
DDP = ("ddp.py", "--model", "cnn-gn", "--limit", "256", "--epochs", "3", "--save-every", "5",
       "--eval", "end", "--lr", "0.001", "--log-every", "1")  # fmt: skip
BATCH = ("--batch-size", "16")  # of each of four ranks


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[int, float]:
    """The losses of four ranks that nothing interrupts."""
    run_dir = tmp_path_factory.mktemp("reference")
    job = train(run_dir, 4, *DDP, *BATCH)
    found = losses(run_dir)
    assert list(found) == list(range(1, 13))
    assert found[12] < 0.97 * found[1]
    assert "test accuracy" in job.output()
    start, *told = reported(run_dir)
    assert start.items() >= {"world_size": 4, "global_batch": 64, "precision": "fp32"}.items()
    assert start["forward_flops"] == 5_676_160
    split = {"data_s", "forward_backward_s", "optimizer_s", "communication_s", "exposed_s"}
    last = next(line for line in reversed(told) if "loss" in line)
    assert last.keys() >= split | {"tflops", "memory_gib"}
    assert not last.keys() & {"mfu", "tokens_per_s"}  # of a card's peak, of text
    return found


@pytest.mark.slow  # one rank that goes on is below
@pytest.mark.parametrize("world_size", [1, 2])
def test_the_number_of_ranks_does_not_change_the_training(
    tmp_path: Path, reference: dict[int, float], world_size: int
) -> None:
    train(tmp_path, world_size, *DDP, "--batch-size", str(64 // world_size))
    assert losses(tmp_path) == pytest.approx(reference, abs=1e-4)


def test_a_killed_training_resumes_with_the_same_losses(
    tmp_path: Path, reference: dict[int, float]
) -> None:
    with ranks(tmp_path, 4, *DDP, *BATCH, before=held_at(tmp_path, 11)) as job:
        job.wait_for_step(11)  # after checkpoints at 5 and 10
        job.signal(signal.SIGKILL)
        assert job.wait() == [-signal.SIGKILL] * 4
    assert checkpoints(tmp_path) == ["start-0001-step-00000005", "start-0001-step-00000010"]
    flip_a_bit(tmp_path / "checkpoints" / "start-0001-step-00000010" / "state.pt")
    job = train(tmp_path, 4, *DDP, *BATCH, "--resume")
    assert "step-00000010 is damaged: state.pt has a different checksum" in job.output()
    assert [line["first_step"] for line in events(tmp_path, "start")] == [1, 6]
    assert losses(tmp_path) == reference  # to the last digit
    assert checkpoints(tmp_path) == ["start-0002-step-00000010", "start-0002-step-00000012"]


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


# Slurm's own signal at the limit is the rarer one: the job asks for USR1 before it.
@pytest.mark.parametrize(
    "number", [signal.SIGUSR1, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_wish_to_stop_saves_and_ends_all_ranks(
    tmp_path: Path, reference: dict[int, float], number: signal.Signals
) -> None:
    words = (*DDP, "--batch-size", "32")
    with ranks(tmp_path, 2, *words, before=held_at(tmp_path, 6)) as job:
        job.wait_for_step(6)
        job.processes[1].send_signal(number)
        job.release()
        assert job.wait() == [STOPPED_EARLY] * 2, job.output()
    assert reported(tmp_path)[-1]["event"] == "stop"
    assert max(losses(tmp_path)) == 7
    # On another number of ranks, at the same global batch; by the file this time.
    (tmp_path / "stop").touch()
    alone = (*DDP, "--batch-size", "64", "--resume")
    with ranks(tmp_path, 1, *alone) as job:
        assert job.wait() == [STOPPED_EARLY], job.output()
    assert "stopped by the file stop after step 8" in job.output()
    assert not (tmp_path / "stop").exists()
    train(tmp_path, 1, *alone)
    assert losses(tmp_path) == pytest.approx(reference, abs=1e-4)
    assert len([line for line in reported(tmp_path) if "event" not in line]) == 12


BAD_LOSSES = """
import math, os, torch.nn.functional as functional
from engine.training import Training
real, begin, steps = functional.cross_entropy, Training.begin_step, []
def begun(self):
    steps.append(1)
    return begin(self)
def loss(*given):
    bad = os.environ["RANK"] == "1" and len(steps) in (3, 5)
    return real(*given) * (math.nan if bad else 1)
Training.begin_step, functional.cross_entropy = begun, loss
"""


# Steps 2 to 5 are read together: nobody knows of the bad ones while they are made.
@pytest.mark.parametrize("trainer", ["ddp.py", pytest.param("fsdp.py", marks=pytest.mark.slow)])
def test_a_loss_of_one_rank_that_is_no_number_changes_no_weight(
    tmp_path: Path, trainer: str
) -> None:
    several = ("--limit", "512", "--steps", "5", "--log-every", "10")
    train(tmp_path, 2, trainer, *DDP[1:], *several, before=BAD_LOSSES)
    steps = [line for line in reported(tmp_path) if "event" not in line]
    assert [line["loss"] is None for line in steps] == [False, False, True, False, True]
    assert [line["skipped"] for line in steps] == [0, 0, 1, 1, 2]
    assert checkpoints(tmp_path) == ["start-0001-step-00000005"]


def torchrun_forwards_sigusr1() -> bool:
    """`--signals-to-handle` came with PyTorch 2.10."""
    asked = subprocess.run(
        [PYTHON, "-m", "torch.distributed.run", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return "--signals-to-handle" in asked.stdout


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_a_signal_to_torchrun_saves_and_leaves_no_rank_behind(
    tmp_path: Path, number: signal.Signals
) -> None:
    flags = []
    if number == signal.SIGUSR1:
        if not torchrun_forwards_sigusr1():
            pytest.skip("this torchrun cannot forward SIGUSR1")
        flags = ["--signals-to-handle=SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1"]
    command = [
        *(PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *flags),
        *(str(TRAINERS / DDP[0]), *DDP[1:], "--batch-size", "32", "--epochs", "300"),
    ]
    with started([command], [clean_environ(tmp_path)]) as job:
        job.wait_for_step(6)
        workers = children(job.processes[0].pid)
        assert len(workers) == 2
        job.signal(number)
        assert job.wait() == [1]  # torchrun's own code for every signal; the stop line says more
        assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    stop = reported(tmp_path)[-1]
    assert (stop["event"], stop["signal"]) == ("stop", number.name)
    assert stop["step"] == max(losses(tmp_path))
    assert checkpoints(tmp_path)


def children(pid: int) -> list[int]:
    if not sys.platform.startswith("linux"):
        pytest.skip("needs /proc")
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# Rank 1 is on a node that lacks the data.
LACKING = """
import os
from engine import start
if os.environ["RANK"] == "1":
    real = start.open_data
    start.open_data = lambda place, **given: real("/nowhere", **given)
"""


def test_a_rank_that_lacks_its_data_ends_all_of_them_and_is_named(tmp_path: Path) -> None:
    with ranks(tmp_path, 2, *DDP, before=LACKING) as job:
        assert job.wait() == [2, 2]
    assert "Rank 1 ended: There is no data folder /nowhere" in job.output()


def test_wrong_data_ends_every_rank(tmp_path: Path) -> None:
    with ranks(tmp_path, 2, *DDP, "--data", "/nowhere") as job:
        assert job.wait() == [2, 2]
    assert job.output().count("There is no data folder /nowhere") == 1
    assert "Traceback" not in job.output()
