"""Finds the rank that the others wait for: a thread in every rank watches its node's ranks.

One rank of a node reports for all. If its process is stopped or hangs as a whole, the next rank of
the node reports. Stalled nodes exchange messages through the run folder; the first of them writes
`hung.json`, which lumitui polls, and a line in the log.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from monitor.heartbeat import Record, Records
from monitor.stop_request import FAILED, STOP

HUNG = 88
"""Exit code of a training run that ended because a rank hung for TRAINER_HANG_SECONDS."""
FILE = "hung.json"
"""File in the run folder during a hang."""
FOLDER = ".hung"
"""Folder of messages between stalled nodes, in the run folder."""
STILL_SECONDS = 40.0
"""Seconds that a step may take before it is reported, unless earlier steps took a third of it.
TRAINER_STILL_SECONDS overrides it."""
LONG = 15
"""Multiple of that for slow activities: a start, a save, a test, a compilation."""
USUAL = 3
"""A pause up to this multiple of the longest one so far is usual."""
READERS = 4
"""Maximum number of nodes that read each other's messages: more would burden the file system."""


@dataclass(frozen=True)
class Place:
    """This rank's place in the job."""

    rank: int
    local: int
    """Its place among the ranks of its node."""
    nodes: dict[int, str]
    run_dir: Path

    @property
    def node(self) -> str:
        """This rank's node."""
        return self.nodes[self.rank]

    @property
    def here(self) -> list[int]:
        """The ranks of this node."""
        return [rank for rank, node in self.nodes.items() if node == self.node]


