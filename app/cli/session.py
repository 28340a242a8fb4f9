"""What every verb has around it: the core, questions, options, and the errors' exit codes."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from lumitui.app.cli import output, tables
from lumitui.app.cli.output import Reply, say
from lumitui.app.explain import words
from lumitui.app.explain.safe_text import spell_out
from lumitui.remote.errors import (
    InputError,
    LinkError,
    LumiError,
    OutcomeUnknown,
    RunFailed,
    WaitTimedOut,
)

if TYPE_CHECKING:
    from lumitui.app.history.run import Run
    from lumitui.app.runs import Preview, Resubmission, Runs
    from lumitui.app.settings import Settings
    from lumitui.remote.ssh.prompts import Question

Verb = TypeVar("Verb", bound=Callable[..., Any])
WAY_OUT = "`lumitui --help` lists the verbs, `lumitui VERB --help` what each takes."


class Verbs(click.Group):
    """The verbs in the order they are written, which is the order of use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs' names."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; click itself would end with 1 when stdout's reader has gone."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise output.ReaderGone from error


def own_settings() -> "Settings":
    """Return the person's folders."""
    from lumitui.app.settings import settings

    return settings()


@contextmanager
def core() -> Iterator["Runs"]:
    """Open the core for one verb; its questions are asked on the terminal."""
    # Late: pydantic and jinja2 take ten times as long as `lumitui --version` itself.
    from lumitui.app.runs import Runs

    runs = Runs(own_settings(), ask=ask)
    restore = output.terminal_state()

    def warn() -> None:
        for warning in runs.history.take_warnings():
            say(f"warning: {warning}")

    try:
        warn()
        yield runs
    finally:
        restore()
        warn()
        runs.close()


def ask(question: "Question") -> str | None:
    """Put a question of a login to the person; without a terminal it is declined."""
    if not output.has_person():
        say(f"{question.text}\nThere is no terminal to answer on: declined.")
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


def columns() -> int:
    """Return the width of tables: the terminal's, COLUMNS, or no limit into a pipe."""
    return shutil.get_terminal_size((100_000, 24)).columns


def json_option(verb: Verb) -> Verb:
    """Give a verb `--json`; `Reply` knows from the arguments that it is there."""
    text = "Print one JSON object on stdout."
    return click.option("--json", is_flag=True, expose_value=False, help=text)(verb)


def runs_beginning(ctx: click.Context, param: click.Parameter, text: str) -> list[CompletionItem]:
    """Return the runs whose ids begin with `text`, for the shell's completion."""
    try:
        with core() as runs:
            page = runs.history.page(limit=200)
    except LumiError:
        return []  # a completion has no place to tell
    return [CompletionItem(run.id, help=run.state) for run in page if run.id.startswith(text)]


def sites_beginning(ctx: click.Context, param: click.Parameter, text: str) -> list[CompletionItem]:
    """Return the sites whose names begin with `text`, for the shell's completion."""
    from lumitui.remote.site.sites import Sites

    names = Sites(own_settings().profiles).names()
    return [CompletionItem(name) for name in names if name.startswith(text)]


run_argument = click.argument("run_id", metavar="RUN", shell_complete=runs_beginning)
site_argument = click.argument("site_name", metavar="SITE", shell_complete=sites_beginning)
job_argument = click.argument("job", metavar="JOB", type=click.Path(path_type=Path))
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
site_option = click.option(
    "--site", "site_name", shell_complete=sites_beginning, help="Runs at this site only."
)


def open_tui(job: Path | None) -> int:
    """Open the terminal interface and return its exit code."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError("The terminal interface needs a terminal.", WAY_OUT)
    # Late: Textual alone takes longer than any verb.
    from lumitui.app.tui.app import run_tui

    return run_tui(own_settings(), job)


def known_site(runs: "Runs", name: str | None) -> None:
    """Return when `name` is a site's, or one that the history remembers; None is any.

    Raises:
        InputError: nobody knows such a site.
    """
    if name is not None and not runs.history.page(limit=1, site=name):
        runs.sites.path(name)


def refuse_silence(asked: Collection[str], failed: Mapping[str, LumiError]) -> None:
    """Raise when none of the sites that were `asked` told anything; `failed` says why.

    Raises:
        LinkError: none could be reached.
        LumiError: one answered, but not with what its jobs do.
    """
    if not asked or set(asked) - set(failed):
        return
    reasons = sorted(failed.values(), key=lambda error: isinstance(error, LinkError))
    raise type(reasons[0])(
        f"There is no news from {', '.join(failed)}.",
        "What is shown was so at the last news; jobs go on. The warning says what is wrong.",
    )


def read(runs: "Runs", job: Path) -> "Preview":
    """Return the preview of a job file."""
    from lumitui.app.job.spec import read_job

    return runs.preview(read_job(job), job.resolve().parent, job_file=job.resolve())


def show_findings(found: "Preview") -> None:
    """Tell what the adviser says, on stderr."""
    for finding in found.findings:
        say(words.finding(finding))


def refuse_errors(found: "Preview") -> None:
    """Raise when the adviser's findings keep the launch from being sent."""
    if found.errors:
        raise InputError(
            f"The job has {len(found.errors)} error{'s'[: len(found.errors) > 1]} (above).",
            found.errors[0].do,
        )


