"""ddp.py on several real ranks that communicate over gloo: losses, resuming, signals."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.jobs.trainer_ranks import (
    PYTHON,
    STOPPED_EARLY,
    clean_environ,
    losses,
    ranks,
    reported,
    started,
    train,
)
from tests.support.places import TRAINERS

pytestmark = pytest.mark.usefixtures("needs_torch")

# 36 steps of 128 images; group norm, so that the number of ranks changes nothing. Only the order
# of float32 sums differs (1e-7 in the first step), and training amplifies that: over 3 seeds up to
# 4e-6 at this rate, but 1.5e-4 at ten times of it. A wrong share of the batch differs at once.
DDP = ("ddp.py", "--model", "cnn-gn", "--limit", "1536", "--epochs", "3", "--save-every", "5",
       "--eval", "end", "--lr", "0.001")  # fmt: skip


# Slurm's own signal at the limit is the rarer one: the job asks for USR1 before it.
SIGNALS = [signal.SIGUSR1, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[int, float]:
    """The losses of two ranks that nothing interrupts."""
    run_dir = tmp_path_factory.mktemp("reference")
    job = train(run_dir, 2, *DDP, "--batch-size", "64")
    found = losses(run_dir)
    assert list(found) == list(range(1, 37))
    assert found[36] < 0.8 * found[1]
    assert "test accuracy" in job.output().splitlines()[-1]
    return found


@pytest.mark.parametrize("world_size", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_the_number_of_ranks_does_not_change_the_training(
    tmp_path: Path, reference: dict[int, float], world_size: int
) -> None:
    train(tmp_path, world_size, *DDP, "--batch-size", str(128 // world_size))
    assert losses(tmp_path) == pytest.approx(reference, abs=1e-4)
    assert reported(tmp_path)[0].items() >= {"world_size": world_size, "global_batch": 128}.items()


def test_a_killed_training_resumes_with_the_same_losses(
    tmp_path: Path, reference: dict[int, float]
) -> None:
    words = (*DDP, "--batch-size", "64")
    with ranks(tmp_path, 2, *words) as job:
        job.wait_for_step(13)  # in the second epoch, after a checkpoint at 10
        job.signal(signal.SIGKILL)
        assert job.wait() == [-signal.SIGKILL] * 2
    killed_at = max(losses(tmp_path))
    assert killed_at < 36
    train(tmp_path, 2, *words, "--resume")
    starts = [line for line in reported(tmp_path) if line.get("event") == "start"]
    assert starts[1]["first_step"] == killed_at // 5 * 5 + 1
    assert losses(tmp_path) == reference  # to the last digit


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_to_one_rank_saves_and_ends_all(
    tmp_path: Path, reference: dict[int, float], number: signal.Signals
) -> None:
    with ranks(tmp_path, 2, *DDP, "--batch-size", "64") as job:
        job.wait_for_step(6)
        job.processes[1].send_signal(number)
        assert job.wait() == [STOPPED_EARLY] * 2, job.output()
    stop = reported(tmp_path)[-1]
    assert stop["event"] == "stop"
    assert stop["step"] == max(losses(tmp_path)) < 36
    # The rest on another number of ranks, at the same global batch.
    train(tmp_path, 1, *DDP, "--batch-size", "128", "--resume")
    assert losses(tmp_path) == pytest.approx(reference, abs=1e-4)
    assert len(reported(tmp_path)) == 36 + len(
        [line for line in reported(tmp_path) if "event" in line]
    )


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
        *(str(TRAINERS / DDP[0]), *DDP[1:], "--batch-size", "64", "--epochs", "50"),
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
    assert (tmp_path / "checkpoints" / "last.pt").exists()


def children(pid: int) -> list[int]:
    if not sys.platform.startswith("linux"):
        pytest.skip("needs /proc")
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_wrong_data_ends_every_rank_before_they_meet(tmp_path: Path) -> None:
    with ranks(tmp_path, 2, *DDP, "--data", "/nowhere") as job:
        assert job.wait() == [2, 2]
    assert job.output().count("There is no data folder /nowhere") == 1
    assert "Traceback" not in job.output()
