"""The rules as a user reads them: what each finds, why it matters, and who says so. Pure."""

from dataclasses import dataclass
from typing import Literal

from lumitui.remote.site.finding import Severity
from lumitui.remote.site.profile import Site

Subject = Literal["script", "job file", "cluster", "site"]
"""What a rule reads: scripts and job files alike; job files alone; what the cluster answers; or
the job at one site, whose profile has the rule."""


@dataclass(frozen=True)
class Topic:
    """One thing that the adviser knows, as every checker names it."""

    id: str
    severity: Severity
    title: str
    """What it finds, as half a sentence."""
    why: str
    source: str
    subject: Subject = "script"
    site: str = ""
    """The site whose profile has it; "": all."""


UNUSED_IGNORE = Topic(
    "unused-ignore", "note", "a comment that silences nothing or names an unknown rule",
    "The comment would hide what the rule finds there later.", "docs/lint.md",
)  # fmt: skip
"""The message about `# lumitui: ignore=RULE` itself; it needs the script's text, and no job."""


def of_site(site: Site) -> tuple[Topic, ...]:
    """Return the topics of the rules in a site's profile; what differs from job to job is open."""
    return tuple(
        Topic(item.id, item.severity, title.rstrip("."), item.do, item.source, "site", site.name)
        for item in site.rules
        for title in [item.message.replace("{value}", "…").replace("{nodes}", "several")]
    )
