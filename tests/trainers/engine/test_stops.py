"""What is a wish to stop and what is none; and one training at a time in a run folder."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.places import TRAINERS
from tests.support.trainers.forked import PYTHON
from tests.support.trainers.ranks import (
    alone,
    events,
    held_at,
    losses,
    ranks,
    reported,
    train,
    train_alone,
)

SHORT = ("ddp.py", "--model", "cnn-gn", "--limit", "512", "--epochs", "1", "--eval", "never")

RECEIVED = f"""
import os, signal, sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name == "pathlib" and "early" in sys.argv:
            os.kill(os.getpid(), signal.SIGUSR1)
sys.meta_path.insert(0, Finder)
sys.path.insert(0, {str(TRAINERS)!r})
from monitor.stop_request import STOP
print(STOP.received)
"""


def blocked() -> None:
    """As `env --block-signal=USR1` does; and the signal comes before Python runs."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    os.kill(os.getpid(), signal.SIGUSR1)


@pytest.mark.parametrize("when", ["early", "before"])
def test_a_signal_right_after_the_start_is_a_wish_to_stop(when: str) -> None:
    done = subprocess.run(
        [PYTHON, "-I", "-S", "-c", RECEIVED, when],
        preexec_fn=blocked if when == "before" else None,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "SIGUSR1\n"), done.stderr


# Rank 1 fails at its fourth step; its sockets stay open, as nccl's peers see it: they hang.
FAILS = """
import os, time
from engine import training
real, leave = training.Training.step, os._exit
def step(self, batches):
    if self.me.rank == 1 and self.at.step == 3:
        raise RuntimeError("out of luck")
    return real(self, batches)
def stays(code):
    while os.path.exists("hold"):
        time.sleep(0.01)
    leave(code)
training.Training.step = step
if os.environ["RANK"] == "1":
    os._exit = stays
"""


@pytest.mark.usefixtures("needs_torch")
def test_a_signal_because_another_rank_failed_is_no_wish_to_stop(tmp_path: Path) -> None:
    (tmp_path / "hold").touch()
    (tmp_path / "errors").mkdir()
    (tmp_path / "errors" / "rank-7.json").write_text("{}")  # of an attempt with more ranks
    with ranks(tmp_path, 2, *SHORT, before=FAILS, TRAINER_STILL_SECONDS="4") as job:
        ends = time.monotonic() + 60
        while not (tmp_path / "errors" / "rank-1.json").exists():
            assert time.monotonic() < ends, job.output()
            time.sleep(0.02)
        time.sleep(1)  # by now rank 0 waits for it in C, where no handler of Python's runs
        job.processes[0].send_signal(signal.SIGTERM)  # of Slurm 26.05
        assert job.processes[0].wait(timeout=60) == 1
        (tmp_path / "hold").unlink()
        assert job.processes[1].wait(timeout=60) == 1
    assert "Rank 1 has failed, so this rank also ends." in job.output()
    assert not events(tmp_path, "stop")
    error = json.loads((tmp_path / "errors" / "rank-1.json").read_text())
    assert "out of luck" in error["message"]["message"]


@pytest.mark.usefixtures("needs_torch")
def test_two_starts_at_once_write_no_step_twice(tmp_path: Path) -> None:
    with alone(tmp_path, *SHORT, before=held_at(tmp_path, 3)) as first:
        first.wait_for_step(3)
        code, said = train_alone(tmp_path, *SHORT)
        assert code == 2 and "Another training is running in" in said, said
        assert "Set RUN_DIR to another folder, or stop it first: touch" in said
        first.release()
        assert first.wait() == [0], first.output()
    steps = [line["step"] for line in reported(tmp_path) if "loss" in line]
    assert steps == list(range(1, 17))
    assert train_alone(tmp_path, *SHORT)[0] == 0  # one after the other is no harm


@pytest.mark.usefixtures("needs_torch")
def test_a_loss_is_the_same_however_many_are_read_at_once(tmp_path: Path) -> None:
    """Float32 sums of four ranks depended on a number's place in the message."""
    words = (*SHORT, "--batch-size", "8", "--save-every", "100")
    for every in ("1", "10"):
        train(tmp_path / every, 4, *words, "--log-every", every)
    assert losses(tmp_path / "1") == losses(tmp_path / "10")
