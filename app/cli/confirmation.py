"""Confirmations of verbs, and the previews shown before them."""

import shutil
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from lumitui.app.cli.output import Reply, has_person, say, say_rows
from lumitui.app.cli.views import tables
from lumitui.app.explain import run_phrases, words
from lumitui.app.runs import InputError, LumiError, lines_of, quote

if TYPE_CHECKING:
    from lumitui.app.runs import CodeNews, Preview, Resubmission, Runs
    from lumitui.app.runs import LoginQuestion as Question

Freed = TypeVar("Freed")

NOTHING_SENT = "Nothing was sent."
CURE_OF_RUN = "Change it with --set or --nodes"
"""How to correct the errors of a resubmission."""


def ask(question: "Question") -> str | None:
    """Prompt the user for a login; decline without a terminal."""
    if not has_person():
        say(f"{question.text}\nlumitui did not answer, because there is no terminal.")
        return None
    text = lines_of(question.text)
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


def wrapped(text: str, columns: int) -> str:
    """Return a text whose lines break between words; a terminal breaks inside a duration."""
    rows = (
        textwrap.wrap(row, columns, break_long_words=False, break_on_hyphens=False) or [row]
        for row in text.split("\n")
    )
    return "\n".join(chain.from_iterable(rows))


def confirm(question: str, *, yes: bool, otherwise: str) -> None:
    """Ask the user to agree, with No as the default.

    Raises:
        InputError: there is no terminal, and `yes` is False.
        LumiError: the user declined; `otherwise` is its message.
    """
    if yes:
        return
    if not has_person():
        say(question)
        raise InputError("Cannot ask for confirmation without a terminal.", "Add --yes.")
    columns = shutil.get_terminal_size().columns
    if not click.confirm(wrapped(lines_of(question), columns), default=False, err=True):
        raise LumiError(otherwise)


def remove_agreed(
    reply: Reply,
    question: str,
    remove: Callable[..., Freed],
    text: Callable[..., str],
    found: Callable[[Freed], bool],
    *,
    dry: bool,
    yes: bool,
) -> None:
    """Remove files from a site if the user agrees, see `confirm`; print what `found` finds in it.

    `remove` and `text` take `dry`, which is True for a dry run.
    """
    freed = remove(dry=dry or not yes)
    if not (dry or yes) and found(freed):
        say(text(freed, dry=True))
        confirm(question, yes=yes, otherwise="Nothing was removed.")
        freed = remove(dry=False)
    reply.give(freed, text(freed, dry=dry))
    if not found(freed):
        say("There is nothing to remove.")


def show_findings(*previews: "Preview") -> list[str]:
    """Print the adviser's findings on a job or a grid, each once; return their texts."""
    texts = finding_texts(previews)
    for text in texts:
        say(text)
    return texts


def finding_texts(previews: Sequence["Preview"]) -> list[str]:
    """Return the texts of the adviser's findings on a job or a grid, each once."""
    return list(dict.fromkeys(words.finding(item) for one in previews for item in one.findings))


def show_unseen(runs: "Runs", job: Path, previews: Sequence["Preview"]) -> None:
    """Print on stderr every error, and the findings that the last preview did not print."""
    texts = finding_texts(previews)
    unseen = runs.shown_findings.unseen(job, texts)
    errors = finding_texts([replace(one, findings=one.errors) for one in previews])
    shown = [text for text in texts if text in unseen or text in errors]
    for text in shown:
        say(text)
    if hidden := len(texts) - len(shown):
        known = words.count(hidden, "finding")
        say(f"{known} already shown by the preview: lumitui preview {quote(str(job))}")


def refuse_errors(preview: "Preview", hint: str = NOTHING_SENT) -> None:
    """Refuse a launch with errors; `hint` says what to do.

    Raises:
        InputError: the adviser found an error.
    """
    if errors := preview.errors:
        raise InputError(
            f"The job has {words.count(len(errors), 'error')}; see the fixes above.", hint
        )


def agreed(
    previews: Sequence["Preview"],
    question: str,
    *,
    yes: bool,
    force: bool,
    cure: str = "Correct the job file",
    terms: Sequence[str] = (),
) -> bool:
    """Show `terms` and how the site bills; return if the user agrees to them and to the errors.

    See `confirm`. `force` accepts the errors in advance; `yes` alone does not, because the user has
    not seen them. `cure` says where to correct the errors.

    Returns:
        Whether there are errors, which the user accepted.

    Raises:
        InputError: the user cannot accept the errors: there is no terminal, or an error is final.
    """
    for one in previews:
        if any(error.final for error in one.errors):
            refuse_errors(one)
    errors = list(dict.fromkeys(error.rule for one in previews for error in one.errors))
    summary = f"The job has {words.count(len(errors), 'error')} ({', '.join(errors)})"
    if errors and not force and (yes or not has_person()):
        raise InputError(
            f"{summary}; see the fixes above.",
            f"{NOTHING_SENT} {cure}, or add --force to send it anyway.",
        )
    for text in (*terms, *(() if yes else billing_notes(previews))):
        say(text)
    question = f"{summary}. {question}" if errors else question
    confirm(question, yes=yes, otherwise=NOTHING_SENT)
    return bool(errors)


