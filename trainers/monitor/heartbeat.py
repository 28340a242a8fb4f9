"""One rank's heartbeat: it writes its progress in a microsecond, for the ranks of its node."""

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
"""A rank's possible activities; a record has the index in this list."""
SLOT = 64
_MOVED = struct.Struct("=QQQd")  # count, step, doing, longest
_THREAD = struct.Struct("=QQ")  # pulse, pid
_SHARED = Path("/dev/shm")


@dataclass(frozen=True)
class Record:
    """The last record of one rank."""

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
        """Write a rank's progress."""
        _MOVED.pack_into(self._memory, place * SLOT, count, step, doing, longest)

    def pulse(self, place: int, number: int) -> None:
        """Write that the rank's process runs."""
        _THREAD.pack_into(self._memory, place * SLOT + _MOVED.size, number, os.getpid())

    def read(self, place: int) -> Record:
        """Return the last record of a rank."""
        count, step, doing, longest = _MOVED.unpack_from(self._memory, place * SLOT)
        pulse, pid = _THREAD.unpack_from(self._memory, place * SLOT + _MOVED.size)
        return Record(count, step, DOING[doing], longest, pulse, pid)

    def unlink(self) -> None:
        """Remove the file's name; processes that mapped it keep it."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def shared_path(token: str, node: str) -> Path:
    """Return where a node's ranks meet; `token` is secret, so no other user is there first."""
    folder = _SHARED if os.access(_SHARED, os.W_OK) else Path(tempfile.gettempdir())
    return folder / f"heartbeat-{token}-{node}"


def node_name() -> str:
    """Return the node's name from Slurm, else the machine's."""
    # Where all nodes are one machine (lumitui's own srun), LUMITUI_NODE says which one this is.
    told = os.environ.get("LUMITUI_NODE") or os.environ.get("SLURMD_NODENAME")
    return (told or os.uname().nodename).partition(".")[0].replace("/", "_")


WARM_STEPS = 3
"""The first steps compile and choose kernels: they may take long, and count as the start."""
_START, _STEP = DOING.index("start"), DOING.index("step")


class Heart:
    """Writes this rank's progress. Before `start`, and if that fails, it writes nothing."""

    def __init__(self) -> None:
        """Begin without a place among the ranks."""
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
        """Meet the ranks of this node and watch them; every rank calls it, at the same place.

        `gather` returns every rank's value, in the order of ranks; without it there is one rank.

        Returns:
            Why nobody watches; '' where all is well.
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
        # Every rank of the node has it now: it needs no name any more.
        if self._records:
            self._records.unlink()
            # Ranks in containers of their own may have a /dev/shm each. They would see the others
            # stand still, and end a healthy training.
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
        from monitor.watchdog import Place, Watch  # which reads what is written here

        place = Place(rank, self._place, dict(enumerate(nodes)), run_dir)
        self._watch = Watch(self._records, place)
        threading.Thread(target=self._watch.run, name="heartbeat", daemon=True).start()
        return ""

    def step(self, step: int) -> None:
        """Say that this rank begins a step, by loading its data."""
        self._step = step
        self._steps += 1
        self.move("data")

    def move(self, doing: str = "step") -> None:
        """Record that this rank has progressed a part of a step, and its new activity."""
        number = DOING.index(doing)
        self._to(_START if self._steps <= WARM_STEPS else number)

    @contextlib.contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Record this rank's activity inside that is not a step: save, test or compile."""
        before = self._doing
        self._to(DOING.index(what))
        try:
            yield
        finally:
            self._to(before)

    def close(self) -> None:
        """Watch no more: the ranks end, each at its own time."""
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
