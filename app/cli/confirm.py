"""What the person is asked, and what they see before they agree."""

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from lumitui.app.cli import tables
from lumitui.app.cli.output import has_person, say
from lumitui.app.explain import words
from lumitui.app.explain.safe_text import spell_out
from lumitui.remote.errors import InputError, LumiError

if TYPE_CHECKING:
    from lumitui.app.scale.resubmission import Resubmission
    from lumitui.app.send.preview import Preview
    from lumitui.remote.ssh.prompts import Question

NOTHING_SENT = "Nothing was sent."


def ask(question: "Question") -> str | None:
    """Ask the person what a login asks; without a terminal the question is declined."""
    if not has_person():
        say(f"{question.text}\nThere is no terminal to ask on, so the question was declined.")
        return None
    text = spell_out(question.text, keep="\n")
    try:
        answer = click.prompt(
            text.rstrip(": "),
            default="",
            show_default=False,
            hide_input=question.secret,
            err=True,
        )
    except click.Abort:
        return None
    return str(answer)


def confirm(question: str, *, yes: bool, otherwise: str) -> None:
    """Return when the person agrees, once; the default is No.

    Raises:
        InputError: there is nobody to ask and `yes` was not given.
        LumiError: they said no; `otherwise` says what that means.
    """
    if yes:
        return
    if not has_person():
        raise InputError(
            "This needs a confirmation, and there is no terminal to ask on.", "Add --yes."
        )
    if not click.confirm(spell_out(question, keep="\n"), default=False, err=True):
        raise LumiError(otherwise)


def show_findings(found: "Preview") -> None:
    """Print what the adviser found, on stderr."""
    for finding in found.findings:
        say(words.finding(finding))


def refuse_errors(found: "Preview") -> None:
    """Raise when the adviser's findings keep the launch from being sent.

    Raises:
        InputError: there is an error among them.
    """
    if found.errors:
        raise InputError(
            f"The job has {words.count(len(found.errors), 'error')}, shown above.",
            found.errors[0].do,
        )


def without_later(found: "Preview") -> "Preview":
    """Return the preview of a job file to begin with: its script may be written later."""
    later = {"script", "project"}
    findings = (
        replace(item, severity="warning") if item.id in later else item for item in found.findings
    )
    return replace(found, findings=tuple(findings))


def without_secrets(found: "Preview") -> "Preview":
    """Return the preview of a job that is not sent from here: its secrets may be set elsewhere."""
    findings = tuple(item for item in found.findings if item.id != "secrets")
    return replace(found, findings=findings)


def agree_to_submit(found: "Preview", *, yes: bool) -> None:
    """Show what would be sent, and return when the person agrees; see `confirm`."""
    show_findings(found)
    refuse_errors(found)
    launch = found.launch
    confirm(
        f"Submit {launch.spec.name} to {found.site.name}: "
        f"{words.layout_size(launch.layout)}, at most {launch.spec.time}; "
        f"{words.price_sentence(launch.price)}?",
        yes=yes,
        otherwise=NOTHING_SENT,
    )


def show_changes(planned: "Resubmission", columns: int) -> None:
    """Print what a resubmission changes, before and after, on stderr."""
    say(tables.change_table(planned.changes, columns))
    for note in planned.notes:
        say(f"note: {note}")


def agree_to_resubmit(planned: "Resubmission", columns: int, *, yes: bool) -> None:
    """Show what changes, and return when the person agrees; see `confirm`."""
    show_changes(planned, columns)
    show_findings(planned.preview)
    refuse_errors(planned.preview)
    confirm(
        f"Resubmit {planned.parent.id} with the {planned.code} code from {planned.start}; "
        f"{words.price_sentence(planned.preview.launch.price)}?",
        yes=yes,
        otherwise=NOTHING_SENT,
    )