class Watch:
    """Watches the ranks of a node, from one of them."""

    def __init__(self, records: Records, place: Place) -> None:
        self._records, self._place = records, place
        self._here = place.here
        self._order = list(dict.fromkeys(place.nodes.values()))
        self._index = self._order.index(place.node)
        self._still = seconds_of("TRAINER_STILL_SECONDS") or STILL_SECONDS
        self._hang = seconds_of("TRAINER_HANG_SECONDS")
        self._tick = self._still / 8
        self._seen: dict[int, tuple[Record, float, float]] = {}
        self._pulse = 1
        records.pulse(place.local, self._pulse)  # from now on, its process is known
        self._woke = time.monotonic()
        self._stall: Stall | None = None
        self._told_at = 0.0
        self._published: list[int] | None = None
        """This node's progress count in its last message, or None."""
        self._looked = 0.0
        """When this node last wrote its message, or had nothing to write."""
        self._number = 0
        """The increasing number of this node's last message."""
        self._heard: dict[int, tuple[int, float]] = {}
        """The number of each other node's last message, and when this node first read it."""
        self._stop = threading.Event()
        if place.rank == 0:  # left by a killed attempt
            shutil.rmtree(place.run_dir / FOLDER, ignore_errors=True)
            with contextlib.suppress(OSError):
                (place.run_dir / FILE).unlink(missing_ok=True)

    def stop(self) -> None:
        """End the thread and remove its messages."""
        self._stop.set()
        self._over()
        self._withdraw()

    def run(self) -> None:
        """Watch until the training ends; must never end the training by mistake."""
        while not self._stop.wait(self._tick):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                self._look()

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._woke > 4 * self._tick:
            self._seen.clear()  # this process itself was stopped: its information is out of date
        self._woke = now
        self._pulse += 1
        self._records.pulse(self._place.local, self._pulse)
        if (failed := STOP.failed_rank()) is not None:
            say(f"Rank {failed} has failed, so this rank also ends.")
            os._exit(FAILED)
        seen = [self._of(local, now) for local in range(len(self._here))]
        if self._stall or all(one.silent for one in seen[: self._place.local]):
            self._speak(seen, now)

    def _of(self, local: int, now: float) -> Seen:
        record = self._records.read(local)
        before, moved, pulsed = self._seen.get(local, (record, now, now))
        moved = moved if before.count == record.count else now
        pulsed = pulsed if before.pulse == record.pulse else now
        self._seen[local] = record, moved, pulsed
        least = self._still * (1 if record.doing in ("step", "data") else LONG)
        still = now - moved
        return Seen(
            rank=self._here[local],
            node=self._place.node,
            count=record.count,
            step=record.step,
            doing=record.doing,
            still=still,
            limit=max(least, USUAL * record.longest),
            silent=now - pulsed > 3 * self._tick and local != self._place.local,
            state=process_state(record.pid) if still >= self._still / 4 else "",
        )

    def _speak(self, seen: list[Seen], now: float) -> None:
        if len(self._order) > 1:
            self._publish(seen, now)
            if self._index >= READERS:
                return
            if max(one.still for one in seen) < self._still / 2 and not self._stall:
                return
            others = self._others()
            if others is None and not self._stall:
                return  # an earlier node reports
            seen = [*seen, *(others or [])]
        stall = judge(seen, self._place.nodes, self._still)
        if stall is None:
            self._over()
            return
        new = self._stall is None or self._stall.key != stall.key
        self._stall = stall
        if self._hang and stall.seconds >= self._hang:
            say(f"{stall.sentence} The training ends, because `hang:` is set.")
            os._exit(HUNG)
        if new or now - self._told_at > 5 * 60:
            say(stall.sentence)
            self._told_at = now
        _write(self._place.run_dir / FILE, asdict(stall) | {"time": time.time()})

    def _over(self) -> None:
        if self._stall is None:
            return
        stall, self._stall = self._stall, None
        (self._place.run_dir / FILE).unlink(missing_ok=True)
        alone = f"Rank {stall.ranks[0]} on {stall.nodes[0]} moves" if len(stall.ranks) == 1 else ""
        say(f"{alone or 'The ranks move'} again.")

    def _publish(self, seen: Sequence[Seen], now: float) -> None:
        """Write this node's state for the others if it or another node stalls.

        A message holds until the next one, so a node that moves again reports it immediately.
        """
        folder, mine = self._place.run_dir / FOLDER, str(self._index)
        counts = [one.count for one in seen]
        still = max(one.still for one in seen) >= self._still / 2
        moved = self._published is not None and counts != self._published
        begins = still and self._published is None
        if now - self._looked < 4 * self._tick and not moved and not begins:
            return
        self._looked = now
        if not still and not any(path.name != mine for path in folder.glob("[0-9]*")):
            if self._published is not None:
                self._withdraw()
            return
        folder.mkdir(exist_ok=True)
        self._number += 1
        _write(folder / mine, {"number": self._number, "seen": [asdict(one) for one in seen]})
        self._published = counts

    def _withdraw(self) -> None:
        self._published = None
        with contextlib.suppress(OSError):
            (self._place.run_dir / FOLDER / str(self._index)).unlink(missing_ok=True)
            (self._place.run_dir / FOLDER).rmdir()

    def _others(self) -> list[Seen] | None:
        """Return the other nodes' messages; None if an earlier node reports."""
        found: list[Seen] = []
        for path in (self._place.run_dir / FOLDER).glob("[0-9]*"):
            index = int(path.name)
            if index == self._index:
                continue
            content = json.loads(path.read_text())
            # Measured from when this node first saw that number: the nodes' clocks may differ.
            known = self._heard.get(index)
            if known is None or known[0] != content["number"]:
                self._heard[index] = known = content["number"], time.monotonic()
            age = time.monotonic() - known[1]
            if age > 8 * self._tick:
                continue
            if index < self._index:
                return None
            for one in content["seen"]:
                found.append(Seen(**one | {"still": one["still"] + age}))
        return found


def seconds_of(variable: str) -> float | None:
    """Return the seconds in a variable, or None."""
    given = os.environ.get(variable, "")
    return float(given) if given.isdecimal() and int(given) else None


def say(text: str) -> None:
    """Print a line immediately, in one write."""
    with contextlib.suppress(OSError):
        os.write(sys.stderr.fileno(), f"{text}\n".encode())


def _write(path: Path, content: object) -> None:
    """Write a small file atomically."""
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_text(json.dumps(content))
    half.replace(path)


def process_state(pid: int) -> str:
    """Return the kernel's letter for a process of this node: T stopped, D in the kernel; or ''."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""  # macOS, or a container that hides it
    return text.rpartition(")")[2].split()[0]


_WHILE = {
    "start": ("it starts", "they start"),
    "data": ("it loads data", "they load data"),
    "save": ("it saves", "they save"),
    "test": ("it tests", "they test"),
    "compile": ("it compiles", "they compile"),
}
"""Words for an activity of one rank and of several; a step needs none."""


@dataclass(frozen=True)
class Seen:
    """One rank, as seen by its node."""

    rank: int
    node: str
    count: int
    step: int
    doing: str
    still: float
    """Seconds since it last moved."""
    limit: float
    """Seconds that are usual for its activity."""
    silent: bool
    """Whether no thread of its process runs."""
    state: str = ""
    """The kernel's state letter for the process, if available."""


