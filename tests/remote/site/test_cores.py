"""Sets of cores: as ranges, and as Slurm's masks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.remote.site.core_sets import format_cores, mask, parse_cores

CORES = st.frozensets(st.integers(0, 255))


@given(CORES)
def test_ranges_are_read_as_the_cores_they_were_made_of(cores: frozenset[int]) -> None:
    assert parse_cores(format_cores(cores)) == tuple(sorted(cores))


@given(CORES)
def test_ranges_are_the_shortest(cores: frozenset[int]) -> None:
    runs = [core for core in cores if core - 1 not in cores]
    text = format_cores(cores)
    assert len(text.split(",")) == max(1, len(runs))


@given(CORES, st.integers(1, 300))
def test_a_mask_has_the_bits_of_its_cores(cores: frozenset[int], width: int) -> None:
    assert int(mask(cores, width), 16) == sum(1 << core for core in cores)
    assert len(mask(cores, 256)) == 2 + 64  # a digit for four cores


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("", ()),
        ("  ", ()),
        ("5", (5,)),
        ("1-3,9", (1, 2, 3, 9)),
        (" 1-3 , 9 ", (1, 2, 3, 9)),
        ("7-7", (7,)),
    ],
)
def test_ranges_are_read(text: str, cores: tuple[int, ...]) -> None:
    assert parse_cores(text) == cores


@pytest.mark.parametrize(
    "text", ["a", "1-", "-1", "1,,2", "1;2", "1 2", "3-1", "0x1", "1-3\n,x", "1.5", "٣", "0-999999"]
)
def test_a_text_that_is_no_list_of_cores_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"cores|backwards"):
        parse_cores(text)