def without_later(preview: "Preview") -> "Preview":
    """Return the preview of a new job file: a script that does not exist yet is a warning."""
    later = {"script", "project"}
    findings = (
        replace(item, severity="warning") if item.rule in later else item
        for item in preview.findings
    )
    return replace(preview, findings=tuple(findings))


def without_secrets(preview: "Preview") -> "Preview":
    """Return the preview of an exported job: its secrets may be set on another machine."""
    findings = tuple(item for item in preview.findings if item.rule != "secrets")
    return replace(preview, findings=findings)


def grid_lines(previews: Sequence["Preview"]) -> list[str]:
    """Return each run of a grid with its price, and the total price."""
    from lumitui.app.runs import total_price

    lines = [
        f"{number:3}  {item.cell}  {words.price_sentence(item.launch.price)}"
        for number, item in enumerate(previews, 1)
    ]
    whole = ", ".join(words.price_sentence(price) for price in total_price(tuple(previews)))
    asked = dict.fromkeys(
        f"requests {words.layout_size(one.launch.layout)} of {one.launch.spec.partition}, at most "
        + run_phrases.time_limit(one.launch)
        + f", account {one.launch.spec.account}" * (one.launch.spec.account != "none")
        + code_words(one)
        for one in previews
    )
    return [*asked, *lines, f"{words.count(len(previews), 'run')}; {whole}"]


def billing_notes(previews: Sequence["Preview"]) -> list[str]:
    """Return how the sites of these jobs count what they bill, to print below the prices."""
    notes = words.billing_notes((one.launch.price, one.site) for one in previews)
    return [f"note: {note}" for note in notes]


def code_words(preview: "Preview") -> str:
    """Return how much code the job sends, to append; "" if it sends none."""
    return f"; code: {preview.files.weight}" * bool(preview.files.weight)


def refuse_wait(wait: bool) -> None:
    """Refuse --wait and --timeout for a series.

    Raises:
        InputError: `wait` is True.
    """
    if wait:
        raise InputError(
            "--wait and --timeout work only with one run, but this sends several.",
            "Omit them, and follow the runs with `lumitui status`.",
        )


def agree_to_submit(
    previews: Sequence["Preview"], *, yes: bool, force: bool = False, price: str = ""
) -> tuple["Preview", ...]:
    """Show the job to send, and return it if the user agrees; see `agreed`.

    `price` describes the price of a single run; by default its limit does.
    """
    launch, site = previews[0].launch, words.site_names(one.site for one in previews)
    question, terms = f"Submit these {len(previews)} runs to {site}?", grid_lines(previews)
    if len(previews) == 1:
        terms = []
        question = (
            f"Submit {launch.spec.name} to {site}: "
            f"{words.layout_size(launch.layout)}, at most {run_phrases.time_limit(launch)}; "
            f"{price or words.price_sentence(launch.price)}{code_words(previews[0])}?"
        )
    forced = agreed(previews, question, yes=yes, force=force, terms=terms)
    return tuple(replace(one, forced=forced) for one in previews)


def show_changes(planned: "Resubmission", columns: int) -> None:
    """Print the changes of a resubmission, before and after, on stderr."""
    say_rows(tables.change_table(planned.plan.changes, columns))
    for note in planned.plan.notes:
        say(f"note: {note}")
    if planned.effect and planned.naming:
        words = " ".join(f"--set {quote(setting)}" for setting in planned.naming)
        say(f"note: {planned.effect} Add {words} to name them.")


def show_code_news(planned: "Resubmission", news: "CodeNews") -> None:
    """Print on stderr the project's changes since the run, and which code lumitui sends."""
    if news.differs:
        same = planned.plan.request.code == "same"
        other = "; to send your current code, add `--code current`" if same else ""
        say(f"note: {news.sentence} This sends {planned.code_sent}{other}.")


def agree_to_resubmit(
    planned: "Resubmission", news: "CodeNews", columns: int, price: str, *, yes: bool, force: bool
) -> "Resubmission":
    """Show the changes, and return the resubmission if the user agrees; see `agreed`."""
    show_changes(planned, columns)
    show_code_news(planned, news)
    show_findings(planned.preview)
    again = f"Resubmit {planned.plan.parent.id} with {planned.code_sent} from {planned.plan.start}"
    question = f"{again}; {price}{code_words(planned.preview)}?"
    preview = planned.preview
    return planned.forced(agreed([preview], question, yes=yes, force=force, cure=CURE_OF_RUN))
