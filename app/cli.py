"""The command line: a verb is one function that asks the core and shows what it says."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from lumitui.app import output, tables
from lumitui.app.command import (
    Verbs,
    agree_to_resubmit,
    agree_to_submit,
    columns,
    core,
    follow_log,
    job_argument,
    json_option,
    open_tui,
    own_settings,
    print_log,
    progress,
    read,
    run_argument,
    run_process,
    runs_beginning,
    sent,
    show_findings,
    site_argument,
    site_option,
    sites_beginning,
    wait_for,
    yes_option,
)
from lumitui.app.output import Reply, say
from lumitui.remote.errors import InputError, LumiError


@click.group(cls=Verbs, invoke_without_command=True)
@click.version_option(output.version(), message="lumitui %(version)s")
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
    from lumitui.app import examples
    from lumitui.app.job import parse_job

    with core() as runs:
        site = runs.sites.load(site_name)
        beginning = examples.Beginning(name, account, script, trainer)
        text = examples.text_for(site, beginning)
        preview = runs.preview(parse_job(text, str(path)), path.parent)
        examples.write_new(path, text)
    show_findings(preview)
    data = {"path": str(path), "findings": preview.findings}
    reply.give(data, f"{path} is written. Look at it, then: lumitui preview {path}")


@lumitui.command()
@click.argument("site_name", metavar="[SITE]", required=False, shell_complete=sites_beginning)
@json_option
@click.pass_obj
def sites(reply: Reply, site_name: str | None) -> None:
    """List the sites, or show all facts of one."""
    from lumitui.remote.site import Sites

    known = Sites(own_settings().profiles)
    if site_name is not None:
        site = known.load(site_name)
        reply.give(site, tables.site_page(site, known.path(site_name)))
        return
    found = [known.load(name) for name in known.names()]
    reply.give(found, tables.site_table(found, columns()))


@lumitui.command()
@site_argument
@click.option("--account", default="", help="The project to check the work root of.")
@json_option
@click.pass_obj
def doctor(reply: Reply, site_name: str, account: str) -> int:
    """Check a site's profile against the live cluster."""
    with core() as runs:
        checks = runs.doctor(site_name, account)
    failed = [check for check in checks if check.status == "failed"]
    reply.give(checks, tables.check_text(checks))
    if failed:
        raise LumiError(f"{len(failed)} of {len(checks)} checks failed.", failed[0].do)
    return 0


@lumitui.command()
@click.argument("what", type=click.Choice(["job", "site"]), default="job")
def schema(what: str) -> None:
    """Print the JSON Schema of job files or profiles, for editors."""
    import json

    from lumitui.app.job import JobSpec
    from lumitui.remote.site import Site

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
        say(f"{tables.layout_words(launch.layout)}; {tables.price_words(launch.price)}")
    text = launch.script if only_script else f"{found.command}\n\n{launch.script}"
    # The script is exact on a pipe; a terminal must not be steered by an argument in it.
    shown = output.clean(text, keep="\n\t") if sys.stdout.isatty() else text
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
        ids = [run.id for run in runs.history.unfinished(site_name)]
        news = runs.refresh(site_name)
        found = [runs.history.get(run_id) for run_id in ids]
    for warning in news.warnings:
        say(f"warning: {warning}")
    data = {"runs": [tables.run_data(run) for run in found], "warnings": news.warnings}
    text = tables.run_table(found, time.time(), columns()) if found else ""
    reply.give(data, text)
    if not found:
        say("No unfinished runs. `lumitui history` lists the others.")


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


@lumitui.command()
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


@lumitui.command()
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


@lumitui.command()
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
        run = runs.cancel(run.id)
    reply.give(tables.run_data(run), f"{run.id} is {run.state}.")


@lumitui.command()
@run_argument
@click.argument("patterns", metavar="[PATTERN]...", nargs=-1)
@click.option("--to", "target", type=click.Path(path_type=Path), help="Folder; RUN's id if none.")
@json_option
@click.pass_obj
def fetch(reply: Reply, run_id: str, patterns: tuple[str, ...], target: Path | None) -> None:
    """Bring a run's results here, verified by hash."""
    with core() as runs:
        run = runs.history.get(run_id)
        folder = target or Path(run.id)
        found = runs.fetch(run.id, folder, patterns)
    reply.give(found, tables.fetched_text(found))
    say(f"{len(found)} files in {folder}." if found else "Nothing there fits.")


@lumitui.command()
@site_argument
@json_option
@click.pass_obj
def prune(reply: Reply, site_name: str) -> None:
    """Remove code on a site that no unfinished run uses."""
    with core() as runs:
        freed = runs.prune(site_name)
    reply.give(freed, tables.pruned_text(freed))
    if not freed:
        say("There is nothing to remove.")


@lumitui.command()
@site_argument
@click.option("--ranks", type=int, help="Ranks a node; without it one a GPU.")
@json_option
@click.pass_obj
def bind(reply: Reply, site_name: str, ranks: int | None) -> None:
    """Draw which cores each rank of a node gets."""
    from lumitui.app.binding import draw, rank_bindings
    from lumitui.remote.site import Sites

    site = Sites(own_settings().profiles).load(site_name)
    count = site.node.gpus if ranks is None else ranks
    reply.give(rank_bindings(site.node, count), draw(site, count))


@lumitui.command()
@click.option(
    "--to", "target", type=click.Path(path_type=Path), default="lumitui-demo", help="Folder."
)
def demo(target: Path) -> int:
    """Train on this machine, then again on twice the nodes."""
    from lumitui.app import demo as trial

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
