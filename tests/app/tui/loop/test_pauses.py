"""Full collections come while nobody types; afterwards Python makes its own again."""

import gc
from collections.abc import Iterator

import pytest

from lumitui.app.tui.loop.gc_pauses import ENOUGH, QUIET, TOO_MANY, Pauses


@pytest.fixture
def pauses() -> Iterator[Pauses]:
    pauses = Pauses()
    yield pauses
    pauses.end()
    gc.freeze()  # as tests/conftest.py does


def _fill(times: int) -> None:
    """Make as many collections of the middle generation."""
    for _ in range(times - gc.get_count()[2]):
        gc.collect(1)


def test_a_full_collection_waits_for_a_quiet_moment(pauses: Pauses) -> None:
    before = gc.get_threshold()
    pauses.begin()
    gc.collect()
    _fill(ENOUGH)
    pauses.rest(QUIET / 2)
    assert gc.get_count()[2] >= ENOUGH, "somebody types"
    pauses.rest(QUIET)
    assert gc.get_count()[2] == 0
    _fill(TOO_MANY)
    pauses.rest(0.0)
    assert gc.get_count()[2] == 0, "the memory fills"
    pauses.end()
    assert gc.get_threshold() == before and gc.get_freeze_count() == 0


def test_nothing_is_collected_where_others_share_the_process(pauses: Pauses) -> None:
    gc.collect()
    gc.collect(1)
    pauses.rest(QUIET)
    assert gc.get_count()[2] >= 1
