"""The command line: a verb is one function that asks the core and shows what it says."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from lumitui.app.cli import history, output, sites, tables
from lumitui.app.cli.output import Reply, say
from lumitui.app.cli.session import (
    Verbs,
    agree_to_resubmit,
    agree_to_submit,
    columns,
    core,
    follow_log,
    job_argument,
    json_option,
    known_site,
    open_tui,
    print_log,
    progress,
    read,
    refuse_errors,
    refuse_silence,
    run_argument,
    run_process,
    sent,
    show_findings,
    site_option,
    sites_beginning,
    wait_for,
    warn,
    without_later,
    yes_option,
)
from lumitui.app.explain import words
from lumitui.app.explain.safe_text import spell_out
from lumitui.app.settings import version
from lumitui.remote.errors import InputError


@click.group(cls=Verbs, invoke_without_command=True)
@click.version_option(version(), message="lumitui %(version)s")
@click.pass_context
def lumitui(ctx: click.Context) -> int:
    """Compose, prove and scale multi-GPU training jobs on Slurm supercomputers.

    Without a verb the terminal interface opens. A RUN is named by the beginning of its id, or
    `last`. Exit codes: 0 done, 1 error, 2 job file, profile or usage, 3 connection, 4 the cluster
    refused, 5 the job failed, 6 outcome unknown, 124 waited long enough, 130 interrupted.
    """
    return open_tui(None) if ctx.invoked_subcommand is None else 0


@lumitui.command()
@click.option("--site", "site_name", required=True, shell_complete=sites_beginning, help="A site.")
@click.option("--account", help="The project that pays.")
@click.option("--name", help="The job's name; without it the example's.")
@click.option("--script", help="Your training script, from the job file's folder.")
@click.option("--trainer", help="A bundled trainer instead of a script.")
@click.option(
    "--output", "path", type=click.Path(path_type=Path), default="job.yaml", help="The new file."
)
@json_option
@click.pass_obj
def init(
    reply: Reply,
    site_name: str,
    account: str | None,
    name: str | None,
    script: str | None,
    trainer: str | None,
    path: Path,
) -> None:
    """Write a commented job file to begin with; nothing is overwritten."""
    from lumitui.app.job import examples
    from lumitui.app.job.spec import parse_job

    with core() as runs:
        site = runs.sites.load(site_name)
        beginning = examples.Beginning(name, account, script, trainer)
        text = examples.text_for(site, beginning)
        found = runs.preview(parse_job(text, str(path)), path.parent)
        found = without_later(found)
        show_findings(found)
        refuse_errors(found)
        examples.write_new(path, text)
    data = {"path": str(path), "findings": found.findings}
    reply.give(data, f"{path} is written. Look at it, then: lumitui preview {path}")


lumitui.add_command(sites.sites)
lumitui.add_command(sites.doctor)


@lumitui.command()
@click.argument("what", type=click.Choice(["job", "site"]), default="job")
def schema(what: str) -> None:
    """Print the JSON Schema of job files or profiles, for editors."""
    import json

    from lumitui.app.job.spec import JobSpec
    from lumitui.remote.site.profile import Site

    click.echo(json.dumps((JobSpec if what == "job" else Site).model_json_schema(), indent=1))


@lumitui.command()
@job_argument
@click.option("--script", "only_script", is_flag=True, help="Print the script alone, exactly.")
@json_option
@click.pass_obj
def preview(reply: Reply, job: Path, only_script: bool) -> int:
    """Show what would be sent: the submit command and the script, byte for byte."""
    with core() as runs:
        found = read(runs, job)
    launch = found.launch
    show_findings(found)
    if not only_script:
        say(f"{words.layout_size(launch.layout)}; {words.price_sentence(launch.price)}")
    text = launch.script if only_script else f"{found.command}\n\n{launch.script}"
    # The script is exact on a pipe; a terminal must not be steered by an argument in it.
    shown = spell_out(text, keep="\n\t") if sys.stdout.isatty() else text
    reply.give(tables.preview_data(found))
    if not reply.json:
        sys.stdout.write(shown)
    return InputError.exit_code if found.errors else 0


@lumitui.command()
@job_argument
@click.option("--wait", is_flag=True, help="Wait for the end; exit code 5 when the job fails.")
@click.option("--timeout", type=click.FloatRange(min=0), help="Seconds to wait at most.")
@yes_option
@json_option
@click.pass_obj
def submit(reply: Reply, job: Path, wait: bool, timeout: float | None, yes: bool) -> None:
    """Send a job, after one question."""
    with core() as runs:
        found = read(runs, job)
        agree_to_submit(found, yes=yes)
        run = runs.send(found, report=progress)
        sent(reply, run)
        if wait or timeout is not None:
            wait_for(reply, runs, run, timeout)


@lumitui.command()
@site_option
@json_option
@click.pass_obj
def status(reply: Reply, site_name: str | None) -> None:
    """Ask the sites about unfinished runs, and list them."""
    with core() as runs:
        known_site(runs, site_name)
        asked = {run.id: run.site for run in runs.history.unfinished(site_name)}
        news = runs.refresh(site_name)
        found = [runs.history.get(run_id) for run_id in asked]
        proofs = [(run.id, runs.proof(run)) for run in found]
    warnings = [
        *news.warnings,
        *(f"{key}: {p.sentence}" for key, p in proofs if p.kind == "differs"),
    ]
    for warning in warnings:
        say(f"warning: {warning}")
    rows = [tables.run_data(run) | {"stale": run.site in news.failed} for run in found]
    text = tables.run_table(found, time.time(), columns(), news.failed) if found else ""
    reply.give({"runs": rows, "warnings": warnings}, text)
    if not found:
        say("No unfinished runs. `lumitui history` lists the others.")
    refuse_silence(set(asked.values()), news.failed)


@lumitui.command()
@run_argument
@click.option("--follow", "-f", is_flag=True, help="Go on until the run has ended.")
@click.option("--attempt", type=click.IntRange(min=1), help="An earlier attempt.")
@click.option(
    "--last", metavar="BYTES", type=click.IntRange(min=0), default=65536, help="Of its end (65536)."
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


lumitui.add_command(history.history)
lumitui.add_command(history.show)
lumitui.add_command(history.note)
lumitui.add_command(history.diff)


@lumitui.command()
@run_argument
@click.option("--nodes", type=int, help="On so many nodes; what follows is recomputed.")
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="Change a key.")
@click.option("--code", type=click.Choice(["same", "current"]), default="same", help="Code.")
@click.option(
    "--from", "start", type=click.Choice(["scratch", "checkpoint"]), help="Where to begin."
)
@yes_option
@json_option
@click.pass_obj
def resubmit(
    reply: Reply,
    run_id: str,
    nodes: int | None,
    settings: tuple[str, ...],
    code: Any,
    start: Any,
    yes: bool,
) -> None:
    """Send a run again, perhaps on more nodes, after one question."""
    with core() as runs:
        planned = runs.plan_resubmission(
            run_id, nodes=nodes, settings=settings, code=code, start=start
        )
        agree_to_resubmit(planned, yes=yes)
        sent(reply, runs.resubmit(planned, report=progress))


@lumitui.command()
@run_argument
@yes_option
@json_option
@click.pass_obj
def cancel(reply: Reply, run_id: str, yes: bool) -> None:
    """Cancel a run's job, after one question."""
    with core() as runs:
        run = runs.history.get(run_id)
        if not run.state.is_final:
            output.confirm(
                f"Cancel {run.id} ({run.state}, job {run.job_id or 'not known'})?",
                yes=yes,
                otherwise="Nothing was cancelled.",
            )
        run = runs.cancel(run.id, warn=warn)
    reply.give(tables.run_data(run), f"{run.id} is {run.state}.")


