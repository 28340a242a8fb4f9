"""The rules that hold at one site alone: no plain job breaks one."""

import pytest

from lumitui.app.launch.adviser.adviser import findings
from tests.support.jobs.sites.site_jobs import launched, site

SITES = ("roihu", "puhti", "mahti", "karolina", "mn5")


@pytest.mark.parametrize("name", SITES)
def test_a_plain_job_breaks_no_rule_of_its_site(name: str) -> None:
    rules = {rule.id for rule in site(name).rules}
    launch = launched(name, next(iter(site(name).partitions)))
    assert not rules & {finding.rule for finding in findings(launch, site(name))}
