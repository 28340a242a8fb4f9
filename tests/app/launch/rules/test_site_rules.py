"""The rules that hold at one site alone: each has a script that it is about, and no plain job."""

import pytest

from lumitui.app.launch.adviser.adviser import findings
from tests.support.jobs.sites.site_jobs import launched, site
from tests.support.rules.lint_cases import tried_rules

SITES = ("roihu", "puhti", "mahti", "karolina", "mn5")


@pytest.mark.parametrize("name", SITES)
def test_every_rule_of_a_site_has_a_case_and_a_plain_job_breaks_none(name: str) -> None:
    rules = {rule.id for rule in site(name).rules}
    assert rules <= tried_rules()
    launch = launched(name, next(iter(site(name).partitions)))
    assert not rules & {finding.rule for finding in findings(launch, site(name))}
