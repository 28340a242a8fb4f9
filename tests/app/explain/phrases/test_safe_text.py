"""Text from elsewhere does nothing to a terminal, in one piece or cut anywhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.remote.site.safe_text import CONTROL_CHARACTERS, LogFilter, log_line, plain, spell_out


@given(st.binary(max_size=200), st.integers(0, 200))
def test_no_log_controls_a_terminal_however_it_is_cut(raw: bytes, at: int) -> None:
    whole, parts = LogFilter(colours=False), LogFilter(colours=False)
    shown = whole.feed(raw) + whole.feed(b"", end=True)
    assert parts.feed(raw[:at]) + parts.feed(raw[at:]) + parts.feed(b"", end=True) == shown
    assert spell_out(shown, keep="\n\r\t") == shown


@given(st.lists(st.sampled_from(["\x1b", "[", "]", "0;", "31m", "\x07", "\\", "a", "\x9c", "P"])))
def test_colours_are_the_only_sequences_that_pass(parts: list[str]) -> None:
    text = "".join(parts)
    found = LogFilter()
    shown = found.feed(text.encode()) + found.feed(b"", end=True)
    assert "\x1b" not in shown.replace("\x1b[31m", "").replace("\x1b[0;31m", "") or (
        all(sign.endswith("m") for sign in shown.split("\x1b[")[1:]) and "\x1b]" not in shown
    )


@given(st.text() | st.text(st.sampled_from(sorted(CONTROL_CHARACTERS))))
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    assert not CONTROL_CHARACTERS & set(spell_out(text) + log_line(text) + plain(text))
    assert not CONTROL_CHARACTERS & set(spell_out(text, keep="\n\t")) - {"\n", "\t"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb\x7f", "a^[[2Jb^?"),
        ("a\nb", "a^Jb"),
        ("\x9b0m", "\\x9b0m"),
        ("abc\u202edef", "abc\\u202edef"),
        ("\udcff", "\\udcff"),
        ("naïve 日本語 👩‍💻", "naïve 日本語 👩‍💻"),
    ],
)
def test_a_control_character_is_spelled_out(text: str, shown: str) -> None:
    assert spell_out(text) == shown


def test_a_line_of_a_log_has_no_colours_and_no_tabs() -> None:
    assert log_line("\x1b[31mred\x1b[0m\tand\x07") == "red     and^G"


def test_rules_search_text_without_sequences() -> None:
    assert plain("a\tb\x08c\x1b[31mRuntimeError\x1b[0m\x1b]0;title\x07d") == "a bcRuntimeErrord"
    assert plain("x" * 2000) == "x" * 1000
