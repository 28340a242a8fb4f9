"""Every rule of the adviser is listed and explained: whatever checks it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumitui.app.cli.verbs.scripts.rules import listed
from lumitui.app.knowledge.rule_table import SCRIPT_RULES
from lumitui.app.launch.rules import job_file_catalogue
from lumitui.app.runs.rulebook import EXAMPLES, examples, explanations, rule_text, topic, topics
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.repository.rules_page import examples_text

ROOT = Path(__file__).resolve().parents[3]
KNOWN = Sites([BUILT_IN])
EVERY = topics(map(KNOWN.load, KNOWN.names()))


def ids_in(folder: str) -> Iterator[str]:
    """Yield the ids with which the code below `folder` makes findings, or reports hits."""
    for path in (ROOT / "app" / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(
                    func=ast.Name(id="Finding" | "hit"), args=[ast.Constant(value=str(rule)), *_]
                ) if rule:
                    yield rule


def test_what_is_found_in_a_job_file_is_explained() -> None:
    assert set(ids_in("launch")) <= {one.id for one in EVERY}


def test_what_is_explained_of_a_job_file_can_be_found() -> None:
    # The last six are made from a table of the files that are missing.
    made = {*ids_in("launch"), *(rule.id for rule in SCRIPT_RULES)}
    made |= {"secret-needed", "secrets", "project", "workdir", "script", "link-taken"}
    assert {one.id for one in job_file_catalogue.TOPICS} <= made


@pytest.mark.parametrize("one", EVERY, ids=lambda one: one.id)
def test_a_rule_is_named_and_explained_in_words(one: object) -> None:
    from lumitui.app.knowledge.rule import Topic

    assert isinstance(one, Topic)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", one.id)
    assert one.title and not one.title.endswith(".") and one.why.endswith((".", ")"))
    assert one.source


def test_the_list_fits_its_width_and_names_each_rule() -> None:
    text = listed(topics(), 80)
    assert max(map(len, text.splitlines())) <= 80
    assert all(re.search(rf"^  {re.escape(one.id)} ", text, re.MULTILINE) for one in topics())


def test_an_explanation_shows_what_is_bad_and_what_is_good() -> None:
    one = topic("directive-with-variable", ())
    example = examples()[one.id]
    text = rule_text(one, 80)
    assert f"Bad, at {example.site}:\n    {example.bad[0]}" in text and "\nGood, at" in text
    assert one.why.split()[0] in text and f"Source: {one.source}" in text


def test_rules_and_causes_are_explained_by_their_ids_and_others_are_left_out() -> None:
    rule, cause = explanations(["account", "nothing", "why/gpu-memory"], (), 70)
    assert rule == rule_text(topic("account", ()), 70)
    assert cause.startswith("gpu-memory\n\nA GPU ran out of memory. ")
    assert max(map(len, cause.splitlines())) <= 70
    assert "`lumitui docs trainers/does-it-fit`" in " ".join(cause.split())


def test_the_note_about_a_comment_that_silences_nothing_is_a_rule_like_others() -> None:
    one = topic("unused-ignore", ())
    assert (one.severity, one.subject) == ("note", "script")
    assert "hide" in rule_text(one, 80)


def test_a_name_that_no_rule_has_is_answered_with_those_near() -> None:
    with pytest.raises(InputError, match="'cluster-imag' is not a rule") as caught:
        topic("cluster-imag", ())
    assert "cluster-image" in caught.value.hint


HOW = "run `make reference`"


def test_the_examples_are_those_of_the_cases() -> None:
    assert EXAMPLES.read_text() == examples_text(), HOW


def test_an_example_shows_what_differs() -> None:
    assert all(example.bad or example.good for example in examples().values())
