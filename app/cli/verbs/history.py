"""The verbs about runs that were sent: lists, facts, logs, results, cancel."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from lumitui.app.cli.confirm import confirm
from lumitui.app.cli.output import Reply, run_data, say, warn
from lumitui.app.cli.progress import follow_log, print_log
from lumitui.app.cli.session import (
    MOST,
    GivenPath,
    columns,
    core,
    json_option,
    known_site,
    run_argument,
    runs_beginning,
    site_option,
    sites_beginning,
    yes_option,
)
from lumitui.app.cli.views import tables
from lumitui.app.explain import words
from lumitui.remote.errors import HistoryError, InputError
from lumitui.remote.scheduler.states import State

if TYPE_CHECKING:
    from lumitui.app.history.listing.terms import Term
    from lumitui.app.runs import Runs


class _Filters(TypedDict):
    """The options of `history` that say which runs to list."""

    limit: int
    site_name: str | None
    state: str | None
    text: str
    filter_text: str
    sort: str


@click.command()
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1, max=MOST),
    default=50,
    show_default=True,
    help="List at most N runs.",
)
@site_option
@click.option("--state", metavar="STATE", help="Only runs in this state, such as failed.")
@click.option("--text", default="", help="Only runs with this in id, name, job id or note.")
@click.option(
    "--filter",
    "filter_text",
    metavar="FILTER",
    default="",
    help="Only runs that pass, such as 'failed site:lumi nodes>=4 2x8 age<2d !vit #best'.",
)
@click.option(
    "--sort",
    type=click.Choice(("newest", "state", "name", "nodes", "cost", "end")),
    default="newest",
    help="What to sort the list by.",
)
@click.option("--check", is_flag=True, help="Check the history's file, and show where it is.")
@click.option(
    "--recover",
    metavar="SITE",
    shell_complete=sites_beginning,
    help="Rebuild lost runs from their folders at SITE.",
)
@click.option(
    "--account", metavar="NAME", default="", help="With --recover: the project that paid for them."
)
@json_option
@click.pass_obj
def history(
    reply: Reply, check: bool, recover: str | None, account: str, **filters: Unpack[_Filters]
) -> None:
    """List runs, or rebuild lost ones.

    The list is what was last known; `lumitui status` asks the sites.
    """
    if account and recover is None:
        raise InputError("--account works only with --recover.", "Add --recover SITE.")
    if recover is not None:
        _recover(reply, recover, account)
        return
    with core() as runs:
        if check:
            _check(reply, runs)
        else:
            _list(reply, runs, filters)


def _list(reply: Reply, runs: "Runs", filters: _Filters) -> None:
    # Late: pydantic takes ten times as long as `lumitui --version` itself.
    from lumitui.app.history.listing.find_runs import Filter
    from lumitui.app.history.listing.order import By, Order

    site, order = filters["site_name"], Order(By(filters["sort"]))
    state, terms = _state(filters["state"]), _terms(filters["filter_text"])
    known_site(runs, site)
    wanted, limit, listed = Filter(site, state, filters["text"], terms), filters["limit"], 0
    if reply.json:
        every = runs.history.every(limit, wanted, order)
        listed = reply.give_each(run_data(run) for run in every)
    else:
        lines = tables.history_lines(lambda: runs.history.every(limit, wanted, order), columns())
        for line in lines:
            click.echo(line)
            listed += 1
    if not listed:
        say("There are no such runs.")
    if wanted == Filter() and not reply.json:
        say(tables.file_words(runs.history.facts(), runs.history.count()))


def _terms(text: str) -> "tuple[Term, ...]":
    if not text:
        return ()
    from lumitui.app.history.listing.terms import parse

    return parse(text)


def _state(word: str | None) -> State | None:
    if word is None:
        return None
    states = [item.value for item in State]
    if word not in states:
        raise InputError(f"There is no state {word!r}.", f"Use one of {', '.join(states)}.")
    return State(word)


def _check(reply: Reply, runs: "Runs") -> None:
    # The count first: after a check that found damage, the next use sets the file aside.
    count, facts = runs.history.count(), runs.history.facts(check=True)
    data = {"path": facts.path, "schema": facts.schema, "size": facts.size, "runs": count}
    data |= {"damage": facts.damage, "lost_texts": facts.lost_texts}
    reply.give(data, tables.file_words(facts, count))
    if facts.damage:
        raise HistoryError(
            f"The history {facts.path} is damaged.",
            "Run `lumitui history`: it keeps the file aside and begins a fresh one. Then rebuild "
            "the runs of each site with `lumitui history --recover SITE`.",
        )
    if facts.lost_texts:
        raise HistoryError(
            f"The disk has lost {words.count(facts.lost_texts, 'text')} of the runs in the "
            f"history {facts.path}.",
            "`lumitui history --recover SITE` writes again what the runs' folders have of them.",
        )


def _recover(reply: Reply, site_name: str, account: str) -> None:
    with core() as runs:
        found = runs.recover(site_name, account)
    for warning in found.warnings:
        warn(warning)
    for item in found.passed:
        say(f"skipped {item.folder}: {item.why}")
    data = {
        "site": site_name,
        "roots": found.roots,
        "rebuilt": [run_data(run) for run in found.rebuilt],
        "known": found.known,
        "passed_over": found.passed,
        "warnings": found.warnings,
    }
    reply.give(data, tables.history_table(found.rebuilt, columns()) if found.rebuilt else "")
    rebuilt = words.count(len(found.rebuilt), "run")
    say(
        f"Rebuilt {rebuilt} of {site_name}; {found.known} were known already, "
        f"{len(found.passed)} were skipped."
    )


@click.command()
@run_argument
@json_option
@click.pass_obj
def show(reply: Reply, run_id: str) -> None:
    """Show everything known about a run."""
    from lumitui.app.cli.views import show as showing

    with core() as runs:
        page = showing.gather(runs, run_id)
        for warning in page.warnings:
            warn(warning)
        reply.give(showing.page_data(page), showing.page_text(page, time.time(), columns()))


@click.command()
@run_argument
@click.argument("text", metavar="[TEXT]", required=False)
@click.option("--tag", metavar="WORDS", help="Add tags, such as best; -best removes one.")
@json_option
@click.pass_obj
def note(reply: Reply, run_id: str, text: str | None, tag: str | None) -> None:
    """Save a line about a run, or tag it.

    `lumitui history --text` finds it. An empty TEXT removes it; its tags stay.
    """
    from lumitui.app.history.listing.tags import told, with_tags

    if text is None and tag is None:
        raise InputError("There is nothing to save.", "Give a text, or --tag with a word.")
    with_tags("", tag if tag is not None else "checked")
    with core() as runs:
        run = runs.history.get(run_id) if text is None else runs.note(run_id, text)
        if tag is not None:
            runs.history.tag([run.id], tag)
            run = runs.history.get(run.id)
    reply.give(run_data(run))
    if text is not None:
        say(f"Saved the note of {run.id}." if text else f"Removed the note of {run.id}.")
    if tag is not None:
        say(told(run.id, tag))


@click.command()
@click.argument("first", metavar="RUN", shell_complete=runs_beginning)
@click.argument("second", metavar="RUN", shell_complete=runs_beginning)
@json_option
@click.pass_obj
def diff(reply: Reply, first: str, second: str) -> None:
    """Compare two runs: job file, script, code and metrics."""
    from lumitui.app.cli.views import diff as differing

    with core() as runs:
        found = differing.compare_runs(runs, first, second)
    reply.give(found, differing.difference_text(found, columns()))


@click.command()
@run_argument
@click.option("--follow", "-f", is_flag=True, help="Keep printing until the run ends.")
@click.option(
    "--attempt",
    metavar="N",
    type=click.IntRange(min=1, max=MOST),
    help="Print the log of attempt N.",
)
@click.option(
    "--last",
    metavar="BYTES",
    type=click.IntRange(min=0, max=MOST),
    default=65536,
    show_default=True,
    help="How many bytes of the end to print.",
)
def logs(run_id: str, follow: bool, attempt: int | None, last: int) -> None:
    """Print the end of a run's log."""
    if follow and attempt is not None:
        raise InputError("Only the current attempt can be followed.", "Leave out --attempt.")
    with core() as runs:
        if follow:
            follow_log(runs, run_id, last)
        else:
            print_log(runs, run_id, attempt, last)


