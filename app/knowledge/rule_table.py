"""The table of all rules: `SCRIPT_RULES`, and `findings`, which asks each of them."""

from lumitui.app.knowledge.model.job import ScriptJob
from lumitui.app.knowledge.report.causes import in_the_script, without_consequences
from lumitui.app.knowledge.rule import Rule, ordered, run
from lumitui.app.knowledge.rules import (
    binding,
    environment,
    launch,
    placeholders,
    program,
    request,
    script_rules,
    site_rules,
    storage,
    training,
)
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site

SCRIPT_RULES: tuple[Rule, ...] = (
    *script_rules.RULES,
    *placeholders.RULES,
    *request.RULES,
    *binding.RULES,
    *launch.RULES,
    *environment.RULES,
    *storage.RULES,
    *program.RULES,
    *training.RULES,
)
"""Every rule, by subject."""


def findings(job: ScriptJob, site: Site) -> list[Finding]:
    """Return all that these rules and the site's own find in `job`, in the order of its text."""
    found = run(SCRIPT_RULES, job, site)
    if encoding := [one for one in found if one.rule == "not-text"]:
        return encoding[:1]  # what stands between the NUL characters was not read
    alone = without_consequences([*found, *site_rules.findings(job, site)])
    return ordered([in_the_script(each, job) for each in alone])
