"""Times, lengths, sizes and numbers in words, whatever a broken clock or a run brings."""

import math

from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.explain import words

MOMENTS = st.floats() | st.sampled_from([math.inf, -math.inf, math.nan, 1e18, -1e18, 2.0**63])


@given(MOMENTS, MOMENTS)
def test_moments_and_lengths_are_always_words(moment: float, now: float) -> None:
    for text in (
        words.clock(moment),
        words.recent_clock(moment, now),
        words.ahead(moment, now),
        words.length(moment),
        words.short_length(moment),
    ):
        assert len(text) < 120 and "\n" not in text


@given(MOMENTS | st.none())
def test_numbers_are_always_words(value: float | None) -> None:
    assert 0 < len(words.number(value, " GB")) < 40


@given(st.integers(0, 10**30))
def test_sizes_are_always_words(count: int) -> None:
    assert words.size(count)[-1] == "B"
