"""`lumitui history` lists at most as many runs as it is asked for, and says when there are more."""

import pytest

from lumitui.app.history.history import History
from tests.support.jobs.made_runs import a_run
from tests.support.program.command_line import Here, envelope
from tests.support.program.home import Home


def test_the_place_of_the_file_is_shown_by_a_check_alone(home: Home, here: Here) -> None:
    listed, checked = here("history"), here("history", "--check")
    assert str(home.data) not in listed.stdout + listed.stderr
    assert str(home.data) in checked.stdout


@pytest.mark.parametrize(("count", "more"), [(50, False), (51, True)])
def test_runs_beyond_the_limit_are_told(home: Home, here: Here, count: int, more: bool) -> None:
    history = History(home.settings.history)
    for number in range(count):
        history.begin(a_run(f"r-{number:06d}"))
    history.close()
    listed, table = here("history", "--json"), here("history", "--filter", "r-")
    assert len(envelope(listed)["data"]) == 50
    for done in (listed, table):
        told = "More than 50 runs match; --limit N lists more." in done.stderr
        assert (done.returncode, told) == (0, more)
    assert len(envelope(here("history", "--json", "--limit", "60"))["data"]) == count
