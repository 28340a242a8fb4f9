"""Full collections come while nobody types."""

import gc
import time

import pytest

from lumitui.app.tui.app import LumiApp
from tests.support.program.home import Home


@pytest.mark.parametrize(("silent", "left"), [(0.5, 10), (1.5, 0)])
def test_a_full_collection_waits_for_a_quiet_moment(home: Home, silent: float, left: int) -> None:
    app = LumiApp(home.settings)
    gc.collect()
    for _ in range(10):
        gc.collect(1)
    app.schedule.last_input = time.monotonic() - silent
    app._rest()
    assert gc.get_count()[2] == left
    app.runs.close()
