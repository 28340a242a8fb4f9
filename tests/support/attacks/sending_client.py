"""A client that can be killed: a process of its own that sends one run and waits at every step.

The processes are forked from a server that has imported everything, so that one costs 20 ms; none
shares anything with the test but a pipe.
"""

import multiprocessing
import signal
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Self

import lumitui.remote.ssh.connection  # noqa: F401  # imported late by the program; here once for all clients
from lumitui.app.job.settings import Settings
from lumitui.app.job.spec import JobSpec
from lumitui.app.runs import Runs
from lumitui.remote.site.errors import LumiError

PATIENCE = 150.0
"""Seconds for a step: above every limit of the program itself (120 s for the submit step)."""

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([__name__])


TRACEBACK = "Traceback"
"""The error of a client that ended with one: no fault may lead to that."""


@dataclass(frozen=True)
class Sent:
    """What a client that was not killed told its person at the end."""

    error: str
    """The error's class, or nothing."""
    words: str
    """The state of the run, or the error's words."""


def send_run(
    wire: "Connection[str | Sent, None]", settings: Settings, work: Path, site: str, ahead: float
) -> None:
    """Send the counted job from `work`; tell every step, and go on when told to.

    The client's clock is `ahead` seconds ahead of the others'.
    """
    true_time = time.time
    time.time = lambda: true_time() + ahead
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who runs the test

    def report(step: str, words: str) -> None:
        wire.send(step)
        wire.recv()

    runs = Runs(settings)
    try:
        run = runs.send(runs.preview(counted_job(site), work), report=report)
        sent = Sent("", run.state.value)
    except LumiError as error:
        sent = Sent(type(error).__name__, str(error))
    except Exception:
        sent = Sent(TRACEBACK, traceback.format_exc())
    runs.close()
    wire.send(sent)
    wire.recv()


class Client:
    """One such process. It waits at its first step when it is made; `with` ends it."""

    def __init__(self, settings: Settings, work: Path, site: str, ahead: float = 0.0) -> None:
        """Start it and wait until it is at the first step; its clock may be `ahead`, in seconds."""
        self._wire, theirs = _processes.Pipe()
        self._process = _processes.Process(
            target=send_run, args=(theirs, settings, work, site, ahead), daemon=True
        )
        self._process.start()
        theirs.close()
        self.steps: list[str] = []
        """The steps it has told, in order; it waits at the last one."""
        self.sent: Sent | None = None
        self._take()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the process, whatever it does."""
        self.kill()

    def advance(self, step: str) -> bool:
        """Let it go on until it waits at `step`; false when it ended before."""
        while self.sent is None and self.steps[-1] != step:
            self.pass_step()
        return self.sent is None

    def release(self) -> None:
        """Let it begin the step it waits at, and return at once."""
        self._wire.send(None)

    def reached(self, seconds: float) -> bool:
        """Return whether the step after a `release` is reached within `seconds`."""
        if not self._wire.poll(seconds):
            return False
        self._take()
        return True

    def pass_step(self) -> None:
        """Let it do one step, and wait until it is at the next one or at its end."""
        self.release()
        self.await_step()

    def await_step(self) -> None:
        """Wait until it is at the next step or at its end, after a `release`."""
        assert self.reached(PATIENCE), f"the client hangs in step {self.steps[-1]}"

    def finish(self) -> None:
        """Let it go on to its end."""
        while self.sent is None:
            self.pass_step()

    def kill(self) -> None:
        """End it by SIGKILL, now."""
        self._process.kill()
        self._process.join(10)

    @property
    def ended_by(self) -> int:
        """The signal that ended it; 0 while it lives or when it ended by itself."""
        return -min(0, self._process.exitcode or 0)

    def _take(self) -> None:
        assert self._wire.poll(PATIENCE), "the client tells nothing"
        told = self._wire.recv()
        if isinstance(told, Sent):
            self.sent = told
        else:
            self.steps.append(told)


PROGRAM = """#!/bin/bash
echo "$SLURM_JOB_ID" >>"$RUN_DIR/trained"
"""
"""What the job does: a line for each time it was done; it fails when that cannot be written."""


def counted_project(folder: Path) -> Path:
    """Return a project whose program counts in the run's folder how often it ran."""
    folder.mkdir(parents=True)
    (folder / "program").write_text(PROGRAM)
    (folder / "program").chmod(0o755)
    return folder


def counted_job(site: str) -> JobSpec:
    """Return the quickest job there is: no srun, no image, one core."""
    return JobSpec.model_validate(
        {
            "name": "counted",
            "site": site,
            "account": "project_462000001",
            "partition": "small-g",
            "gpus_per_node": 1,
            "cpus_per_task": 1,
            "memory": "500M",
            "time": "00:05:00",
            "launcher": "plain",
            "strategy": "single",
            "script": "program",
            "proof": "off",
            "container": {"none": True},
        }
    )
