"""What is shown is safe and fits: tables in 80 columns."""

from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.cli import output, tables
from lumitui.app.explain.safe_text import spell_out

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=4))
def test_tables_stay_in_80_columns_whatever_the_names(rows: list[tuple[str, str, str]]) -> None:
    text = tables.table(("RUN", "STATE", "REASON"), rows, 80, shrink=(2, 0, 1), ids=0)
    lines = text.split("\n")
    assert len(lines) == len(rows) + 1
    assert max(map(output.width, lines)) <= 80
    assert spell_out(text, keep="\n") == text


def test_a_cut_id_keeps_the_end_that_tells_it_apart() -> None:
    name = "a-very-long-name-of-a-training-a1b2c3"
    assert tables.cut(name, 20, keep_end=True) == "a-very-long-…-a1b2c3"
    assert output.width(tables.cut("日本語" * 9, 10)) <= 10


def test_a_long_text_is_cut_at_once() -> None:
    # A cut that looks at the whole text for each character takes minutes here.
    assert output.width(tables.cut("日" * 300_000, 40)) <= 40
    assert len(tables.cut("e" + "\u0301" * 300_000, 40)) == 300_001
