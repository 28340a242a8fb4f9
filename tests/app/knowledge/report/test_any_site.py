"""Without a site, rules say nothing that a site's facts would have to tell."""

from lumitui.app.knowledge.any_site import any_site, is_known
from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.rule import RULE_FAILED
from lumitui.app.knowledge.rule_table import findings
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.rules.rule_cases import read_cases

_CASES = read_cases()
_SITES = Sites([BUILT_IN])


def test_a_site_that_nobody_named_is_not_known() -> None:
    assert not is_known(any_site())
    assert is_known(_SITES.load("lumi"))


def test_what_is_said_of_good_scripts_without_a_site_is_said_with_it() -> None:
    more = []
    for case in _CASES:
        files = {**case.files, **case.good_files}
        known = _SITES.load(case.good_site or case.site)
        found = findings(read_script(case.good, site=any_site(), files=files), any_site())
        if found:
            there = findings(read_script(case.good, site=known, files=files), known)
            held = {(each.rule, each.at) for each in there}
            more += [(case.rule, each) for each in found if (each.rule, each.at) not in held]
    assert more == []


def test_no_rule_fails_without_a_site_and_most_speak() -> None:
    spoke, failed = set(), []
    for case in _CASES:
        files = {**case.files, **case.bad_files}
        found = findings(read_script(case.bad, site=any_site(), files=files), any_site())
        failed += [each.message for each in found if each.rule == RULE_FAILED]
        spoke |= {case.rule} & {each.rule for each in found}
    assert failed == []
    assert len(spoke) > len({case.rule for case in _CASES if "sites/" not in case.module}) // 2
