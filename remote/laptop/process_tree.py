"""The process tree, and signals to many processes.

Standard library only, see `supervisor`. Uses ps(1), which Linux and macOS have.
"""

import contextlib
import os
import subprocess
from pathlib import Path

KILL_WAIT = float(os.environ.get("LUMITUI_KILL_WAIT", "10"))
"""Seconds from SIGTERM to SIGKILL. Slurm's KillWait is 30 by default; here, no one waits."""
STEPS_VARIABLE = "LUMITUI_STEPS"
"""Variable with the folder where each srun of a job writes its pid; its descendants are tasks."""


def processes() -> dict[int, int]:
    """Return the parent of every process that is not a zombie, from ps(1) or /proc."""
    # One -o each: on BSD the text after `pid=` is a title to the end of the argument.
    try:
        with subprocess.Popen(
            ["ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "stat="],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as ps:
            assert ps.stdout
            lines = ps.stdout.read().splitlines()
        rows = [line.split() for line in lines]
        if ps.returncode == 0 and rows:
            own = str(ps.pid)
            return {
                int(p): int(parent) for p, parent, state in rows if p != own and state[0] != "Z"
            }
    except FileNotFoundError:
        pass  # small Linux images have no ps
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # ended meanwhile
            state, parent = entry.read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(entry.parent.name)] = int(parent)
    return parents


def below(roots: set[int], parents: dict[int, int]) -> set[int]:
    """Return the descendants of `roots`."""
    descendants: set[int] = set()
    new = set(roots)
    while new:
        new = {pid for pid, parent in parents.items() if parent in new} - descendants
        descendants |= new
    return descendants


def session_of(pid: int) -> int:
    """Return the session of a process; 0 if the process has ended."""
    try:
        return os.getsid(pid)
    except (ProcessLookupError, PermissionError):
        return 0


def send(pids: set[int], number: int) -> None:
    """Send signal `number` to `pids`; an ended process is not an error."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
