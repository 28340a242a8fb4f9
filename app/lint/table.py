"""The table of all rules: `RULES`, and `findings`, which asks each of them."""

from lumitui.app.lint.model.job import Job
from lumitui.app.lint.rule import Finding, Rule, run
from lumitui.remote.site.profile import Site

RULES: tuple[Rule, ...] = ()
"""Every rule, by subject."""


def findings(job: Job, site: Site) -> list[Finding]:
    """Return all that the rules find in `job`, in the order of its text."""
    return run(RULES, job, site)
