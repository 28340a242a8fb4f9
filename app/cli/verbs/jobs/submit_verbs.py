"""The verbs that show, export and send a job."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lumitui.app.cli import output, series_verbs
from lumitui.app.cli.confirmation import (
    agree_to_submit,
    billing_notes,
    code_words,
    grid_lines,
    refuse_errors,
    refuse_wait,
    show_findings,
    show_unseen,
    without_secrets,
)
from lumitui.app.cli.inquiry import cluster_option, price_line, with_cluster
from lumitui.app.cli.output import Reply, say, say_rows
from lumitui.app.cli.send_progress import show_sent, show_step, wait_for_end
from lumitui.app.cli.session import (
    GivenPath,
    core,
    force_option,
    job_argument,
    json_option,
    runs_beginning,
    wait_options,
    yes_option,
)
from lumitui.app.cli.verbs.jobs.where_verb import accounts_of, first_place, places_table
from lumitui.app.explain import words
from lumitui.app.runs import InputError, quote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lumitui.app.runs import Preview, Runs


@click.command()
@job_argument
@click.option("--script", "only_script", is_flag=True, help="Print only the script.")
@click.option("--all", "all_files", is_flag=True, help="Also print the files the script uses.")
@cluster_option
@json_option
@click.pass_obj
def preview(reply: Reply, job: Path, only_script: bool, all_files: bool, cluster: bool) -> int:
    """Show what would be sent, byte for byte.

    Prints the submit command and the script. Exits with 2 if the job has an error. Contacts no site
    unless you pass --cluster, and never submits.
    """
    with core() as runs:
        every = runs.previews(job)
        every = with_cluster(runs, every) if cluster else every
        price = price_line(runs, every[0])
        runs.shown_findings.keep(job, show_findings(*every))
    head, launch, sequence = every[0], every[0].launch, bool(every[-1].follows)
    if len(every) > 1:
        say_rows("\n".join(grid_lines(every)))
        if not sequence:
            say(f"The script of the first run, {head.cell}:")
    elif not only_script:
        memory = launch.memory
        each = f", {words.rank_memory(memory)} of memory each" if memory else ""
        say(f"{words.layout_size(launch.layout)}{each}; {price}{code_words(head)}")
    for note in () if only_script else billing_notes(every):
        say(note)
    for offer in () if only_script else head.offers:
        say(f"note: {offer.message} To do so: lumitui fix {quote(str(job))}")
    shown = every if sequence else every[:1]
    if not only_script:
        links = (link for one in shown for link in one.launch.spec.links.items())
        for line in dict.fromkeys(f"link: {name} -> {target}" for name, target in links):
            say(line)
    texts = [_sent_text(one, whole=all_files, command=not only_script) for one in shown]
    if sequence:
        headings = (words.file_heading(one.cell) for one in shown)
        texts = [f"{name}\n{text}" for name, text in zip(headings, texts, strict=True)]
    reply.give(output.previews_data(every))
    lacks = any(error.rule == "script" for one in every for error in one.errors)
    if lacks and not (reply.json or only_script or all_files):
        say("Add --script to print the script despite the error.")
    elif not reply.json:
        output.put("\n".join(texts), nl=False)
    return InputError.exit_code if any(one.errors for one in every) else 0


def _sent_text(job: "Preview", *, whole: bool, command: bool) -> str:
    """Return the script of one job, or with `whole` all files it uses, below its `command`."""
    launch = job.launch
    files = [f"{words.file_heading(name)}\n{text}" for name, text in launch.texts.items()]
    text = "\n".join(files) if whole else launch.script
    return f"{job.command}\n\n{text}" if command else text


@click.command()
@job_argument
@click.argument("folder", metavar="DIR", type=GivenPath())
@click.option("--force", is_flag=True, help="Write the folder despite the adviser's errors.")
@json_option
@click.pass_obj
def export(reply: Reply, job: Path, folder: Path, force: bool) -> None:
    """Write a job as a folder that runs without lumitui.

    The folder is for a colleague or a helpdesk. It contains the script, a copy of the code and a
    README, but no secret values. If the job has an error, writes nothing without --force.
    """
    with core() as runs:
        job_preview = without_secrets(runs.preview(job))
        show_findings(job_preview)
        if not (force or any(error.final for error in job_preview.errors)):
            refuse_errors(job_preview, "Correct the job file, or add --force to write it anyway.")
        done = runs.export(job_preview, folder)
    if job_preview.launch.spec.chain > 1:
        say("note: the exported job runs for one time limit; README.md shows how to continue it.")
    reply.give(
        {"path": str(done.path), "files": done.files},
        f"Wrote {done.path}. Its README.md shows how to run it.",
    )


@click.command()
@job_argument
@wait_options
@click.option(
    "--rest/--no-rest",
    default=None,
    help="Send the unsent runs of the job file's last submission, or all runs again.",
)
@click.option(
    "--after",
    metavar="RUN",
    multiple=True,
    shell_complete=runs_beginning,
    help="Start the job only after RUN; repeatable.",
)
@click.option(
    "--when",
    type=click.Choice(["done", "failed", "any"]),
    help="Required final state of the --after runs. [default: done]",
)
@click.option(
    "--first",
    metavar="SITE[=ACCOUNT],…",
    help=("Send the job to whichever of these sites would start it first (see `lumitui where`)."),
)
@force_option
@cluster_option
@yes_option
@json_option
@click.pass_obj
def submit(
    reply: Reply,
    job: Path,
    wait: bool,
    timeout: float | None,
    rest: bool | None,
    after: tuple[str, ...],
    when: str | None,
    first: str | None,
    force: bool,
    cluster: bool,
    yes: bool,
) -> None:
    """Send a job after you confirm.

    The confirmation lists the adviser's errors. A job file with `grid:` or `then:` becomes several
    runs. For a job with `python:` or `activate:`, queries the cluster, as --cluster does.
    """
    if when and not after:
        raise InputError("--when works only with --after.", "Add --after RUN.")
    if first is not None and (after or rest):
        raise InputError("--first, --after and --rest cannot be combined.", "Choose one of them.")
    changes: Mapping[str, object] | None = None
    if after:
        changes = {"after": {"run": after, "when": when or "done"}}
    with core() as runs:
        if first is not None:
            changes = _first_site(runs, job, first)
        if rest:
            if after:
                raise InputError("--rest and --after cannot be combined.", "Omit --after.")
            refuse_wait(wait or timeout is not None)
            series_verbs.submit_rest(reply, runs, job, yes=yes, force=force)
            return
        previews = _previews(runs, job, changes)
        refuse_wait((wait or timeout is not None) and bool(previews[0].cell))
        if previews[-1].follows and rest is None:
            if series_verbs.sends_rest(reply, runs, job, previews, yes=yes, force=force):
                return
        elif previews[0].cell and rest is None:
            series_verbs.note_rest(runs, job)
        spec = previews[0].launch.spec
        # Only the site can check these; otherwise a job would fail only after waiting in the queue.
        cluster = cluster or bool(spec.python or spec.activate)
        previews = with_cluster(runs, previews) if cluster else previews
        price = price_line(runs, previews[0])
        show_unseen(runs, job, previews)
        previews = agree_to_submit(previews, yes=yes, force=force, price=price)
        if rest is False:
            series_verbs.leave_out_rest(runs, job)
        if previews[0].cell:
            series_verbs.send_grid(reply, runs, previews)
            return
        run = runs.send(previews[0], report=show_step)
        show_sent(reply, run)
        if wait or timeout is not None:
            wait_for_end(reply, runs, run, timeout)


def _first_site(runs: "Runs", job: Path, sites: str) -> "Mapping[str, object]":
    """Show all places, and return the changes for the place that starts the job first.

    The place is chosen once, before the user agrees: if the send fails, no other site is tried.
    """
    accounts = accounts_of(sites)
    if not accounts:
        raise InputError("--first needs a site.", "Pass at least one, like --first lumi,roihu.")
    places = runs.start_places(job, sites=accounts)
    say_rows(places_table(places))
    place = first_place(places)
    others = [at.partition_words for at in places if not (at.refusal or at.suits or at is place)]
    if others:
        say(f"Not considered: {', '.join(others)}. To use one, set it as `partition:`.")
    say(f"It starts first at {place.site}, in {place.partition_words}.")
    return place.values


def _previews(
    runs: "Runs", job: Path, changes: "Mapping[str, object] | None"
) -> "tuple[Preview, ...]":
    """Return the previews of a job; query the site first for the runs that it waits for.

    Slurm forgets ended jobs, so a job cannot wait for a run whose end lumitui has not noticed.
    """
    try:
        previews = runs.previews(job, changes=changes)
        if not previews[0].launch.spec.after:
            return previews
        runs.refresh(previews[0].site.name)
    except InputError as error:
        if error.field != "after":
            raise
        runs.refresh()
    return runs.previews(job, changes=changes)