def without_later(found: "Preview") -> "Preview":
    """Return the preview of a job that only begins: its script may be written later."""
    later = {"script", "project"}
    findings = (
        replace(item, severity="warning") if item.id in later else item for item in found.findings
    )
    return replace(found, findings=tuple(findings))


def agree_to_submit(found: "Preview", *, yes: bool) -> None:
    """Tell what would be sent, and return when the person agrees; see `output.confirm`."""
    show_findings(found)
    refuse_errors(found)
    launch = found.launch
    output.confirm(
        f"Submit {launch.spec.name} to {found.site.name}: "
        f"{words.layout_size(launch.layout)}, at most {launch.spec.time}; "
        f"{words.price_sentence(launch.price)}?",
        yes=yes,
        otherwise="Nothing was sent.",
    )


def agree_to_resubmit(planned: "Resubmission", *, yes: bool) -> None:
    """Tell what changes, and return when the person agrees; see `output.confirm`."""
    say(tables.change_table(planned.changes, columns()))
    for note in planned.notes:
        say(f"note: {note}")
    show_findings(planned.preview)
    refuse_errors(planned.preview)
    output.confirm(
        f"Resubmit {planned.parent.id} with the {planned.code} code from {planned.start}; "
        f"{words.price_sentence(planned.preview.launch.price)}?",
        yes=yes,
        otherwise="Nothing was sent.",
    )


def print_log(runs: "Runs", run_id: str, attempt: int | None, last: int) -> None:
    """Print the last bytes of a log."""
    write = output.log_writer()
    write(runs.read_log(run_id, attempt=attempt, last=last)[1])
    write(b"")


def follow_log(runs: "Runs", run_id: str, last: int) -> None:
    """Print the last bytes of a run's log and what comes, until the run has ended.

    Raises:
        RunFailed: it did not end well.
    """
    from lumitui.app.watch.follow_log import LogGrew

    run = runs.history.get(run_id)
    write = output.log_writer()
    for event in runs.follow(run.id, last=last):
        if isinstance(event, LogGrew):
            write(event.data)
    write(b"")
    ended(runs.history.get(run.id))


def progress(step: str, words: str) -> None:
    """Tell on a terminal which step of a send begins."""
    if words and output.has_person():
        say(f"… {words}")


def warn(words: str) -> None:
    """Tell what kept a site from being asked."""
    say(f"warning: {words}")


def sent(reply: Reply, run: "Run") -> None:
    """Tell that a run was sent; the id alone is the data."""
    say(f"Job {run.job_id} at {run.site}. Watch it: lumitui logs -f {run.id}")
    reply.give(tables.run_data(run), run.id)


def wait_for(reply: Reply, runs: "Runs", run: "Run", timeout: float | None) -> None:
    """Wait for a run's end.

    Raises:
        RunFailed: it did not end well.
        OutcomeUnknown: nobody knows its job any more.
        WaitTimedOut: it has not ended after `timeout` seconds.
    """
    began = time.monotonic()
    run = runs.wait(run.id, timeout=timeout, stop=lambda: False, warn=warn)
    reply.data = output.as_data(tables.run_data(run))
    if not run.state.is_final and (timeout is None or time.monotonic() - began < timeout):
        raise OutcomeUnknown(
            f"{run.id} is {run.reason}.",
            f"Look into its log, `lumitui logs {run.id}`; `lumitui status` asks again.",
        )
    if not run.state.is_final:
        raise WaitTimedOut(
            f"{run.id} is still {run.state} after {timeout:g} s.", "The job goes on."
        )
    ended(run)


def ended(run: "Run") -> None:
    """Tell how a run ended; raises RunFailed unless it is done, OutcomeUnknown if nobody knows."""
    from lumitui.remote.scheduler.protocol import State

    if not run.state.is_final:
        raise OutcomeUnknown(
            f"{run.id} is {run.reason or run.state}.",
            f"`lumitui status` asks again, and `lumitui show {run.id}` tells what is known.",
        )
    if run.state is not State.DONE:
        raise RunFailed(f"{run.id}: {run.state}.", f"`lumitui show {run.id}` says why.")
    say(f"{run.id}: done.")


def run_verb(verbs: click.Group, arguments: list[str]) -> int:
    """Run one command line and return its exit code; what goes wrong is told, never raised."""
    reply = Reply(json="--json" in arguments)
    reply.verb = next((word for word in arguments if not word.startswith("-")), "")
    error: LumiError | None = None
    code = 0
    try:
        result = verbs.main(arguments, prog_name="lumitui", standalone_mode=False, obj=reply)
        code = result if isinstance(result, int) else 0
    except LumiError as problem:
        error, code = problem, problem.exit_code
    except click.ClickException as problem:
        error = InputError(problem.format_message(), WAY_OUT)
        code = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        error = LumiError("Interrupted.", "A job that was submitted goes on.")
        code = output.INTERRUPTED
    except output.ReaderGone:
        output.end_quietly()
    except Exception as problem:  # a defect: told in one sentence, and reported to a file
        error = output.crashed(problem, reply.verb, own_settings().data)
        code = error.exit_code
    reply.close(error, code)
    return code


def run_process(verbs: click.Group) -> None:
    """Run the command line of this process."""
    os.umask(0o077)  # whatever is written is the person's alone: results, locks, SQLite's files
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            # A name that the terminal's encoding lacks is spelled out, not a traceback.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = run_verb(verbs, sys.argv[1:])
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        output.end_quietly()
    except KeyboardInterrupt:
        code = output.INTERRUPTED
    sys.exit(code)
