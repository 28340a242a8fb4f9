"""Each rule has a script that it must speak about, and one that differs in that alone.

The scripts are in `cases/`, by the module of their rule.
"""

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import pytest
import yaml

from lumitui.app.lint.bash import read_script
from lumitui.app.lint.rule import Finding
from lumitui.app.lint.table import RULES, findings
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites

CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Case:
    """Two scripts of a rule."""

    rule: str
    site: str
    bad: str
    good: str
    module: str
    files: dict[str, str] = field(default_factory=dict)
    """Texts of files that both scripts name."""
    bad_files: dict[str, str] = field(default_factory=dict)
    good_files: dict[str, str] = field(default_factory=dict)
    """Those that differ: where the bad thing is not in the script."""
    good_site: str = ""
    """The good script's site, where a rule is about the site itself; "": the same."""
    line: int = 0
    """Where the finding stands in the bad script; 0: anywhere."""
    also: tuple[str, ...] = ()
    """Rules that may speak about either script as well."""


def read_cases() -> list[Case]:
    found = []
    for path in sorted(CASES.rglob("*.yaml")):
        module = str(path.relative_to(CASES).with_suffix(""))
        for item in yaml.safe_load(path.read_text()) or []:
            found.append(Case(**{**item, "also": tuple(item.get("also", ()))}, module=module))
    return found


ALL = read_cases()
NAMES = [f"{case.module}:{case.rule}" for case in ALL]


@cache
def site(name: str) -> Site:
    return Sites([BUILT_IN]).load(name)


def found(case: Case, text: str, files: dict[str, str]) -> list[Finding]:
    at = site(case.site)
    return findings(read_script(text, site=at, files={**case.files, **files}), at)


def others(case: Case, all_found: list[Finding]) -> list[str]:
    """Return what else is said, besides notes and what the case allows."""
    return [
        f"{item.at.line}: {item.rule}: {item.message}"
        for item in all_found
        if item.severity != "note" and item.rule not in (case.rule, *case.also)
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


def test_every_rule_has_a_case() -> None:
    assert {rule.id for rule in RULES} <= {case.rule for case in ALL}


def test_no_two_rules_have_one_id() -> None:
    ids = [rule.id for rule in RULES]
    assert sorted(set(ids)) == sorted(ids)
