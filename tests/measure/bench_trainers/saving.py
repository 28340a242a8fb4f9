"""How long a training waits for a checkpoint: written in the background, beside at once."""

from collections.abc import Iterator

from tests.measure.bench_trainers.row import Row
from tests.measure.save_stall import stall

MEGABYTES = 200
MOST = 0.1
"""Of a save at once. It is the wall's time: a training waits for a disk, not for a processor."""


def rows() -> Iterator[Row]:
    """Yield the milliseconds of a save."""
    at_once, background = (1000 * seconds for seconds in stall(MEGABYTES))
    name = f"wait for a save of {MEGABYTES} MB in background"
    yield Row(name, background, "ms", at_once, "a save at once", most=MOST)
