"""The device of a rank, in words: a GPU or, on a node without any, cores of its CPU. Pure.

Screens, tables and messages take their words from here, so that none speaks of GPUs where there
are none.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """The words for each rank's device."""

    noun: str
    """`GPU`, `rank`."""
    hours: str
    """The heading of their hours: `GPU-h`."""
    mark: str
    """The unit after their number if there is no room for a word."""

    @property
    def plural(self) -> str:
        """`GPUs`, `ranks`."""
        return f"{self.noun}s"

    def some(self, number: int) -> str:
        """Return `1 GPU`, `1,024 ranks`."""
        return f"{number:,} {self.noun if number == 1 else self.plural}"


GPU = Device("GPU", "GPU-h", "")
CPU = Device("rank", "rank-h", "r")


def device(*, on_cpu: bool) -> Device:
    """Return the words for a node with GPUs, or without."""
    return CPU if on_cpu else GPU
