"""The jobs of the embedded site: their records, and the doors by which supervisors are reached.

Standard library only, see `supervisor`. A run's record is RUN/attempt-1.state, renamed into
place. A job's own folder, jobs/ID, is what slurmd's spool folder is: a copy of the script, the
commands that stand first in PATH, and the door, a FIFO that the supervisor reads. A door nobody
reads means that the supervisor is gone: no pid is asked, which another process may have by then.
"""

import json
import os
import shutil
import socket
import stat
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lumitui.remote.run_folder import JOB_SCRIPT, STATE, attempt_log

LIVE = ("RUNNING", "COMPLETING")
"""Words of a job that has not ended."""


def jobs_folder() -> Path:
    """Return the folder of all jobs' own folders, by id."""
    state = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    return Path(state) / "lumitui" / "jobs"


def new_job(run: Path) -> Path:
    """Make the folder of a new job, its name the id: the next number that is free.

    job.sh makes the ranks' port of the id, so that an id whose port is taken is left out.
    """
    jobs = jobs_folder()
    jobs.mkdir(mode=0o700, parents=True, exist_ok=True)
    taken = sorted(int(entry.name) for entry in jobs.iterdir() if entry.name.isdecimal())
    for number in taken[:-1]:
        folder = jobs / str(number)
        if not (folder / "run").exists() and knock(folder / "door") is None:
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
        (jobs / str(number) / "run").symlink_to(run)
        return jobs / str(number)


def _port_is_taken(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def remove_job(spool: Path) -> None:
    """Remove what a job needed while it ran; its number stays taken."""
    for name in ("bin", "steps"):
        shutil.rmtree(spool / name, ignore_errors=True)
    for name in (JOB_SCRIPT, "door"):
        (spool / name).unlink(missing_ok=True)


def knock(door: Path) -> int | None:
    """Return a descriptor that the job's supervisor reads; None when it is gone."""
    try:
        fd = os.open(door, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:  # ENXIO: nobody reads; ENOENT: the job has ended
        return None
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    return fd


@dataclass
class Record:
    """The state of a job, as Slurm's words and epoch seconds."""

    job: str
    name: str
    door: str
    supervisor: int = 0
    """A pid for a person who looks; whether it lives is asked at the door."""
    script: int = 0
    """The pid of bash, which is the job's session."""
    partition: str = ""
    nodes: str = ""
    word: str = "RUNNING"
    reason: str = ""
    submitted: float = 0.0
    started: float | None = None
    ended: float | None = None
    """While it runs: when its limit ends it."""
    exit_code: str = ""
    """Like sacct's: the script's code, and the signal that ended it."""

    def write(self, run: Path) -> None:
        """Put it into the run's folder: aside, and renamed."""
        new = run / f".{STATE}"
        with open(new, "w", encoding="utf-8", opener=_private) as file:
            file.write(json.dumps(asdict(self)) + "\n")
            file.flush()
            os.fsync(file.fileno())
        new.rename(run / STATE)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def read_record(run: Path) -> dict[str, Any] | None:
    """Return a run's record as it is; None when there is none."""
    try:
        data = json.loads((run / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def queue(runs: list[str]) -> int:
    """Print the record of each run that has one; a live one without supervisor is a lost node."""
    for run in map(Path, runs):
        data = read_record(run)
        if data and data.get("word") in LIVE:
            door = knock(Path(str(data.get("door"))))
            if door is not None:
                os.close(door)
            else:
                # The last record is written before the door closes.
                data = read_record(run) or data
                if data.get("word") in LIVE:
                    data |= _lost(run)
        if data:
            print(json.dumps(data))
    return 0


def _lost(run: Path) -> dict[str, object]:
    """Return what a record without supervisor says; its last words are the time of its end."""
    log = run / attempt_log(1)
    last = (log if log.exists() else run / STATE).stat().st_mtime
    reason = "its supervisor is gone: the machine was restarted, or it was killed"
    return {"word": "NODE_FAIL", "reason": reason, "ended": last}


def cancel(ids: list[str]) -> int:
    """Ask the supervisors of jobs to end them; one that ended has none, which is no error."""
    for job in ids:
        if not job.isdecimal():
            print(f"cancel: error: Invalid job id {job}", file=sys.stderr)
            return 1
        door = knock(jobs_folder() / job / "door")
        if door is not None:
            os.write(door, b"cancel\n")
            os.close(door)
    return 0
