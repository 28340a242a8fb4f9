"""The examples of `lumitui rules` are those of the rules and their cases."""

from lumitui.app.runs.rulebook import EXAMPLES, examples
from tests.repository.rules_page import examples_text

HOW = "run `make reference`"


def test_the_examples_are_those_of_the_cases() -> None:
    assert EXAMPLES.read_text() == examples_text(), HOW


def test_an_example_shows_what_differs() -> None:
    assert all(example.bad or example.good for example in examples().values())
