"""The model of a rule, and its registration."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from lumitui.app.knowledge.any_site import SiteNotKnownError
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.finding import RANK, Cure, Finding, Fix, Severity
from lumitui.remote.site.profile import Site
from lumitui.remote.site.source_position import NOWHERE, Position

Subject = Literal["script", "job file", "cluster", "site"]
"""The input of a rule: scripts and job files, only job files, the cluster's answers, or a job at
the one site whose profile contains the rule."""


@dataclass(frozen=True)
class Topic:
    """One rule of the adviser, as all checkers describe it."""

    id: str
    severity: Severity
    title: str
    """The mistake, as a phrase."""
    why: str
    source: str
    subject: Subject = "script"
    site: str = ""
    """The site whose profile contains it; "" means all."""


UNUSED_IGNORE = Topic(
    "unused-ignore", "note", "a comment that silences nothing or names an unknown rule",
    "The comment would hide later findings of the rule.", "docs/lint.md",
)  # fmt: skip
"""The rule about `# lumitui: ignore=RULE` comments; it needs only the script's text."""


def of_site(site: Site) -> tuple[Topic, ...]:
    """Return the topics of the rules in a site's profile, with placeholders for a job's values."""
    return tuple(
        Topic(item.id, item.severity, title.rstrip("."), item.do, item.source, "site", site.name)
        for item in site.rules
        for title in [item.message.replace("{value}", "…").replace("{nodes}", "several")]
    )


@dataclass(frozen=True)
class Hit:
    """One position at which a rule found a mistake."""

    message: str
    """The mistake and its effect, in one or two sentences."""
    do: str
    """The fix, in one sentence that begins with a verb."""
    at: Position = NOWHERE
    fix: Fix | None = None
    severity: Severity | None = None
    """A severity that overrides the rule's, for a milder or worse case."""
    cure: Cure | None = None
    also: tuple[Position, ...] = ()
    """More lines where a comment silences it."""


RULE_FAILED = "rule-failed"
"""Rule name of the finding about a crashed rule."""
Check = Callable[[ScriptJob, Site], Iterator[Hit]]
"""Yields findings in a job at a site. If the site is unknown, reading one of its facts ends the
check (`any_site`), and earlier findings stay."""


@dataclass(frozen=True)
class Rule(Topic):
    """A topic about any job, with the check that finds it."""

    check: Check = field(kw_only=True)

    @property
    def topic(self) -> Topic:
        """The rule's public description."""
        return Topic(self.id, self.severity, self.title, self.why, self.source)


def rule(
    name: str, severity: Severity, title: str, *, why: str, source: str
) -> Callable[[Check], Rule]:
    """Return a decorator that turns a check into a rule, which `rule_table` finds in its module."""
    return lambda check: Rule(name, severity, title, why, source, check=check)


def run(rules: tuple[Rule, ...], job: ScriptJob, site: Site) -> list[Finding]:
    """Return the findings of `rules` in `job`, in the order of the text, errors first on a line."""
    return ordered([finding for item in rules for finding in _of_rule(item, job, site)])


def _of_rule(item: Rule, job: ScriptJob, site: Site) -> list[Finding]:
    """Return the findings of one rule; if it crashed, a finding about the crash."""
    findings: list[Finding] = []
    try:
        for hit in item.check(job, site):
            # Lines with different ranks may start one program: its fault is named for the first.
            if hit.at.file and any((one.at, one.do) == (hit.at, hit.do) for one in findings):
                continue
            severity = hit.severity or item.severity
            findings.append(
                Finding(item.id, severity, hit.message, hit.do, item.source, hit.at, hit.fix,
                        hit.cure, hit.also)
            )  # fmt: skip
    except SiteNotKnownError:
        return findings
    except Exception as error:
        # A broken rule must not stop a send: one rule's miscount once failed 38 tests of sends.
        return [
            Finding(
                RULE_FAILED,
                "note",
                f"The rule {item.id} could not check this job ({type(error).__name__}: {error}).",
                "Report this, and attach the script; the other rules have checked it.",
                item.source,
            )
        ]
    return findings


def ordered(found: list[Finding]) -> list[Finding]:
    """Return findings in the order of the text, errors first on a line, each once."""
    return sorted(dict.fromkeys(found), key=lambda item: (item.at, RANK[item.severity], item.rule))
