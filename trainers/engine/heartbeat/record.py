"""The records of a node's ranks: one piece of memory that all of them map, 64 bytes a rank.

It is a file in the node's memory that has no name any more once every rank has it: whatever is
killed, nothing is left behind.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path

DOING = ("start", "step", "data", "save", "test", "compile")
"""What a rank may do; a record has its place in this list."""
SLOT = 64
_MOVED = struct.Struct("=QQQd")  # count, step, doing, longest
_THREAD = struct.Struct("=QQ")  # pulse, pid
_SHARED = Path("/dev/shm")


@dataclass(frozen=True)
class Record:
    """What one rank last wrote."""

    count: int
    """How often it has moved. Every rank moves as often in each step."""
    step: int
    doing: str
    longest: float
    """Seconds of its longest pause so far while it did this."""
    pulse: int
    """Grows while a thread of the process runs, whatever its training waits for."""
    pid: int


class Records:
    """The records of the ranks on one node, in the order of ranks."""

    def __init__(self, path: Path, ranks: int) -> None:
        """Map the file at `path`, which may be there already."""
        self.path = path
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(file).st_size < SLOT * ranks:
                os.ftruncate(file, SLOT * ranks)
            self._memory = mmap.mmap(file, SLOT * ranks)
        finally:
            os.close(file)

    def move(self, place: int, count: int, step: int, doing: int, longest: float) -> None:
        """Write how far a rank is."""
        _MOVED.pack_into(self._memory, place * SLOT, count, step, doing, longest)

    def pulse(self, place: int, number: int) -> None:
        """Write that the rank's process runs."""
        _THREAD.pack_into(self._memory, place * SLOT + _MOVED.size, number, os.getpid())

    def read(self, place: int) -> Record:
        """Return what a rank last wrote."""
        count, step, doing, longest = _MOVED.unpack_from(self._memory, place * SLOT)
        pulse, pid = _THREAD.unpack_from(self._memory, place * SLOT + _MOVED.size)
        return Record(count, step, DOING[doing], longest, pulse, pid)

    def unlink(self) -> None:
        """Take the file's name away; those who have mapped it keep it."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def shared_path(token: str, node: str) -> Path:
    """Return where the ranks of a node meet; `token` is secret, so nobody else is there first."""
    folder = _SHARED if os.access(_SHARED, os.W_OK) else Path(tempfile.gettempdir())
    return folder / f"heartbeat-{token}-{node}"


def node_name() -> str:
    """Return the node's name as Slurm says it, else the machine's."""
    # Where all nodes are one machine (lumitui's own srun), LUMITUI_NODE says which one this is.
    told = os.environ.get("LUMITUI_NODE") or os.environ.get("SLURMD_NODENAME")
    return (told or os.uname().nodename).partition(".")[0].replace("/", "_")


def process_state(pid: int) -> str:
    """Return the kernel's letter for a process of this node: T stopped, D in the kernel; or ''."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""  # macOS, or a container that does not show it
    return text.rpartition(")")[2].split()[0]
