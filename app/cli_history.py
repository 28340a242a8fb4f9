"""The verbs that read the history: lists, one run, two runs beside each other."""

import time

import click

from lumitui.app import tables
from lumitui.app.command import (
    columns,
    core,
    json_option,
    run_argument,
    runs_beginning,
    site_option,
)
from lumitui.app.output import Reply, say
from lumitui.remote.errors import InputError


@click.command()
@click.option("--limit", type=click.IntRange(min=1), default=50, help="Runs at most (50).")
@site_option
@click.option("--state", help="Runs in this state, like failed.")
@click.option("--text", default="", help="Runs with this in id, name, job id or note.")
@json_option
@click.pass_obj
def history(reply: Reply, limit: int, site_name: str | None, state: str | None, text: str) -> None:
    """List runs, newest first, without asking any site."""
    from lumitui.remote.scheduler import State

    words = [item.value for item in State]
    if state is not None and state not in words:
        raise InputError(f"There is no state {state!r}.", f"States are {', '.join(words)}.")
    chosen = State(state) if state is not None else None
    with core() as runs:
        found = runs.history.page(limit=limit, site=site_name, state=chosen, text=text)
    data = [tables.run_data(run) for run in found]
    reply.give(data, tables.history_table(found, columns()) if found else "")
    if not found:
        say("There are no such runs.")


@click.command()
@run_argument
@json_option
@click.pass_obj
def show(reply: Reply, run_id: str) -> None:
    """Show all that is known of a run."""
    from lumitui.app import showing

    with core() as runs:
        page = showing.gather(runs, run_id)
        for warning in page.warnings:
            say(f"warning: {warning}")
        reply.give(showing.page_data(page), showing.page_text(page, time.time(), columns()))


@click.command()
@click.argument("first", metavar="RUN", shell_complete=runs_beginning)
@click.argument("second", metavar="RUN", shell_complete=runs_beginning)
@json_option
@click.pass_obj
def diff(reply: Reply, first: str, second: str) -> None:
    """Compare two runs: job file, script, code and metrics."""
    from lumitui.app import showing

    with core() as runs:
        found = showing.compare_runs(runs, first, second)
    reply.give(found, showing.difference_text(found, columns()))
