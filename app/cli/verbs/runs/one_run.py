"""The verbs about one run or two: show, note, diff, logs, cancel and fetch."""

import time
from pathlib import Path

import click

from lumitui.app.cli.confirmation import confirm
from lumitui.app.cli.output import Reply, run_data, say, warn
from lumitui.app.cli.send_progress import follow_log, print_log
from lumitui.app.cli.session import (
    MOST,
    GivenPath,
    columns,
    core,
    core_of,
    json_option,
    of_account_option,
    of_option,
    of_site_option,
    run_argument,
    runs_beginning,
    yes_option,
)
from lumitui.app.cli.views import tables
from lumitui.app.explain import words
from lumitui.app.runs import InputError, spell_out


@click.command()
@run_argument
@click.option("--gpus", is_flag=True, help="Show its GPUs instead: power, utilization, memory.")
@of_option
@of_site_option
@of_account_option
@json_option
@click.pass_obj
def show(
    reply: Reply, run_id: str, gpus: bool, user: str, site_name: str | None, account: str
) -> None:
    """Show everything known about a run."""
    if gpus and user:
        raise InputError(
            "--gpus and --of cannot be combined.", "Only the job's owner can read its GPUs."
        )
    if gpus:
        with core() as runs:
            readings = runs.clusters.gpus(runs.history.get(run_id).id)
        reply.give(readings, tables.gpus_text(readings, columns()))
        return
    from lumitui.app.cli.views import show as showing

    with core_of(user, site_name, account, run_id) as (runs, theirs):
        page = showing.gather(runs, run_id, refreshed=theirs is not None)
        for warning in page.warnings:
            warn(warning)
        # Only --json needs the whole job file, and reading it takes as long as the rest.
        data = showing.page_data(page) if reply.json else {}
        reply.give(data, showing.page_text(page, time.time(), columns()))


@click.command()
@run_argument
@click.argument("text", metavar="[TEXT]", required=False)
@click.option("--tag", metavar="WORDS", help="Add tags, such as best; -best removes it.")
@json_option
@click.pass_obj
def note(reply: Reply, run_id: str, text: str | None, tag: str | None) -> None:
    """Save a note about a run, or tag it.

    `lumitui history --filter` searches notes and tags. An empty TEXT removes the note.
    """
    from lumitui.app.runs import tags_text, with_tags

    if text is None and tag is None:
        raise InputError("There is nothing to save.", "Give TEXT, or --tag WORDS.")
    with_tags("", tag if tag is not None else "checked")
    with core() as runs:
        run = runs.history.get(run_id) if text is None else runs.note(run_id, text)
        if tag is not None:
            runs.history.tag([run.id], tag)
            run = runs.history.get(run.id)
    reply.give(run_data(run))
    if text is not None:
        say(f"Saved the note on {run.id}." if text else f"Removed the note on {run.id}.")
    if tag is not None:
        say(tags_text(run.id, tag))


@click.command()
@click.argument("first", metavar="RUN", shell_complete=runs_beginning)
@click.argument("second", metavar="RUN", shell_complete=runs_beginning)
@json_option
@click.pass_obj
def diff(reply: Reply, first: str, second: str) -> None:
    """Compare two runs: job file, script, code and metrics."""
    from lumitui.app.cli.views import diff as differing

    with core() as runs:
        difference = differing.compare_runs(runs, first, second)
    reply.give(difference, differing.difference_text(difference, columns()))


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
    help="Number of bytes to print, from the end.",
)
def logs(run_id: str, follow: bool, attempt: int | None, last: int) -> None:
    """Print the end of a run's log."""
    if follow and attempt is not None:
        raise InputError("--follow prints only the current attempt.", "Omit --attempt.")
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
            for sentence in runs.left_waiting(run.id):
                say(f"note: {sentence}")
            confirm(
                f"Cancel {run.id} ({run.state}, job {run.job_id or 'unknown'})?",
                yes=yes,
                otherwise="Nothing was cancelled.",
            )
        run = runs.cancel(run.id, warn=warn)
    reply.give(run_data(run), words.after_cancel(run))


@click.command()
@run_argument
@click.argument("patterns", metavar="[PATTERN]...", nargs=-1)
@click.option(
    "--to",
    "target",
    type=GivenPath(),
    help="Folder to copy to. [default: RUN's id]",
)
@click.option("--list", "lists", is_flag=True, help="List the run's files; copy nothing.")
@json_option
@click.pass_obj
def fetch(
    reply: Reply, run_id: str, patterns: tuple[str, ...], target: Path | None, lists: bool
) -> None:
    """Copy a run's results here, verified by hash.

    Without a PATTERN, copies only logs, metrics and the files of `fetch:`. Copies a folder with its
    contents. If a PATTERN like '*.pt' matches nothing in the run's folder, searches its subfolders.
    Exits with 4 if a file could not be copied, and with 2 if a PATTERN matches nothing.
    """
    from lumitui.app.runs import result_files as results

    if lists:
        if patterns or target:
            raise InputError("--list copies nothing.", "Omit PATTERN and --to.")
        with core() as runs:
            listing = runs.files.list(runs.history.get(run_id).id)
        lines = (f"{words.size(one.size):>9}  {spell_out(one.name)}" for one in listing.files)
        reply.give(listing, "\n".join(lines))
        for warning in listing.left:
            warn(warning)
        return
    with core() as runs:
        run = runs.history.get(run_id)
        folder = target or Path(run.id)
        outcome = runs.fetch(run.id, folder, patterns)
    reply.give(outcome, "\n".join(spell_out(str(item.path)) for item in outcome.files))
    for note in results.notes(run.id, outcome, named=bool(patterns)):
        say(f"note: {note}")
    say(f"{words.count(len(outcome.files), 'file')} in {folder}.")
    results.check_fetch(outcome, named=bool(patterns))
