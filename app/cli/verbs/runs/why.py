"""The verb that explains why a job failed, from a run or any log."""

import sys
import time
from pathlib import Path

import click

from lumitui.app.cli.output import Reply, say, show
from lumitui.app.cli.session import (
    GivenPath,
    core_of,
    json_option,
    of_account_option,
    of_option,
    of_site_option,
    runs_beginning,
)
from lumitui.app.cli.views.why_page import WhyReply, why_text
from lumitui.app.runs import InputError

_STATES = ("failed", "timeout", "out of memory", "node failed", "cancelled", "preempted")


@click.command()
@click.argument("run_id", metavar="[RUN]", required=False, shell_complete=runs_beginning)
@click.option(
    "--log",
    "log",
    metavar="FILE",
    type=GivenPath(),
    help="Log file to read instead; `-` reads stdin.",
)
@click.option(
    "--state",
    type=click.Choice(_STATES),
    help="With --log: the job's final state. [default: failed]",
)
@click.option(
    "--exit",
    "code",
    metavar="N",
    type=click.IntRange(min=0, max=255),
    help="With --log: the job's exit code.",
)
@click.option("--helpdesk", is_flag=True, help="Print a report for the site's helpdesk.")
@of_option
@of_site_option
@of_account_option
@json_option
@click.pass_obj
def why(
    reply: Reply,
    run_id: str | None,
    log: Path | None,
    state: str | None,
    code: int | None,
    helpdesk: bool,
    user: str,
    site_name: str | None,
    account: str,
) -> None:
    """Explain why a run, or any job with a log, failed.

    RUN may be the path of a log. Prints the likeliest cause first, with the log line that shows it
    and the fix. For a run, also prints the command to run next, and what its GPUs waited for.
    """
    if log is None and run_id and ("/" in run_id or ("." in run_id and Path(run_id).exists())):
        log, run_id = Path(run_id), None
    if (run_id is None) == (log is None):
        raise InputError("Give either RUN or --log FILE.", "`lumitui history` lists the runs.")
    if log is None and (state is not None or code is not None):
        raise InputError("--state and --exit work only with --log.", "Omit them.")
    if log is not None and user:
        raise InputError("--log and --of cannot be combined.", "Omit one of them.")
    whose = (user, site_name, account)
    calm = ""
    if log is None:
        answer, calm = _of_run(run_id or "", *whose)
    else:
        answer = _of_log(log, state or "failed", code)
    if helpdesk and answer.why:
        reply.give(answer, answer.letter)
        return
    reply.give(answer, why_text(answer))
    if not reply.json:
        if answer.command:
            show(f"\nDo: {answer.command}")
        if answer.idle:
            show(f"\nIdle: {answer.idle}.")
    if not answer.why:
        say(calm or "No failure is recorded for this log.")


def _of_run(run_id: str, user: str, site_name: str | None, account: str) -> tuple[WhyReply, str]:
    """Return the explanation of a run, and why it may have no failure to explain."""
    from lumitui.app.explain.actions import action_of, letter
    from lumitui.app.explain.idle_words import idle_remark
    from lumitui.app.explain.waiting import no_failure

    with core_of(user, site_name, account, run_id) as (runs, theirs):
        diagnoses, run = runs.why(run_id), runs.history.get(run_id)
        # A colleague's project is not on this laptop, and their run cannot be resubmitted.
        own = bool(diagnoses) and theirs is None
        code = runs.raising_code(run_id, diagnoses[0].place) if own else None
        idle = idle_remark(run, runs.figures(run.id).summary)
    action = action_of(diagnoses, run) if own else None
    telling = diagnoses[0].telling if diagnoses else ()
    command = action.command(run.id) if action else ""
    lines = [code.path, *code.rows] if code else []
    answer = WhyReply(diagnoses, telling, command, letter(diagnoses, run), lines, idle)
    newest = f", the newest run of {run.spec.name}" if run_id == run.spec.name else ""
    calm = no_failure(run, time.time()) or "No failure is recorded."
    return answer, f"{run.id}{newest}: {calm}"


def _of_log(path: Path, state: str, code: int | None) -> WhyReply:
    from lumitui.app.explain.actions import letter_of_log
    from lumitui.app.runs.log_file import why_of_log

    diagnoses = why_of_log(sys.stdin.buffer if str(path) == "-" else path, state, code)
    telling = diagnoses[0].telling if diagnoses else ()
    return WhyReply(diagnoses, telling, letter=letter_of_log(diagnoses, str(path)))
