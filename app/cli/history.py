"""The verbs that read the history: lists, one run, two runs beside each other."""

import time
from typing import TYPE_CHECKING

import click

from lumitui.app.cli import tables
from lumitui.app.cli.output import Reply, say
from lumitui.app.cli.session import (
    columns,
    core,
    json_option,
    known_site,
    run_argument,
    runs_beginning,
    site_option,
    sites_beginning,
)
from lumitui.remote.errors import HistoryError, InputError

if TYPE_CHECKING:
    from lumitui.app.runs import Runs


@click.command()
@click.option("--limit", type=click.IntRange(min=1), default=50, help="Runs at most (50).")
@site_option
@click.option("--state", help="Runs in this state, like failed.")
@click.option("--text", default="", help="Runs with this in id, name, job id or note.")
@click.option("--check", is_flag=True, help="Check the file, and tell where it is.")
@click.option(
    "--recover", metavar="SITE", shell_complete=sites_beginning, help="Rebuild lost runs of a site."
)
@click.option("--account", default="", help="With --recover: the project whose runs to look for.")
@json_option
@click.pass_obj
def history(
    reply: Reply,
    limit: int,
    site_name: str | None,
    state: str | None,
    text: str,
    check: bool,
    recover: str | None,
    account: str,
) -> None:
    """List runs, newest first, without asking any site; or rebuild what was lost."""
    from lumitui.remote.scheduler.protocol import State

    if account and recover is None:
        raise InputError("--account says whose runs to rebuild.", "Add --recover SITE.")
    if recover is not None:
        _recover(reply, recover, account)
        return

    words = [item.value for item in State]
    if state is not None and state not in words:
        raise InputError(f"There is no state {state!r}.", f"States are {', '.join(words)}.")
    chosen = State(state) if state is not None else None
    with core() as runs:
        if check:
            _check(reply, runs)
            return
        known_site(runs, site_name)
        found = runs.history.page(limit=limit, site=site_name, state=chosen, text=text)
        about = tables.file_words(runs.history.facts(), runs.history.count())
    data = [tables.run_data(run) for run in found]
    reply.give(data, tables.history_table(found, columns()) if found else "")
    if not found:
        say("There are no such runs.")
    if not (site_name or state or text or reply.json):
        say(about)


def _check(reply: Reply, runs: "Runs") -> None:
    facts, count = runs.history.facts(), runs.history.count()
    data = {"path": facts.path, "schema": facts.schema, "size": facts.size, "runs": count}
    reply.give(data | {"damage": facts.damage}, tables.file_words(facts, count))
    if facts.damage:
        raise HistoryError(
            f"The history {facts.path} is damaged.",
            "The next use keeps it aside and begins a fresh one; then `lumitui history --recover "
            "SITE` rebuilds the runs of a site.",
        )


def _recover(reply: Reply, site_name: str, account: str) -> None:
    with core() as runs:
        found = runs.recover(site_name, account)
    for warning in found.warnings:
        say(f"warning: {warning}")
    for item in found.passed:
        say(f"passed over {item.folder}: {item.why}")
    data = {
        "site": site_name,
        "roots": found.roots,
        "rebuilt": [tables.run_data(run) for run in found.rebuilt],
        "known": found.known,
        "passed_over": found.passed,
        "warnings": found.warnings,
    }
    reply.give(data, tables.history_table(found.rebuilt, columns()) if found.rebuilt else "")
    say(
        f"{len(found.rebuilt)} runs of {site_name} were rebuilt, {found.known} were known, "
        f"{len(found.passed)} passed over."
    )


@click.command()
@run_argument
@json_option
@click.pass_obj
def show(reply: Reply, run_id: str) -> None:
    """Show all that is known of a run."""
    from lumitui.app.cli import show as showing

    with core() as runs:
        page = showing.gather(runs, run_id)
        for warning in page.warnings:
            say(f"warning: {warning}")
        reply.give(showing.page_data(page), showing.page_text(page, time.time(), columns()))


@click.command()
@run_argument
@click.argument("text", metavar="TEXT")
@json_option
@click.pass_obj
def note(reply: Reply, run_id: str, text: str) -> None:
    """Keep a line about a run, which `history --text` finds; an empty TEXT removes it."""
    with core() as runs:
        run = runs.note(run_id, text)
    reply.give(tables.run_data(run))
    say(f"The note of {run.id} is kept." if text else f"{run.id} has no note any more.")


@click.command()
@click.argument("first", metavar="RUN", shell_complete=runs_beginning)
@click.argument("second", metavar="RUN", shell_complete=runs_beginning)
@json_option
@click.pass_obj
def diff(reply: Reply, first: str, second: str) -> None:
    """Compare two runs: job file, script, code and metrics."""
    from lumitui.app.cli import diff as differing

    with core() as runs:
        found = differing.compare_runs(runs, first, second)
    reply.give(found, differing.difference_text(found, columns()))