@lumitui.command()
@run_argument
@click.argument("patterns", metavar="[PATTERN]...", nargs=-1)
@click.option("--to", "target", type=click.Path(path_type=Path), help="Folder; RUN's id if none.")
@json_option
@click.pass_obj
def fetch(reply: Reply, run_id: str, patterns: tuple[str, ...], target: Path | None) -> None:
    """Bring a run's results here, verified by hash; a folder brings all that is in it.

    Exit code 4 when some of it could not be brought, 2 when nothing fits a PATTERN.
    """
    from lumitui.app.results import fetch as results

    with core() as runs:
        run = runs.history.get(run_id)
        folder = target or Path(run.id)
        found = runs.fetch(run.id, folder, patterns)
    reply.give(found, tables.fetched_text(found.files))
    for note in results.notes(found, named=bool(patterns)):
        say(f"note: {note}")
    say(f"{len(found.files)} file{'s'[: len(found.files) != 1]} in {folder}.")
    results.check(found, named=bool(patterns))


lumitui.add_command(sites.prune)
lumitui.add_command(sites.bind)


@lumitui.command()
@click.option(
    "--to", "target", type=click.Path(path_type=Path), default="lumitui-demo", help="Folder."
)
def demo(target: Path) -> int:
    """Train on this machine, then again on twice the nodes."""
    from lumitui.app.cli import demo as trial

    job = trial.prepare(target)
    if os.environ.get("DEMO") != "headless" and output.has_person() and sys.stdout.isatty():
        return open_tui(job)
    with core() as runs:
        return trial.headless(runs, job)


@lumitui.command()
@click.argument("job", required=False, type=click.Path(path_type=Path))
def tui(job: Path | None) -> int:
    """Open the terminal interface, with a job file if one is given."""
    return open_tui(job)


@lumitui.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the shell's completion script; `eval "$(lumitui completion bash)"` uses it."""
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(lumitui, {}, "lumitui", "_LUMITUI_COMPLETE").source())


def main() -> None:
    """Run the command line of this process."""
    run_process(lumitui)


if __name__ == "__main__":
    main()
