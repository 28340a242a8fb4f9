"""Wall-clock limits in the six forms of sbatch(1)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lumitui.remote.site.walltime import in_slurms_form, seconds_of, text_of

MINUTE, HOUR, DAY = 60, 3600, 86400


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10", 10 * MINUTE),
        ("10:30", 10 * MINUTE + 30),
        ("01:00:00", HOUR),
        ("1:0:0", HOUR),
        ("3:00:00", 3 * HOUR),
        ("2-12", 2 * DAY + 12 * HOUR),
        ("2-12:30", 2 * DAY + 12 * HOUR + 30 * MINUTE),
        ("2-00:00:00", 2 * DAY),
        ("1-02:03:04", DAY + 2 * HOUR + 3 * MINUTE + 4),
        ("90:00", 90 * MINUTE),
        (" 01:00:00 ", HOUR),
    ],
)
def test_every_form_of_slurm_is_read(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1h",
        "1:2:3:4",
        "-1",
        "1-",
        "-1:00",
        "1--2",
        "1:",
        ":30",
        "1.5",
        "٣",
        "UNLIMITED",
        "1-2-3",
    ],
)
def test_what_is_no_time_is_refused_with_the_form_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="hours:minutes:seconds"):
        seconds_of(text)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("10m", "00:10:00"),
        ("90min", "01:30:00"),
        ("1h30m", "01:30:00"),
        ("2d", "2-00:00:00"),
        ("1d12h", "1-12:00:00"),
        ("45s", "00:00:45"),
        *((same, same) for same in ("", "10", "01:00:00", "2-12", "m", "30m1h", "1.5h", "10M")),
    ],
)
def test_a_duration_with_units_becomes_slurms_form_and_nothing_else_does(
    text: str, form: str
) -> None:
    assert in_slurms_form(text) == form


@given(st.integers(0, 9999 * DAY))
def test_a_written_time_reads_the_same(seconds: int) -> None:
    assert seconds_of(text_of(seconds)) == seconds


@given(st.integers(0, 9999), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_days_and_clock_count_as_they_are_written(d: int, h: int, m: int, s: int) -> None:
    assert seconds_of(f"{d}-{h:02d}:{m:02d}:{s:02d}") == d * DAY + h * HOUR + m * MINUTE + s


def test_a_time_is_written_with_days_only_when_there_are_some() -> None:
    assert text_of(59) == "00:00:59"
    assert text_of(DAY - 1) == "23:59:59"
    assert text_of(2 * DAY) == "2-00:00:00"


@example("0-300000")  # hours that are more than 9,999 days
@given(st.text() | st.from_regex(r"\A-?[0-9]{0,9}-?[0-9:]{0,30}\Z"))
def test_any_text_is_a_time_or_is_refused(text: str) -> None:
    try:
        seconds = seconds_of(text)
    except ValueError as error:
        assert "not a time" in str(error)
        return
    assert 0 <= seconds < 10**12 and seconds_of(text_of(seconds)) == seconds
