"""The bundled trainers as tests start them: ranks on this machine, and what they write."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tests.support.places import TRAINERS
from tests.support.servers.sshd import free_port
from tests.support.trainers.forked import Forked, Process

STOPPED_EARLY = 85  # the exit code after a wish to stop
DIVERGED = 86  # and of losses that are no numbers
OVERTAKEN = 87  # and of a start that another has followed
Load = Callable[[str], ModuleType]
"""Imports a module of the trainers: the fixture `load`."""


def clean_environ(run_dir: Path) -> dict[str, str]:
    """Return an environment with a home and a temporary folder inside the run's."""
    run_dir.mkdir(parents=True, exist_ok=True)
    (run_dir / "tmp").mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(run_dir),
        "TMPDIR": str(run_dir / "tmp"),
        "OMP_NUM_THREADS": "1",
        "RUN_DIR": str(run_dir),
    }


@dataclass(frozen=True)
class Job:
    """Ranks, or one torchrun, that are training."""

    run_dir: Path
    processes: Sequence[Process]
    outs: Sequence[Path]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to each."""
        for process in self.processes:
            process.send_signal(number)

    def wait(self) -> list[int]:
        """Return the exit codes in the order of ranks; one that compiles takes minutes if busy."""
        return [process.wait(timeout=300) for process in self.processes]

    def output(self) -> str:
        """Return what they printed."""
        return "".join(path.read_text() for path in self.outs)

    def release(self) -> None:
        """Let the ranks that are held go on."""
        (self.run_dir / "hold").unlink()

    def wait_for_step(self, step: int) -> None:
        """Wait until the loss of a step is written."""
        ends = time.monotonic() + 270
        while step not in losses(self.run_dir):
            assert time.monotonic() < ends, self.output()
            assert all(process.poll() is None for process in self.processes), self.output()
            time.sleep(0.005)


@contextmanager
def started(commands: list[list[str]], environs: list[dict[str, str]]) -> Iterator[Job]:
    """Start processes and leave none behind."""
    run_dir = Path(environs[0]["RUN_DIR"])
    processes = []
    outs = [run_dir / f"{number}.out" for number in range(len(commands))]
    for path, command, environ in zip(outs, commands, environs, strict=True):
        with path.open("w") as out:
            processes.append(
                subprocess.Popen(command, env=environ, stdout=out, stderr=out, text=True)
            )
    with none_left(Job(run_dir, processes, outs)) as job:
        yield job


@contextmanager
def none_left(job: Job) -> Iterator[Job]:
    """Kill what still runs at the end."""
    try:
        yield job
    finally:
        for process in job.processes:
            process.kill()
            process.wait(timeout=30)


HELD = """
import os, time
from engine import reporting
real = reporting.Reporter.step
def step(self, taken, **more):
    real(self, taken, **more)
    while taken.step == {step} and os.path.exists("hold"):
        time.sleep(0.005)
reporting.Reporter.step = step
"""


def held_at(run_dir: Path, step: int) -> str:
    """Python for `before` that holds every rank after a step until the job is released."""
    run_dir.mkdir(parents=True, exist_ok=True)
    (run_dir / "hold").touch()
    return HELD.format(step=step)


@contextmanager
def ranks(
    run_dir: Path, world_size: int, *words: str, before: str = "", **variables: str
) -> Iterator[Job]:
    """Start a trainer as that many ranks with srun's variables, forked from a warm process.

    `before` is Python that runs in each rank ahead of the trainer.
    """
    shared = clean_environ(run_dir) | {
        "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(world_size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }
    processes = []
    outs = [run_dir / f"{rank}.out" for rank in range(world_size)]
    for rank, out in enumerate(outs):
        out.write_text("")
        environ = shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)} | variables
        command = [str(TRAINERS / words[0]), *words[1:]]
        processes.append(Forked(command, environ, out, before))
    with none_left(Job(run_dir, processes, outs)) as job:
        yield job


@contextmanager
def alone(run_dir: Path, *words: str, before: str = "", **variables: str) -> Iterator[Job]:
    """Start a trainer, or another program, without a launcher; forked from a warm process."""
    environ = clean_environ(run_dir) | variables
    out = run_dir / f"{len(list(run_dir.glob('*.out')))}.out"
    out.write_text("")
    process = Forked([str(TRAINERS / words[0]), *words[1:]], environ, out, before)
    with none_left(Job(run_dir, [process], [out])) as job:
        yield job


def train_alone(run_dir: Path, *words: str, before: str = "", **variables: str) -> tuple[int, str]:
    """Run a trainer to its end without a launcher; return its exit code and what it printed."""
    with alone(run_dir, *words, before=before, **variables) as job:
        return job.wait()[0], job.output()


def train(run_dir: Path, world_size: int, *words: str, before: str = "") -> Job:
    """Train to the end."""
    with ranks(run_dir, world_size, *words, before=before) as job:
        assert job.wait() == [0] * world_size, job.output()
    return job


def reported(run_dir: Path) -> list[dict[str, object]]:
    """Return the lines of metrics.jsonl."""
    path = run_dir / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def checkpoints(run_dir: Path) -> list[str]:
    """Return the names of the whole checkpoints, the oldest first."""
    return sorted(path.parent.name for path in run_dir.glob("checkpoints/*/manifest.json"))


def events(run_dir: Path, event: str) -> list[dict[str, object]]:
    """Return the lines of one event."""
    return [line for line in reported(run_dir) if line.get("event") == event]


def losses(run_dir: Path) -> dict[int, float]:
    """Return the loss by step; the later one of a step that was trained twice."""
    found = {}
    for line in reported(run_dir):
        step, loss = line.get("step"), line.get("loss")
        if isinstance(step, int) and isinstance(loss, float):
            found[step] = loss
    return found
