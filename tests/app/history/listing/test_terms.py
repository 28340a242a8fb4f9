"""The language of filters: what is understood, and where what is wrong stands."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from lumitui.app.history.listing.filters import (
    FilterError,
    FilterTerm,
    IdleTerm,
    In,
    Made,
    ShapeTerm,
    SiteTerm,
    SizeTerm,
    States,
    Tag,
    WordTerm,
    parse_filter,
    parse_typed_filter,
)
from lumitui.app.history.listing.state_filter import (
    COUNTED_STATES,
    STATE_GROUPS,
    states_like,
    states_named,
)
from lumitui.app.history.listing.tags import split_tags, tags_of, tags_text, with_tags, with_text
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError

INFINITE = float("inf")


@pytest.mark.parametrize(
    ("text", "test", "negated"),
    [
        ("vit", WordTerm("vit"), False),
        ("!vit", WordTerm("vit"), True),
        ('"two words"', WordTerm("two words"), False),
        ("12:30", WordTerm("12:30"), False),
        ("#best", Tag(("best",)), False),
        ("tag:best,#worst", Tag(("best", "worst")), False),
        ("state:timeout", States(frozenset({State.TIMEOUT})), False),
        ("state:!done", States(frozenset({State.DONE})), True),
        ("!state:done", States(frozenset({State.DONE})), True),
        ("!state:!done", States(frozenset({State.DONE})), False),
        ('state:"out of memory"', States(frozenset({State.OUT_OF_MEMORY})), False),
        ("STATE:oom,canc", States(frozenset({State.OUT_OF_MEMORY, State.CANCELLED})), False),
        ("state:failed", States(STATE_GROUPS["failed"]), False),
        ("site:lumi,mahti", SiteTerm(("lumi", "mahti")), False),
        ("nodes:4", SizeTerm("nodes", ((4, 4),)), False),
        ("nodes:>=4", SizeTerm("nodes", ((4, INFINITE),)), False),
        ("gpus:<8,16-64,>100", SizeTerm("gpus", ((0, 7), (16, 64), (101, INFINITE))), False),
        ("since:2d", Made(since=True, moment=172800, age=True), False),
        ("until:90min", Made(since=False, moment=5400, age=True), False),
        ("job:8123", In("job", ("8123",)), False),
        ("nodes>=4", SizeTerm("nodes", ((4, INFINITE),)), False),
        ("!gpus<=8", SizeTerm("gpus", ((0, 8),)), True),
        ("site=lumi", SiteTerm(("lumi",)), False),
        ("age<3m", Made(since=True, moment=180, age=True), False),
        ("age:>12h", Made(since=False, moment=43200, age=True), False),
        ("idle:>30%", IdleTerm(above=True, share=0.3), False),
        ("!idle<=5", IdleTerm(above=False, share=0.05), True),
        ("2x8", ShapeTerm("2x8", 2, 8, ranks=False), False),
        ("4x16r", ShapeTerm("4x16r", 4, 16, ranks=True), False),
        ("lr=3", WordTerm("lr=3"), False),
        ('"loss<1"', WordTerm("loss<1"), False),
    ],
)
def test_a_term_means(text: str, test: object, negated: bool) -> None:
    assert parse_filter(f"  {text} ") == (FilterTerm(text, negated, test),)  # type: ignore[arg-type]


def test_a_date_is_a_day_on_the_laptops_clock() -> None:
    (term,) = parse_filter("since:2026-11-20")
    assert isinstance(term.test, Made) and not term.test.age
    assert term.test.at(now=0.0) == term.test.moment


@pytest.mark.parametrize(
    ("text", "wrong", "message"),
    [
        ("vit nodes:many", "many", "'many' is not a number of nodes."),
        ("state:dnoe", "dnoe", "'dnoe' is not a state."),
        ("vit stat:done x", "stat:", "stat: is not a filter."),
        ("site:", "site:", "site: needs a value."),
        ("state:!", "state:!", "state: needs a value."),
        ("vit !loss<1", "!loss<", "loss< is not a filter."),
        ("idle:30%", "30%", "'30%' is not > or < followed by a percentage."),
        ("age<soon", "<soon", "'<soon' is not an age."),
        ("state>done", ">done", "'>done' is not a state."),
        ("since:soon", "soon", "'soon' is not a time."),
        ("since:2026-13-01", "2026-13-01", "'2026-13-01' is not a time."),
        ('a "b c', '"b c', "A quote is not closed."),
        ("a ! b", "!", "A word is missing."),
        ("a -failed", "-failed", "-failed is not a filter."),
    ],
)
def test_what_is_wrong_is_named_where_it_stands(text: str, wrong: str, message: str) -> None:
    with pytest.raises(FilterError) as found:
        parse_filter(text)
    assert text[found.value.begin : found.value.end] == wrong
    assert found.value.message == message and found.value.hint.endswith((".", '."', '".'))


def test_what_is_typed_counts_before_it_is_whole() -> None:
    terms, error = parse_typed_filter('vit nodes: #best "a b')
    assert [term.typed for term in terms] == ["vit", "#best"]
    assert error is not None and error.message == "nodes: needs a value."


@given(some.text(alphabet='abz :!,"#<>=-.019stateno', max_size=30))
def test_any_text_is_a_filter_or_says_where_it_is_none(text: str) -> None:
    try:
        terms = parse_filter(text)
    except FilterError as error:
        assert 0 <= error.begin < error.end <= len(text)
        assert error.message and error.hint
    else:
        assert "".join("".join(term.typed for term in terms).split()) == "".join(text.split())


def test_every_state_has_one_of_the_words_that_are_counted_or_is_over_well() -> None:
    counted = [state for name in COUNTED_STATES for state in STATE_GROUPS[name]]
    assert len(counted) == len(set(counted))
    assert set(State) - set(counted) == {State.DONE, State.CANCELLED}
    for state in State:
        assert state in states_named(state.value)
        assert state in states_like(state.value)
    assert states_like("fail") >= STATE_GROUPS["failed"] and State.TIMEOUT in states_like("failed")
    assert states_like("memory") == {State.OUT_OF_MEMORY}
    assert not states_like("vi")
    for state in (State.NOT_SENT, State.REFUSED):
        assert state not in states_named("failed"), "the title counts it as the history does"


def test_tags_are_words_of_the_note() -> None:
    note = with_tags("the best so far", "#keep lr-3")
    assert note == "the best so far #keep #lr-3"
    assert tags_of(note) == ["keep", "lr-3"]
    assert with_tags(note, "KEEP") == note
    assert with_tags(note, "-keep new") == "the best so far #lr-3 #new"
    assert with_tags("", "a") == "#a" and with_tags("#a", "-a") == ""
    assert split_tags(note) == ("the best so far", "#keep #lr-3")
    assert split_tags("as #12 says #a  #b ") == ("as #12 says", "#a #b") and split_tags("") == (
        "",
        "",
    )
    assert with_text(note, "another") == "another #keep #lr-3" == with_text(note, "another #KEEP")
    assert with_text("#a", "") == "#a" and with_text("", "x #b") == "x #b"
    assert (
        tags_text("2 runs", "a #b -c", "/")
        == "Tagged 2 runs #a #b: / #a #b finds them. Removed #c from 2 runs."
    )
    assert tags_text("r", "a") == "Tagged r #a." and tags_text("r", "-a") == "Removed #a from r."
    for wrong in ("", "two#tags", "é\u202e", "x" * 41):
        with pytest.raises(InputError):
            with_tags(note, wrong)
