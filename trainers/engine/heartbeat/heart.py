"""One rank's heartbeat: it says what it does, in a microsecond, and a thread watches the others."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from engine.heartbeat.watch import DOING, Place, Records, Watch, node_name, shared_path

WARM_STEPS = 3
"""The first steps compile and choose kernels: they may take long, and count as the start."""
_START, _STEP = DOING.index("start"), DOING.index("step")

Value = TypeVar("Value")


class Heart:
    """Says how far this rank is. Before `start`, and where that fails, it says nothing."""

    def __init__(self) -> None:
        """Begin without a place among the ranks."""
        self._records: Records | None = None
        self._place = 0
        self._count = self._step = self._steps = 0
        self._doing = _START
        self._moved = time.monotonic()
        self._longest = [0.0] * len(DOING)
        self._watch: Watch | None = None

    def start(self, rank: int, run_dir: Path, gather: Callable[[object], Sequence[object]]) -> str:
        """Meet the ranks of this node and watch them; every rank calls it, at the same place.

        `gather` returns every rank's value, in the order of ranks.

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
        """Say that this rank has come a part of a step further, and what it does now."""
        number = DOING.index(doing)
        self._to(_START if self._steps <= WARM_STEPS else number)

    @contextlib.contextmanager
    def doing(self, what: str) -> Iterator[None]:
        """Say what this rank does inside that is no step: save, test or compile."""
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
    """Return what a rank writes for the others of its node to read."""
    return int(token[:15], 16)


HEART = Heart()
"""This process's heart; a forked child has none of its parent's threads, and starts its own."""
