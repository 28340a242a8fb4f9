"""Patterns that a person wrote, searched in a log: what they find, and never for ever."""

import pytest

from lumitui.app.log_series import series_of
from lumitui.remote.errors import InputError
from tests.hostile import passable, written

LOG = "step 1 Images/sec: 100\nnothing \0 \ud800 🚀\nstep 2 Images/sec: 1,200.5\n"


def test_series_come_from_the_log() -> None:
    patterns = {"speed": r"Images/sec: (\S+)", "step": r"^step (\d+)", "a 'b' $(x)": "(nothing) "}
    found = series_of(LOG, patterns)
    assert found == {"speed": [100.0, 1200.5], "step": [1.0, 2.0], "a 'b' $(x)": []}
    assert series_of(LOG, {}) == {}


@pytest.mark.parametrize("pattern", ["(a+)+$", r"(.*)*\d", "(a?){2000}b"])
def test_a_pattern_that_would_take_for_ever_is_named(pattern: str) -> None:
    log = "step 1 Images/sec: 100\n" + "a" * 60 + "!\n"
    patterns = {"speed": r"Images/sec: (\S+)", "slow": f"({pattern})".replace("((", "(?:(", 1)}
    with pytest.raises(InputError, match="The pattern slow under `metrics:` takes more than"):
        series_of(log, patterns, seconds=0.7)


def test_any_text_is_searched(tmp_path: object) -> None:
    text = "\n".join(written(passable, 100))
    assert series_of(text, {"digits": r"(\d+)"})["digits"]
