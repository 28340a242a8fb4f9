"""Full garbage collections in quiet moments, so that no key waits for one.

A full collection looks at every object there is: with the proof of 8,192 ranks on the screen it
takes 40 ms and more, and came with every 30th key. source: the gc module, "Generations"
"""

import gc
from dataclasses import dataclass

ENOUGH = 10
"""Collections of the middle generation after which Python itself would make a full one."""
TOO_MANY = 100
"""Then the full one comes though keys are typed: what nobody can reach fills the memory."""
QUIET = 1.0
"""Seconds without a key after which nobody is about to type the next one."""
_NEVER = 1_000_000_000


@dataclass
class Pauses:
    """The full collections of this process, between `begin` and `end`."""

    _before: tuple[int, int, int] | None = None
    """Python's own thresholds, while they are not used."""

    def begin(self) -> None:
        """Let Python make no full collection. What is there now stays: modules and classes."""
        self._before = gc.get_threshold()
        gc.freeze()
        gc.set_threshold(self._before[0], self._before[1], _NEVER)

    def rest(self, silence: float) -> None:
        """Collect what is due; `silence`: seconds since the last key."""
        if self._before is None:
            return
        waiting = gc.get_count()[2]
        if waiting >= TOO_MANY or (waiting >= ENOUGH and silence >= QUIET):
            gc.collect()

    def end(self) -> None:
        """Give the collections back to Python."""
        if self._before is not None:
            gc.set_threshold(*self._before)
            gc.unfreeze()
            self._before = None
