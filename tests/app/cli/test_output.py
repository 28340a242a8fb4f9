"""What is shown is safe and fits: logs on a terminal, tables in 80 columns."""

from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.cli import output, tables
from lumitui.app.cli.output import LogFilter


@given(st.binary(max_size=200), st.integers(0, 200))
def test_no_log_steers_a_terminal_however_it_is_cut(raw: bytes, at: int) -> None:
    whole, parts = LogFilter(colours=False), LogFilter(colours=False)
    shown = whole.feed(raw) + whole.feed(b"", end=True)
    assert parts.feed(raw[:at]) + parts.feed(raw[at:]) + parts.feed(b"", end=True) == shown
    assert output.clean(shown, keep="\n\r\t") == shown


@given(st.lists(st.sampled_from(["\x1b", "[", "]", "0;", "31m", "\x07", "\\", "a", "\x9c", "P"])))
def test_colours_are_the_only_sequences_that_pass(parts: list[str]) -> None:
    text = "".join(parts)
    found = LogFilter()
    shown = found.feed(text.encode()) + found.feed(b"", end=True)
    assert "\x1b" not in shown.replace("\x1b[31m", "").replace("\x1b[0;31m", "") or (
        all(sign.endswith("m") for sign in shown.split("\x1b[")[1:]) and "\x1b]" not in shown
    )


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=4))
def test_tables_stay_in_80_columns_whatever_the_names(rows: list[tuple[str, str, str]]) -> None:
    text = tables.table(("RUN", "STATE", "REASON"), rows, 80, shrink=(2, 0, 1), ids=0)
    lines = text.split("\n")
    assert len(lines) == len(rows) + 1
    assert max(map(output.width, lines)) <= 80
    assert output.clean(text, keep="\n") == text


def test_a_cut_id_keeps_the_end_that_tells_it_apart() -> None:
    name = "a-very-long-name-of-a-training-a1b2c3"
    assert tables.cut(name, 20, keep_end=True) == "a-very-long-…-a1b2c3"
    assert output.width(tables.cut("日本語" * 9, 10)) <= 10


def test_a_long_text_is_cut_at_once() -> None:
    # A cut that looks at the whole text for each character takes minutes here.
    assert output.width(tables.cut("日" * 300_000, 40)) <= 40
    assert len(tables.cut("e" + "\u0301" * 300_000, 40)) == 300_001
