"""Whatever a site prints, the reader of its fields gives a value, None or a sentence."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumitui.remote.site import answer_fields
from lumitui.remote.site.errors import AnswerUnusable

ODD = ["", "-1", "+1", "1.5", "1e999", "NaN", "0x10", "1_000", " 1", "\u0663", "\u00b2", "9" * 16]
ODD += ["1" * 5000, "1" + "0" * 5000, "Infinity", "--", "1\n"]


@pytest.mark.parametrize("text", ODD, ids=lambda text: repr(text[:20]))
def test_what_is_no_plain_number_is_none(text: str) -> None:
    assert answer_fields.count(text) is None
    assert answer_fields.moment(text) is None


def test_numbers_are_read() -> None:
    assert answer_fields.count("0") == 0 and answer_fields.count("9" * 15) == 10**15 - 1
    assert answer_fields.moment("1795236600") == answer_fields.moment(1795236600.0) == 1795236600.0
    assert (answer_fields.whole(0, 0, 5), answer_fields.whole(5.0, 0, 5)) == (0, 5)
    others: list[object] = [6, -1, True, "2", None, [], 1.5, math.nan, math.inf, 10**400]
    assert {answer_fields.whole(value, 0, 5) for value in others} == {None}


@given(st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none(), st.binary()))
def test_every_value_is_within_its_bounds_or_none(value: object) -> None:
    for number in (answer_fields.moment(value), answer_fields.whole(value, -5, 10**9)):
        assert number is None or (math.isfinite(number) and -5 <= number < 1e11)


def test_a_value_is_short_text() -> None:
    values: list[object] = ["text", 7, 1.5, "x" * 50, None, [], {"a": 1}]
    assert [answer_fields.short(value, 5) for value in values] == [
        "text",
        "7",
        "1.5",
        "xxxxx",
        "",
        "",
        "",
    ]


def test_lines_end_with_a_line_feed_alone() -> None:
    names = ["a\u2028b", "c\x0bd\x85", "", "e\r", "no end"]
    assert list(answer_fields.lines("\n".join(names))) == names
    assert list(answer_fields.lines(b"\xff\n\n")) == ["\ufffd", ""]
    assert list(answer_fields.lines("")) == []


def test_a_long_line_is_cut_and_too_many_lines_are_refused() -> None:
    long, short = answer_fields.lines(b"x" * 10_000_000 + b"\nshort\n")
    assert (len(long), short) == (answer_fields.LONGEST_LINE, "short")
    with pytest.raises(AnswerUnusable, match="more than 3 lines"):
        list(answer_fields.lines("\n" * 4, most=3))


BAD_JSON = ["", "{", "NaN", "[Infinity]", "-1e999", "1" * 5000, "[" * 100_000, '{"a":' * 50_000]
BAD_JSON += [
    "\ufeff{}",
    '"\ud800',
    "[1,]",
    r'["\ud800"]',
    '"' + "x" * answer_fields.MOST_JSON + '"',
]


@pytest.mark.parametrize("text", BAD_JSON, ids=lambda text: repr(text[:12]))
def test_json_that_cannot_be_read_is_none(text: str) -> None:
    assert answer_fields.json_of(text) is None
    assert answer_fields.json_of(text.encode("utf-8", "surrogatepass")) is None


def test_bytes_that_are_no_text_are_no_json() -> None:
    assert answer_fields.json_of(b'"\xff\xfe\xfd"') is None


@settings(max_examples=40)
@given(st.recursive(st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))  # fmt: skip
def test_json_is_read_as_it_was_written(value: object) -> None:
    assert answer_fields.json_of(json.dumps(value)) == value


def test_the_last_words_are_one_line_of_bounded_length() -> None:
    assert answer_fields.last_words(b"", "one\n\ntwo.\n \n") == "two"
    assert answer_fields.last_words(b"\xff" * 10_000_000) == "\ufffd" * answer_fields.MOST_WORDS
    assert answer_fields.last_words("", b"\n \n", default="exit status 255") == "exit status 255"


@given(st.binary())
def test_the_last_words_of_anything_fit_a_sentence(said: bytes) -> None:
    words = answer_fields.last_words(said)
    assert words == words.strip() or words.endswith(" ")
    assert len(words) <= answer_fields.MOST_WORDS and "\n" not in words
