"""The table of all rules, and the filter that keeps only the causes among findings."""

from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules

from lumitui.app.knowledge import rules
from lumitui.app.knowledge.rule import Rule, ordered, run
from lumitui.app.knowledge.rules import site_rules
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site

_FOLLOWS = {"omp-threads": "srun-cores", "workers-argument": "srun-cores"}
"""Rules by consequence: fixing a finding of the second rule also resolves one of the first."""
_FIRST = {"more-tasks-than-gpus", "launcher-tasks", "torchrun-processes", "scattered", "gpus"}
"""Rules that propose another number of tasks or GPUs per node."""
_THEN = {"scattered", "share-cores", "idle-cores", "few-cores"}
"""Rules whose proposal depends on those numbers: they wait, so that all proposals agree."""
_UNREAD = ("directive-after-command", "nearly-a-directive")
_ON_NODE = "first-node-only"


def without_consequences(found: Iterable[Finding]) -> list[Finding]:
    """Return the findings without those that the fix of another one resolves or changes."""
    held = list(found)
    rules = {each.rule for each in held}
    gpus_unread = any(each.rule in _UNREAD and "gpu" in each.message for each in held)
    first = {each.rule for each in held if each.severity != "note"} & _FIRST
    unpacked = any(each.rule == _ON_NODE and each.severity == "error" for each in held)
    return [
        each
        for each in held
        if _FOLLOWS.get(each.rule) not in rules
        and not (each.rule in _THEN and first - {each.rule})
        and not (each.rule == "gpus-missing" and gpus_unread)
        and not (each.rule == _ON_NODE and each.severity == "warning" and unpacked)
    ]


def in_the_script(finding: Finding, job: ScriptJob) -> Finding:
    """Return a finding about a file that the script writes, at the script's own lines."""
    at, lines = finding.at, job.written.get(finding.at.file, ())
    if not at.file or not 0 < at.line <= len(lines) or not lines[at.line - 1].line:
        return finding
    start, end = lines[at.line - 1], lines[min(max(at.end_line, at.line), len(lines)) - 1]
    return replace(
        finding,
        at=replace(
            at,
            line=start.line,
            column=start.column + max(at.column, 1) - 1,
            end_line=end.line or start.line,
            end_column=(end.column or 1) + max(at.end_column, 1) - 1,
            file=start.file,
        ),
    )


SCRIPT_RULES: tuple[Rule, ...] = tuple(
    sorted(
        (
            each
            for module in iter_modules(rules.__path__, f"{rules.__name__}.")
            for each in vars(import_module(module.name)).values()
            if isinstance(each, Rule)
        ),
        key=lambda each: each.id,
    )
)
"""All rules that the modules of `rules` define, sorted by name across modules."""


def findings(job: ScriptJob, site: Site) -> list[Finding]:
    """Return the findings of these rules and the site's own rules in `job`, in text order."""
    found = run(SCRIPT_RULES, job, site)
    unread = ["not-text", *["windows-line-ends"] * ("\n" not in job.text)]
    if encoding := [one for one in found if one.rule in unread]:
        return encoding[:1]  # the reader skipped the text between NUL characters, or saw one line
    alone = without_consequences([*found, *site_rules.findings(job, site)])
    return ordered([in_the_script(each, job) for each in alone])
