"""Each rule has a script that it must speak about, and one that differs in that alone.

The scripts are in `cases/`, by the module of their rule.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.rule import RULE_FAILED, Hit, run
from lumitui.app.knowledge.rule_table import SCRIPT_RULES, findings
from lumitui.app.knowledge.script_check import fixed
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.rules.rule_cases import Case, read_cases

ALL = read_cases()
NAMES = [f"{case.module}:{case.rule}" for case in ALL]


@cache
def site(name: str) -> Site:
    return Sites([BUILT_IN]).load(name)


KEY = "hf_" + "qWmTnXzRbKpLsVdYcJgHfAeUiOtNxMwQ"
"""What `YOUR_TOKEN` in a case stands for: no file of the project may have the shape of a key."""


def found(case: Case, text: str, files: dict[str, str]) -> list[Finding]:
    at, text = site(case.site), text.replace("YOUR_TOKEN", KEY)
    return findings(read_script(text, site=at, files={**case.files, **files}), at)


def others(case: Case, all_found: list[Finding]) -> list[str]:
    """Return what else is said, besides notes and what the case allows."""
    return [
        f"{item.at.line}: {item.rule}: {item.message}"
        for item in all_found
        if (item.severity != "note" or item.rule == RULE_FAILED)
        and item.rule not in (case.rule, *case.also)
    ]


@pytest.mark.parametrize("case", ALL, ids=NAMES)
def test_the_rule_speaks_about_the_bad_script_and_no_other_rule_does(case: Case) -> None:
    all_found = found(case, case.bad, case.bad_files)
    own = [item for item in all_found if item.rule == case.rule]
    assert own, f"{case.rule} says nothing; found: {all_found}"
    if case.line:
        assert case.line in {item.at.line for item in own}
    assert others(case, all_found) == []


@pytest.mark.parametrize("case", ALL, ids=NAMES)
def test_no_rule_speaks_about_the_good_script(case: Case) -> None:
    all_found = found(replace(case, site=case.good_site or case.site), case.good, case.good_files)
    assert [item for item in all_found if item.rule == case.rule] == []
    assert others(case, all_found) == []


def test_a_rule_that_fails_is_a_note_and_the_others_are_asked() -> None:
    def broken(job: ScriptJob, site: Site) -> Iterator[Hit]:
        yield Hit(str(job.steps[7]), "Wait.")

    rules = (replace(SCRIPT_RULES[0], id="broken", check=broken), *SCRIPT_RULES)
    job = read_script("#!/bin/bash\n\nsrun -n 2 hostname\n#SBATCH -N 1\n", site=site("lumi"))
    all_found = run(rules, job, site("lumi"))
    assert [one.severity for one in all_found if one.rule == RULE_FAILED] == ["note"]
    assert [one for one in all_found if one.rule != RULE_FAILED] == run(
        SCRIPT_RULES, job, site("lumi")
    )
    assert len(all_found) > 1


def test_a_mechanical_change_ends_its_finding_and_brings_no_error() -> None:
    wrong = []
    for case in ALL:
        before = found(case, case.bad, case.bad_files)
        own = [item for item in before if item.rule == case.rule and item.fix]
        if not own:
            continue
        after = found(case, fixed(case.bad, own)[0], case.bad_files)
        new = {item.rule for item in after if item.severity == "error"}
        new -= {item.rule for item in before}
        if new or case.rule in {item.rule for item in after}:
            wrong.append((case.module, case.rule, new))
    assert wrong == []


def test_every_rule_has_a_case() -> None:
    assert {rule.id for rule in SCRIPT_RULES} <= {case.rule for case in ALL}


def test_no_two_rules_have_one_id() -> None:
    ids = [rule.id for rule in SCRIPT_RULES]
    assert sorted(set(ids)) == sorted(ids)
