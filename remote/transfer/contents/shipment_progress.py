"""The progress of a transfer to a site."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Phase = Literal["reading", "asking", "sending", "checking"]

_WINDOW = 10.0  # seconds of which the rate is the mean: shorter ones jump, longer ones lag
_EACH = 0.2  # seconds between two reports


@dataclass(frozen=True)
class ShipmentProgress:
    """The progress of a transfer at one time."""

    name: str
    """The item, by its name in the job file."""
    phase: Phase
    """`reading`: hashed on this machine; `checking`: hashed on the site."""
    done: int = 0
    """Transferred bytes, including those already on the site."""
    total: int = 0
    rate: float = 0.0
    """Recent rate in bytes per second; 0: unknown."""

    @property
    def seconds_left(self) -> float | None:
        """The remaining time at this rate; None if unknown."""
        return (self.total - self.done) / self.rate if self.rate else None


Report = Callable[[ShipmentProgress], None]


class Meter:
    """Counts passing bytes and reports about five times a second."""

    def __init__(
        self, name: str, report: Report, now: Callable[[], float] = time.monotonic
    ) -> None:
        """Report on the transfer of `name`."""
        self._name, self._report, self._now = name, report, now
        self._phase: Phase = "asking"
        self._done = self._total = 0
        self._last = float("-inf")
        self._marks: list[tuple[float, int]] = []

    def begin(self, phase: Phase, total: int = 0, done: int = 0) -> None:
        """Begin a phase with `total` bytes, `done` of them already transferred."""
        self._phase, self._total, self._done = phase, total, done
        self._marks = [(self._now(), done)]
        self._tell()

    def pass_on(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield `pieces` and count their bytes."""
        for piece in pieces:
            yield piece
            self.add(len(piece))

    def add(self, size: int) -> None:
        """Count another `size` bytes."""
        self._done += size
        if self._now() - self._last >= _EACH:
            self._tell()

    def _tell(self) -> None:
        now = self._last = self._now()
        self._marks.append((now, self._done))
        while len(self._marks) > 2 and now - self._marks[0][0] > _WINDOW:
            del self._marks[0]
        began, before = self._marks[0]
        rate = (self._done - before) / (now - began) if now > began else 0.0
        self._report(ShipmentProgress(self._name, self._phase, self._done, self._total, rate))