@dataclass(frozen=True)
class Stall:
    """A hang, with its sentence."""

    ranks: tuple[int, ...]
    """The ranks that the others wait for; empty if no rank is behind."""
    nodes: tuple[str, ...]
    step: int
    seconds: float
    doing: str
    sentence: str

    @property
    def key(self) -> object:
        """The identity of a stall."""
        return self.ranks, self.step


def judge(seen: Sequence[Seen], nodes: Mapping[int, str], least: float) -> Stall | None:
    """Return the hang; None while all ranks take their usual time.

    `nodes` has the node of each rank. A rank missing in `seen` is on a silent node. `least`:
    minimum seconds before a report.

    A stopped or dead process is behind. Otherwise, it is the rank with the lowest progress count:
    all ranks advance equally per step, so waiting ranks are ahead.
    """
    if not seen:
        return None
    absent = sorted(set(nodes) - {one.rank for one in seen})
    frozen = [one for one in seen if _is_frozen(one, least)]
    if frozen:
        return _stall(frozen, seen, min(one.still for one in frozen))
    slowest = min(seen, key=lambda one: one.count)
    if absent:
        # While another node is stalled, a working node reports within half of `least`.
        still = min(one.still for one in seen)
        if still < max(slowest.limit, 1.25 * least):
            return None
        gone = [Seen(rank, nodes[rank], 0, 0, "step", still, 0.0, True) for rank in absent]
        return _stall(gone, seen, still)
    behind = [one for one in seen if one.count == slowest.count]
    if any(one.still < one.limit for one in behind):
        return None
    return _stall(behind, seen, min(one.still for one in behind))


def _is_frozen(one: Seen, least: float) -> bool:
    if one.state in ("T", "t"):
        return one.still >= least
    return one.silent and one.still >= one.limit


def _stall(behind: Sequence[Seen], seen: Sequence[Seen], seconds: float) -> Stall:
    others = [one for one in seen if one not in behind]
    step = max(one.step for one in others or behind)
    doing = {one.doing for one in behind}
    what = doing.pop() if len(doing) == 1 else "step"
    single, plural = _WHILE.get(what, ("", ""))
    if not others and len(seen) > 1:
        meanwhile = f" while {plural}" if plural else ""
        said = f"No rank has moved for {seconds:.0f} s{meanwhile}, at step {step}; none is behind."
        return Stall((), (), step, seconds, what, said)
    verb = single if len(behind) == 1 else plural
    meanwhile = f" while {verb}" if verb else ""
    said = f"{_ranks(behind)} not moved for {seconds:.0f} s{meanwhile}{_process(behind)}"
    said += f"; the others wait at step {step}." if others else f", at step {step}."
    ranks = tuple(one.rank for one in behind)
    return Stall(ranks, _nodes(behind), step, seconds, what, said)


def _process(behind: Sequence[Seen]) -> str:
    states = {one.state for one in behind}
    if states <= {"T", "t"}:
        return ", its process is stopped" if len(behind) == 1 else ", their processes are stopped"
    if states == {"D"}:
        return ", waiting for a disk or a driver"
    return ""


def _ranks(behind: Sequence[Seen]) -> str:
    """Return `Rank 9 on nid5002 has`, or similar words for several ranks and nodes."""
    nodes = _nodes(behind)
    where = nodes[0] if len(nodes) == 1 else f"{len(nodes)} nodes, {nodes[0]} first,"
    if len(behind) == 1:
        return f"Rank {behind[0].rank} on {where} has"
    numbers = sorted(one.rank for one in behind)
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"Ranks {numbers[0]} to {numbers[-1]} on {where} have"
    listed = ", ".join(map(str, numbers[:6])) + (", …" if len(numbers) > 6 else "")
    return f"Ranks {listed} on {where} have"


def _nodes(behind: Sequence[Seen]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.node for one in behind))
