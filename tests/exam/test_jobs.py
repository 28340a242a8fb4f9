"""The corpus of job descriptions is what it says it is."""

import re
from collections import Counter

import pytest

from tests.exam.jobs.cases import Case, bad, bases, good, scripts


def test_each_description_has_a_name_of_its_own_and_a_base() -> None:
    cases = (*bad(), *good())
    assert len(bad()) >= 60
    assert len(good()) >= 60
    assert not [name for name, count in Counter(case.id for case in cases).items() if count > 1]
    assert {case.base for case in cases} <= set(bases())


@pytest.mark.parametrize("case", (*bad(), *good()), ids=lambda case: case.id)
def test_each_change_finds_its_place_once(case: Case) -> None:
    base = bases()[case.base]
    texts = "\0".join((base.text, *base.files.values()))
    for old, _ in case.change:
        assert texts.count(old) == 1, old


def test_each_mistake_has_a_source_and_words_that_are_a_pattern() -> None:
    for case in bad():
        assert case.mistake and case.source and case.words and case.change, case.id
        re.compile(case.words)


def test_forty_public_scripts_are_for_trying_and_twenty_are_held_out() -> None:
    tried = [script for script in scripts() if not script.held_out]
    assert len(tried) >= 40
    assert len(scripts()) - len(tried) >= 20
    assert all(script.says for script in tried)
    assert sum(script.site in {"lumi", "mn5", "karolina"} for script in scripts()) >= 20
    assert all(re.fullmatch("[0-9a-f]{40}", script.commit) for script in scripts())
