"""One rank's heartbeat: writes its progress for the ranks of its node in a microsecond."""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monitor.watchdog import Watch


DOING = ("start", "step", "data", "save", "test", "compile")
"""A rank's possible activities; a record contains the index in this list."""
SLOT = 64
_MOVED = struct.Struct("=QQQd")  # count, step, doing, longest
_THREAD = struct.Struct("=QQ")  # pulse, pid
_SHARED = Path("/dev/shm")


@dataclass(frozen=True)
class Record:
    """The last record of one rank."""

    count: int
    """Progress count; every rank advances equally often per step."""
    step: int
    doing: str
    longest: float
    """Longest pause of this activity so far, in seconds."""
    pulse: int
    """Grows while any thread of the process runs, even if its training waits."""
    pid: int


class Records:
    """The records of the ranks on one node, in rank order."""

    def __init__(self, path: Path, ranks: int) -> None:
        """Map the file at `path`, which may already exist."""
        self.path = path
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(file).st_size < SLOT * ranks:
                os.ftruncate(file, SLOT * ranks)
            self._memory = mmap.mmap(file, SLOT * ranks)
        finally:
            os.close(file)

    def move(self, place: int, count: int, step: int, doing: int, longest: float) -> None:
        """Write a rank's progress."""
        _MOVED.pack_into(self._memory, place * SLOT, count, step, doing, longest)

    def pulse(self, place: int, number: int) -> None:
        """Record that the rank's process runs."""
        _THREAD.pack_into(self._memory, place * SLOT + _MOVED.size, number, os.getpid())

    def read(self, place: int) -> Record:
        """Return the last record of a rank."""
        count, step, doing, longest = _MOVED.unpack_from(self._memory, place * SLOT)
        pulse, pid = _THREAD.unpack_from(self._memory, place * SLOT + _MOVED.size)
        return Record(count, step, DOING[doing], longest, pulse, pid)

    def unlink(self) -> None:
        """Remove the file's name; processes that mapped it keep access."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def shared_path(token: str, node: str) -> Path:
    """Return the path of a node's records, which no other user can guess: `token` is secret."""
    folder = _SHARED if os.access(_SHARED, os.W_OK) else Path(tempfile.gettempdir())
    return folder / f"heartbeat-{token}-{node}"


def node_name() -> str:
    """Return the node's name from Slurm, else the machine's."""
    # If all nodes are one machine (lumitui's own srun), LUMITUI_NODE names this node.
    told = os.environ.get("LUMITUI_NODE") or os.environ.get("SLURMD_NODENAME")
    return (told or os.uname().nodename).partition(".")[0].replace("/", "_")


WARM_STEPS = 3
"""Number of first steps that count as the start: they compile and choose kernels, which may take
long."""
_START, _STEP = DOING.index("start"), DOING.index("step")


class Heart:
    """Writes this rank's progress; does nothing before `start` or if that fails."""

    def __init__(self) -> None:
        self._records: Records | None = None
        self._place = 0
        self._count = self._step = self._steps = 0
        self._doing = _START
        self._moved = time.monotonic()
        self._longest = [0.0] * len(DOING)
        self._watch: Watch | None = None

    def start(
        self,
        rank: int,
        run_dir: Path,
        gather: Callable[[object], Sequence[object]] = lambda value: [value],
    ) -> str:
        """Find the ranks of this node and watch them; every rank must call it, at the same point.

        `gather` returns every rank's value, in rank order; without it, there is one rank.

        Returns:
            Why this node is not watched; '' if it is.
        """
        mine = node_name(), secrets.token_hex(16)
        all_of_them: list[tuple[str, str]] = list(gather(mine))  # type: ignore[arg-type]
        nodes = [node for node, _ in all_of_them]
        here = [other for other, node in enumerate(nodes) if node == mine[0]]
        self._place = here.index(rank)
        trouble = ""
        try:
            self._records = Records(shared_path(all_of_them[0][1], mine[0]), len(here))
            self._records.move(self._place, _sign(mine[1]), 0, _START, 0.0)
        except OSError as error:
            trouble = f"rank {rank} on {mine[0]}: {error}"
        troubles = [str(one) for one in gather(trouble) if one]
        # Every rank of the node has mapped it, so its name can go.
        if self._records:
            self._records.unlink()
            # Ranks in separate containers may each have their own /dev/shm. They would see the
            # others as hung, and end a healthy training.
            signs = [_sign(all_of_them[other][1]) for other in here]
            if signs != [self._records.read(place).count for place in range(len(here))]:
                trouble = (
                    f"the ranks of {mine[0]} do not share memory in {self._records.path.parent}"
                )
        troubles += [str(one) for one in gather(trouble) if one]
        if troubles or self._records is None:
            self._records = None
            return troubles[0]
        self._write()
        from monitor.watchdog import Place, Watch  # which reads these records

        place = Place(rank, self._place, dict(enumerate(nodes)), run_dir)
        self._watch = Watch(self._records, place)
        threading.Thread(target=self._watch.run, name="heartbeat", daemon=True).start()
        return ""

    def step(self, step: int) -> None:
        """Record that this rank begins a step by loading data."""
        self._step = step
        self._steps += 1
        self.move("data")

    def move(self, doing: str = "step") -> None:
        """Record that this rank has completed a part of a step, and its new activity."""
        number = DOING.index(doing)
        self._to(_START if self._steps <= WARM_STEPS else number)

    @contextlib.contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Record this rank's enclosed activity outside a step: save, test or compile."""
        before = self._doing
        self._to(DOING.index(what))
        try:
            yield
        finally:
            self._to(before)

    def close(self) -> None:
        """Stop watching, because ranks end at different times."""
        if self._watch:
            self._watch.stop()
        self._records = None

    def _to(self, doing: int) -> None:
        now = time.monotonic()
        self._longest[self._doing] = max(self._longest[self._doing], now - self._moved)
        self._moved, self._doing = now, doing
        self._count += 1
        self._write()

    def _write(self) -> None:
        if self._records:
            doing = self._doing
            self._records.move(self._place, self._count, self._step, doing, self._longest[doing])


def _sign(token: str) -> int:
    """Return a rank's record for the others of its node."""
    return int(token[:15], 16)


HEART = Heart()
"""This process's heart; a forked child has none of its parent's threads, and starts its own."""