@click.command()
@run_argument
@yes_option
@json_option
@click.pass_obj
def cancel(reply: Reply, run_id: str, yes: bool) -> None:
    """Cancel a run's job after you confirm."""
    with core() as runs:
        run = runs.history.get(run_id)
        if not run.state.is_final:
            confirm(
                f"Cancel {run.id} ({run.state}, job {run.job_id or 'not known'})?",
                yes=yes,
                otherwise="Nothing was cancelled.",
            )
        run = runs.cancel(run.id, warn=warn)
    reply.give(run_data(run), f"{run.id} is {run.state}.")


@click.command()
@run_argument
@click.argument("patterns", metavar="[PATTERN]...", nargs=-1)
@click.option(
    "--to",
    "target",
    type=GivenPath(),
    help="The folder to copy to; by default RUN's id.",
)
@json_option
@click.pass_obj
def fetch(reply: Reply, run_id: str, patterns: tuple[str, ...], target: Path | None) -> None:
    """Copy a run's results here, verified by hash.

    A folder is copied with everything in it. The exit code is 4 when a file could not be copied,
    2 when nothing matches a PATTERN.
    """
    from lumitui.app.results import fetch as results

    with core() as runs:
        run = runs.history.get(run_id)
        folder = target or Path(run.id)
        found = runs.fetch(run.id, folder, patterns)
    reply.give(found, tables.fetched_text(found.files))
    for note in results.notes(found, named=bool(patterns)):
        say(f"note: {note}")
    say(f"{words.count(len(found.files), 'file')} in {folder}.")
    results.check(found, named=bool(patterns))
