"""The verbs that make jobs: a first job file, previews, exports, sends, resubmissions."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import click
from click.core import ParameterSource

from lumitui.app.cli import output, series
from lumitui.app.cli.confirm import (
    agree_to_resubmit,
    agree_to_submit,
    refuse_errors,
    refuse_wait,
    show_all_findings,
    show_findings,
    show_grid,
    without_first,
    without_later,
    without_secrets,
)
from lumitui.app.cli.output import Reply, say
from lumitui.app.cli.progress import show_sent, show_step, wait_for_end
from lumitui.app.cli.session import (
    MOST,
    GivenPath,
    columns,
    core,
    job_argument,
    json_option,
    no_nan,
    read,
    read_all,
    run_argument,
    sites_beginning,
    yes_option,
)
from lumitui.app.explain import words
from lumitui.app.explain.safe_text import spell_out
from lumitui.remote.errors import InputError

if TYPE_CHECKING:
    from lumitui.app.scale.start import Start


class _Beginning(TypedDict):
    """The options of `init` that fill in the example."""

    account: str | None
    name: str | None
    script: str | None
    trainer: str | None


@click.command()
@click.option(
    "--site",
    "site_name",
    metavar="SITE",
    required=True,
    shell_complete=sites_beginning,
    help="Where the job runs.",
)
@click.option("--account", metavar="NAME", help="The project that pays.")
@click.option("--name", metavar="NAME", help="The job's name; by default the example's.")
@click.option("--script", metavar="PATH", help="Your training script, in the job file's folder.")
@click.option("--trainer", metavar="NAME", help="A bundled trainer instead of a script.")
@click.option(
    "--output",
    "path",
    type=GivenPath(),
    default="job.yaml",
    show_default=True,
    help="The file to write.",
)
@json_option
@click.pass_obj
def init(reply: Reply, site_name: str, path: Path, **options: Unpack[_Beginning]) -> None:
    """Write a commented job file to begin with. It never overwrites a file."""
    from lumitui.app.job import examples
    from lumitui.app.job.spec import parse_job

    with core() as runs:
        site = runs.sites.load(site_name)
        text = examples.text_for(site, examples.Beginning(**options))
        found = runs.preview(parse_job(text, str(path)), path.parent)
        found = without_later(found)
        show_findings(found)
        refuse_errors(found)
        examples.write_new(path, text)
    data = {"path": str(path), "findings": found.findings}
    reply.give(data, f"Wrote {path}. Read it, then run: lumitui preview {path}")


@click.command()
@job_argument
@click.option("--script", "only_script", is_flag=True, help="Print only the script.")
@click.option(
    "--all", "all_files", is_flag=True, help="Print also what the script calls and reads."
)
@json_option
@click.pass_obj
def preview(reply: Reply, job: Path, only_script: bool, all_files: bool) -> int:
    """Show what would be sent, byte for byte.

    It prints the submit command and the script. The exit code is 2 when the job has an error.
    """
    with core() as runs:
        every = read_all(runs, job)
    found, launch = every[0], every[0].launch
    show_all_findings(every)
    if len(every) > 1:
        show_grid(every)
        say(f"The script of the first run, {found.cell}:")
    elif not only_script:
        say(f"{words.layout_size(launch.layout)}; {words.price_sentence(launch.price)}")
    files = [f"{words.file_heading(name)}\n{text}" for name, text in launch.texts.items()]
    text = "\n".join(files) if all_files else launch.script
    text = text if only_script else f"{found.command}\n\n{text}"
    # The script is exact on a pipe; an argument in it must not control a terminal.
    shown = spell_out(text, keep="\n\t") if sys.stdout.isatty() else text
    reply.give(output.previews_data(every))
    if not reply.json:
        sys.stdout.write(shown)
    return InputError.exit_code if any(one.errors for one in every) else 0


@click.command()
@job_argument
@click.argument("folder", metavar="DIR", type=GivenPath())
@json_option
@click.pass_obj
def export(reply: Reply, job: Path, folder: Path) -> None:
    """Write a job as a folder that plain sbatch runs, without lumitui.

    For a colleague or a helpdesk. It has the script, a copy of the code and a README, and no
    values of secrets.
    """
    with core() as runs:
        found = without_secrets(read(runs, job))
        show_findings(found)
        done = runs.export(found, folder)
    if found.launch.spec.chain > 1:
        say("note: what is exported takes one time limit; README.md says how it continues.")
    reply.give(
        {"path": str(done.path), "files": done.files},
        f"Wrote {done.path}. Its README.md says how to run it.",
    )


@click.command()
@job_argument
@click.option(
    "--wait", is_flag=True, help="Wait for the end; the exit code is 5 when the job fails."
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0, max=MOST),
    callback=no_nan,
    help="Wait for the end, but no longer than this.",
)
@click.option(
    "--skip",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Leave out the first N runs of a grid, which were sent before.",
)
@click.option(
    "--rest/--no-rest",
    default=None,
    help="Send what is left of the job file's last grid, or leave it out and send all anew.",
)
@yes_option
@json_option
@click.pass_obj
def submit(
    reply: Reply,
    job: Path,
    wait: bool,
    timeout: float | None,
    skip: int,
    rest: bool | None,
    yes: bool,
) -> None:
    """Send a job after you confirm.

    A job file with a `grid:` becomes several runs, which are sent one after the other.
    """
    with core() as runs:
        if rest:
            series.submit_rest(reply, runs, job, yes=yes)
            return
        found = without_first(read_all(runs, job), skip)
        refuse_wait(bool(found[0].cell) and (wait or timeout is not None))
        if found[0].cell and not skip and rest is None:
            series.note_rest(runs, job)
        agree_to_submit(found, yes=yes)
        if rest is False:
            series.leave_out_rest(runs, job)
        if found[0].cell:
            series.send_grid(reply, runs, found, job)
            return
        run = runs.send(found[0], report=show_step)
        show_sent(reply, run)
        if wait or timeout is not None:
            wait_for_end(reply, runs, run, timeout)


class _Changes(TypedDict):
    """The options of `resubmit` that say what changes."""

    nodes: int | None
    settings: tuple[str, ...]
    code: Literal["same", "current"]
    start: "Start | None"


_PLANNED = {
    "ladder": "--ladder", "nodes": "--nodes", "settings": "--set", "code": "--code",
    "start": "--from",
}  # fmt: skip
"""The options of `resubmit` that say what is sent: of a rest that is written down already."""


def _refuse_changes_of_rest() -> None:
    """Refuse an option that `--rest` could not heed.

    Raises:
        InputError: one was given; the message names it.
    """
    ctx = click.get_current_context()
    given = [
        option
        for name, option in _PLANNED.items()
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if given:
        message = f"--rest sends what was planned before, without {' and '.join(given)}."
        raise InputError(message, "Leave out one or the other.")


@click.command()
@run_argument
@click.option(
    "--nodes", metavar="N", type=int, help="Run on N nodes; what depends on N is recomputed."
)
@click.option(
    "--ladder",
    metavar="N,N,…",
    type=series.Sizes(),
    help="Send it on each of these numbers of nodes, after one question.",
)
@click.option(
    "--rest/--no-rest",
    default=None,
    help="Send what is left of the run's last ladder, or leave it out of a new one.",
)
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set a key of the job file (time=02:00:00) or an argument (--lr=0.1); repeatable.",
)
@click.option(
    "--code",
    type=click.Choice(["same", "current"]),
    default="same",
    show_default=True,
    help="Send the run's code again, or the project as it is now.",
)
@click.option(
    "--from",
    "start",
    type=click.Choice(["scratch", "checkpoint"]),
    help="Where to begin; by default a failed run continues from its checkpoint.",
)
@yes_option
@json_option
@click.pass_obj
def resubmit(
    reply: Reply,
    run_id: str,
    ladder: tuple[int, ...] | None,
    rest: bool | None,
    yes: bool,
    **changes: Unpack[_Changes],
) -> None:
    """Send a run again after you confirm; also on several sizes."""
    with core() as runs:
        if ladder is not None and changes["nodes"] is not None:
            raise InputError("--nodes and --ladder exclude each other.", "Give one of them.")
        if rest:
            _refuse_changes_of_rest()
            series.resubmit_rest(reply, runs, run_id, yes=yes)
            return
        if ladder is not None:
            series.refuse_second_ladder(runs, run_id, drop=rest is False)
            plans = series.plan_ladder(
                ladder, lambda size: runs.plan_resubmission(run_id, **changes | {"nodes": size})
            )
            series.resubmit_ladder(reply, runs, plans, columns(), yes=yes)
            return
        planned = runs.plan_resubmission(run_id, **changes)
        agree_to_resubmit(planned, runs.code_news(run_id), columns(), yes=yes)
        show_sent(reply, runs.resubmit(planned, report=show_step))
