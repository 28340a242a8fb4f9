"""Output of `why`: causes as text, and the `--json` object."""

from collections.abc import Sequence
from dataclasses import dataclass

from lumitui.app.runs import Diagnosis


@dataclass(frozen=True)
class WhyReply:
    """The `--json` output."""

    why: Sequence[Diagnosis]
    """The likeliest cause first."""
    lines: Sequence[str]
    """The telltale lines, if no cause is known."""
    command: str = ""
    """The resubmission that may help; "" if the job or its code must change."""
    letter: str = ""
    """A text for the site's helpdesk."""
    code: Sequence[str] = ()
    """The lines around the one that raised the first cause, with their numbers; () if unknown."""
    idle: str = ""
    """What the run's GPUs and ranks waited for; "" if they waited little, or without readings."""


def cause_text(item: Diagnosis) -> str:
    """Return a cause, its fix, and the line that shows it."""
    rows = [item.cause, f"  {item.do}"]
    number = "" if item.number is None else item.number
    return "\n".join([*rows, f"  {number}> {item.line.strip()}"] if item.line.strip() else rows)


def why_text(answer: WhyReply) -> str:
    """Return the causes; below the first one, also the telltale lines and the code it is about."""
    first, *others = map(cause_text, answer.why) if answer.why else ("",)
    shown = {item.line.strip() for item in answer.why}
    below = [*(line for line in answer.lines if line.strip() not in shown), *answer.code]
    return "\n\n".join(["\n".join([first, *(f"  {row}" for row in below)]), *others])
