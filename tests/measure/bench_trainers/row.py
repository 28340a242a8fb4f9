"""A measured row of the bench, and how two things are compared."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One figure beside what it is held to."""

    name: str
    value: float
    unit: str
    beside: float
    """What it is compared with, in the same unit."""
    what: str
    """What that is: `a bare loop`, `theory: 2(n-1)/n`."""
    most: float | None = None
    """The ratio above which the bench fails; None: it is only told."""
    least: float | None = None

    @property
    def ratio(self) -> float:
        """The figure over what it is compared with."""
        return self.value / self.beside if self.beside else float("inf")

    @property
    def broken(self) -> bool:
        """Whether a limit is broken."""
        above = self.most is not None and self.ratio > self.most
        return above or (self.least is not None and self.ratio < self.least)


def abba(
    one: Callable[[], None], other: Callable[[], None], rounds: int
) -> tuple[Sequence[float], Sequence[float]]:
    """Return the processor's seconds of each call: one, other, other, one, and again.

    All threads of this process count. Both are called once before.
    """
    found: tuple[list[float], list[float]] = ([], [])
    for work in (one, other):
        work()
    for number in range(2 * rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            began = time.process_time()
            (one, other)[which]()
            found[which].append(time.process_time() - began)
    return found
