"""The jobs of the embedded site: their records, and the FIFOs to their supervisors.

Standard library only, see `supervisor`. A run's record is RUN/attempt-1.state, renamed into place.
A job's own folder is jobs/ID: a copy of the script, the commands that come first in PATH, and the
door, a FIFO that the supervisor reads. If nothing reads the door, the supervisor is gone; its pid
is no proof, because another process may have it by then.
"""

import contextlib
import json
import os
import shutil
import socket
import stat
import sys
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lumitui.remote.site.run_folder import CANCELLED, JOB_SCRIPT, STATE, attempt_log

LIVE = ("RUNNING", "COMPLETING")
"""States of an unfinished job."""

DOOR = "door"
"""In a job's own folder: the FIFO that its supervisor reads."""
COMMANDS = "bin"
"""In a job's own folder: the stand-ins for Slurm's commands."""
STEPS = "steps"
"""In a job's own folder: the pids of its sruns and the numbers of its steps, as file names."""
CANCEL = b"cancel\n"
REQUEUE = b"requeue\n"
"""Messages to a supervisor."""
_RUN = "run"


def jobs_folder() -> Path:
    """Return the parent of the job folders, which are named by id."""
    state = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    return Path(state) / "lumitui" / "jobs"


def new_job(run: Path) -> Path:
    """Create the folder of a new job and return it; its name is the job's id, the next free number.

    job.sh derives the ranks' port from the id, so an id whose port is taken is skipped.
    """
    jobs = jobs_folder()
    jobs.mkdir(mode=0o700, parents=True, exist_ok=True)
    taken = sorted(int(entry.name) for entry in jobs.iterdir() if entry.name.isdecimal())
    for number in taken[:-1]:
        folder = jobs / str(number)
        if not (folder / _RUN).exists() and knock(folder / DOOR) is None:
            shutil.rmtree(folder, ignore_errors=True)
    number = (taken or [0])[-1]
    while True:
        number += 1
        if _port_is_taken(10000 + number % 10000):
            continue
        try:
            (jobs / str(number)).mkdir(mode=0o700)
        except FileExistsError:
            continue
        (jobs / str(number) / _RUN).symlink_to(run)
        return jobs / str(number)


def _port_is_taken(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def remove_job(folder: Path) -> None:
    """Remove a job's runtime files; its number is not reused."""
    for name in (COMMANDS, STEPS):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in (JOB_SCRIPT, DOOR):
        (folder / name).unlink(missing_ok=True)


def knock(door: Path) -> int | None:
    """Return a descriptor that the job's supervisor reads; None if the supervisor is gone."""
    try:
        fd = os.open(door, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # ENXIO: no reader; ENOENT: the job has ended
        return None
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    return fd


@dataclass
class JobRecord:
    """The state of a job, in Slurm's words; times are epoch seconds."""

    job: str
    name: str
    door: str
    supervisor: int = 0
    """The supervisor's pid, for users; the door shows whether it is alive."""
    script: int = 0
    """The pid of the job's bash, which is also its session id."""
    partition: str = ""
    nodes: str = ""
    word: str = "RUNNING"
    reason: str = ""
    submitted: float = 0.0
    started: float | None = None
    ended: float | None = None
    """For a running job: when its time limit ends it."""
    exit_code: str = ""
    """As in sacct: the script's exit code, a colon, and the signal that ended it."""

    def write(self, run: Path) -> None:
        """Write the record into the run's folder atomically."""
        new = run / f".{STATE}"
        private = partial(os.open, mode=0o600)
        with open(new, "w", encoding="utf-8", opener=private) as file:
            file.write(json.dumps(asdict(self)) + "\n")
            file.flush()
            os.fsync(file.fileno())
        new.rename(run / STATE)


def read_record(run: Path) -> dict[str, Any] | None:
    """Return a run's record as written, or None."""
    try:
        data = json.loads((run / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def queue(runs: list[str]) -> int:
    """Print each run's record, if any; an unfinished job without a supervisor has lost its node."""
    for run in map(Path, runs):
        data = read_record(run)
        if data and data.get("word") in LIVE:
            door = knock(Path(str(data.get("door"))))
            if door is not None:
                os.close(door)
            else:
                # The supervisor writes the last record before it stops accepting requests.
                data = read_record(run) or data
                if data.get("word") in LIVE:
                    data |= _lost(run)
        if data:
            print(json.dumps(data))
    return 0


def _lost(run: Path) -> dict[str, object]:
    """Return the final record of a job without a supervisor, ended at its last output."""
    log = run / attempt_log(1)
    last = (log if log.exists() else run / STATE).stat().st_mtime
    reason = "its supervisor is gone: it was killed, or the machine restarted"
    return {"word": "NODE_FAIL", "reason": reason, "ended": last}


def cancel(jobs: list[tuple[str, str, str]]) -> int:
    """Tell the supervisors to end `jobs`, each given as id, run folder and name.

    First marks each run's folder; every attempt reads the mark. A job that has ended is not an
    error. Prints `gone NAME` if the id belongs to another job by now (ids start anew if the jobs'
    folder was lost), and `open NAME` if another attempt may start: the mark is missing, or no job
    is known yet.
    """
    for job, run, name in jobs:
        if job and not job.isdecimal():
            print(f"cancel: error: Invalid job id {job}", file=sys.stderr)
            return 1
        marked = _mark(Path(run))
        record = read_record(Path(run)) or {}
        folder = jobs_folder() / job
        if record.get("name") == name and job in ("", record.get("job")):
            # The record has the door's path, even if the jobs' folder has moved.
            door = knock(Path(str(record.get("door"))))
        elif job and (folder / _RUN).is_symlink() and (folder / _RUN).readlink() == Path(run):
            door = knock(folder / DOOR)
        else:
            print(f"gone {name}" if job else f"open {name}")
            continue
        if door is not None:
            os.write(door, CANCEL)
            os.close(door)
            if not marked:
                print(f"open {name}")
    return 0


def _mark(run: Path) -> bool:
    """Mark a run's folder as cancelled; return whether the mark exists."""
    with contextlib.suppress(OSError):
        os.close(os.open(run / CANCELLED, os.O_WRONLY | os.O_CREAT, 0o600))
    return (run / CANCELLED).exists()
