"""The table of all rules: `SCRIPT_RULES`, and `findings`, which asks each of them."""

from importlib import import_module
from pkgutil import iter_modules

from lumitui.app.knowledge import rules
from lumitui.app.knowledge.report.causes import in_the_script, without_consequences
from lumitui.app.knowledge.rule import Rule, ordered, run
from lumitui.app.knowledge.rules import site_rules
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site

SCRIPT_RULES: tuple[Rule, ...] = tuple(
    each
    for module in iter_modules(rules.__path__, f"{rules.__name__}.")
    for each in vars(import_module(module.name)).values()
    if isinstance(each, Rule)
)
"""Every rule that a module of `rules` defines."""


def findings(job: ScriptJob, site: Site) -> list[Finding]:
    """Return all that these rules and the site's own find in `job`, in the order of its text."""
    found = run(SCRIPT_RULES, job, site)
    if encoding := [one for one in found if one.rule == "not-text"]:
        return encoding[:1]  # the reader skipped what is between the NUL characters
    alone = without_consequences([*found, *site_rules.findings(job, site)])
    return ordered([in_the_script(each, job) for each in alone])
