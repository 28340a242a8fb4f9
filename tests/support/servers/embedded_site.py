"""Submits scripts to the embedded site, and waits for what becomes of them."""

import hashlib
import secrets
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from lumitui.remote.laptop.scheduler import Process
from lumitui.remote.scheduler.scheduler_protocol import Answer, JobStatus, Submission, Watch
from lumitui.remote.transport.local import Local

LIMIT = 60.0  # seconds to wait for anything
HEAD = "#!/bin/bash -l\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2 --cpus-per-task=1\n"


def until(check: Callable[[], object], what: str = "") -> None:
    """Wait until `check()` is true."""
    deadline = time.monotonic() + LIMIT
    while not check():
        assert time.monotonic() < deadline, what or check
        time.sleep(0.05)


def running(mark: str) -> list[str]:
    """Return the processes with `mark` in their arguments, zombies left out."""
    rows = subprocess.run(
        ["ps", "-A", "-ww", "-o", "stat=", "-o", "pid=", "-o", "args="],
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    return [row for row in rows if mark in row and not row.startswith("Z")]


class EmbeddedSite:
    """Submits jobs to the embedded site."""

    def __init__(self, root: Path) -> None:
        """Runs lie in `root`."""
        self.root, self.process = root, Process(Local())

    def submit(self, body: str, head: str = HEAD) -> tuple[Path, Answer]:
        """Submit the script `head` and `body`."""
        run = self.root / f"run-{secrets.token_hex(4)}"
        run.mkdir()
        (run / "job.sh").write_text(head + body + "\n")
        digest = hashlib.sha256((run / "job.sh").read_bytes()).hexdigest()
        return run, self.process.submit(Submission(str(run), run.name, "token", digest))

    def poll(self, run: Path, answer: Answer) -> JobStatus:
        """Poll one job."""
        job_id = answer.job_id or ""
        return self.process.poll([Watch(run.name, str(run), job_id)]).jobs[run.name]

    def cancel(self, run: Path, answer: Answer) -> None:
        """Cancel one job."""
        self.process.cancel([Watch(run.name, str(run), answer.job_id or "")])

    def end(self, run: Path, answer: Answer) -> JobStatus:
        """Wait for the job's end."""
        until(lambda: self.poll(run, answer).state.is_final, log(run))
        return self.poll(run, answer)


def log(run: Path) -> str:
    """Return what the job wrote."""
    return (run / "attempt-1.out").read_text() if (run / "attempt-1.out").exists() else ""
