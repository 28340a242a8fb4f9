"""What a rule is, and how one registers itself."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from lumitui.app.knowledge.any_site import SiteNotKnownError
from lumitui.app.knowledge.model.job import ScriptJob
from lumitui.app.knowledge.model.source_position import NOWHERE, Position
from lumitui.remote.site.profile import Site

Severity = Literal["error", "warning", "note"]
"""`error`: Slurm refuses it, or the job fails or hangs. `warning`: slow, wasteful or fragile.
`note`: worth knowing."""


@dataclass(frozen=True)
class Edit:
    """A mechanical change that ends a finding: these characters become those."""

    words: str
    """What it does, like `remove --gpu-bind`."""
    at: Position
    text: str


@dataclass(frozen=True)
class Cure:
    """What of the request ends a finding, whatever the request is written in."""

    option: str
    """sbatch's name for it, like `time`; or a variable of the environment."""
    value: str | None
    """What is right; None: to leave it out."""


@dataclass(frozen=True)
class Hit:
    """One place where a rule found something."""

    message: str
    """What is wrong and what follows from it, in one or two sentences."""
    do: str
    """What to do about it, in one sentence that begins with a verb."""
    at: Position = NOWHERE
    edit: Edit | None = None
    severity: Severity | None = None
    """Another severity than the rule's, where the case is milder or worse."""
    cure: Cure | None = None


RULE_FAILED = "rule-failed"
"""What a defect of a rule is called among the findings."""
Check = Callable[[ScriptJob, Site], Iterator[Hit]]
"""Yields what it finds in a job at a site. Where no site is known, asking it for a fact ends the
check (`any_site`), and what was found before stays."""


@dataclass(frozen=True)
class Rule:
    """One thing that the adviser knows."""

    id: str
    """Words with dashes, like `idle-gpus`."""
    severity: Severity
    title: str
    """What it finds, as half a sentence without a full stop: `GPUs that no rank uses`."""
    why: str
    """What happens to a job that has it, in a sentence or two, for `lumitui rules ID`."""
    source: str
    """The document or address that says so."""
    check: Check


@dataclass(frozen=True)
class LintFinding:
    """A hit with its rule: what a person reads."""

    rule: str
    severity: Severity
    message: str
    do: str
    source: str
    at: Position
    edit: Edit | None = None


def rule(
    name: str, severity: Severity, title: str, *, why: str, source: str
) -> Callable[[Check], Rule]:
    """Return a decorator that makes a rule of a check.

    The module lists its rules in `RULES`, and `table` lists the modules.
    """
    return lambda check: Rule(name, severity, title, why, source, check)


def run(
    rules: tuple[Rule, ...],
    job: ScriptJob,
    site: Site,
    cures: dict[LintFinding, Cure] | None = None,
) -> list[LintFinding]:
    """Return what `rules` find in `job`, in the order of the text, errors first on a line.

    `cures` gets what ends a finding, for those of which it is known.
    """
    known = {} if cures is None else cures
    return ordered([finding for item in rules for finding in _asked(item, job, site, known)])


def _asked(
    item: Rule, job: ScriptJob, site: Site, cures: dict[LintFinding, Cure]
) -> list[LintFinding]:
    """Return what one rule finds; that it failed, where it did."""
    found: list[LintFinding] = []
    try:
        for hit in item.check(job, site):
            found.append(
                LintFinding(item.id, hit.severity or item.severity, hit.message, hit.do,
                            item.source, hit.at, hit.edit)
            )  # fmt: skip
            if hit.cure:
                cures[found[-1]] = hit.cure
    except SiteNotKnownError:
        return found
    except Exception as error:
        # Advice is not worth a job: 38 tests of sends failed once, as a rule counted wrongly.
        return [
            LintFinding(
                RULE_FAILED,
                "note",
                f"The rule {item.id} could not judge this job ({type(error).__name__}: {error}).",
                "Report it with the script; the other rules have judged it.",
                item.source,
                NOWHERE,
            )
        ]
    return found


def ordered(found: list[LintFinding]) -> list[LintFinding]:
    """Return findings in the order of the text, errors first on a line, each once."""
    rank = {"error": 0, "warning": 1, "note": 2}
    return sorted(dict.fromkeys(found), key=lambda item: (item.at, rank[item.severity], item.rule))
