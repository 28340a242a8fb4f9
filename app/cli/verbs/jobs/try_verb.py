"""The verbs that try a job: a short trial, or its nodes held for shells."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lumitui.app.cli.confirmation import agree_to_submit, show_findings
from lumitui.app.cli.inquiry import price_line
from lumitui.app.cli.output import Reply, run_data, say, warn
from lumitui.app.cli.send_progress import show_step
from lumitui.app.cli.session import core, force_option, job_argument, json_option, yes_option
from lumitui.app.explain import words
from lumitui.app.runs import LumiError, RunFailed, State, quote

if TYPE_CHECKING:
    from lumitui.app.runs import Preview, Run, Runs


@click.command("try")
@job_argument
@force_option
@yes_option
@json_option
@click.pass_obj
def try_(reply: Reply, job: Path, force: bool, yes: bool) -> None:
    """Try a job on one node for at most ten minutes.

    Waits for the result. The trial keeps the job's ranks per node, batch, image and data. A bundled
    trainer runs two steps. If the site has a partition for trials, the trial uses it. Exits with 5
    if the trial failed or its binding is wrong.
    """
    with core() as runs:
        run = _send(runs, runs.trial(job), yes=yes, force=force)
        say(f"Job {run.job_id} at {run.site}; waiting for it to end.")
        try:
            run = runs.wait(run.id, warn=warn)
        except KeyboardInterrupt:
            say(f"{run.id} runs for at most ten minutes; `lumitui cancel {run.id}` ends it now.")
            raise
        verdict = runs.proof(run)
        say(f"{run.id}: {run.state} after {words.length(run.ran(run.ended or 0.0))}.")
        runs.mark_told(run)
        say(f"Binding: {verdict.kind}. {verdict.sentence}")
        reply.give(run_data(run) | {"binding": verdict.kind}, run.id)
        _conclude(runs, run, job, wrong=verdict.kind == "differs")


def _send(runs: "Runs", preview: "Preview", *, yes: bool, force: bool) -> "Run":
    show_findings(preview)
    price = price_line(runs, preview)
    (preview,) = agree_to_submit([preview], yes=yes, force=force, price=price)
    return runs.send(preview, report=show_step)


def _conclude(runs: "Runs", run: "Run", job: Path, *, wrong: bool) -> None:
    """Print the result of the trial for the job.

    Raises:
        RunFailed: the job would fail too.
    """
    if run.state is State.DONE and not wrong:
        shown = quote(str(job))
        try:
            every = runs.previews(job)
        except LumiError as error:  # keys that the trial omitted, such as `after:`
            warn(f"{error.message} {error.hint}")
            return
        if len(every) > 1:
            say(
                f"This tried only the first of {len(every)} runs; `lumitui preview {shown}` lists "
                "them all."
            )
        else:
            say(f"The job itself: {price_line(runs, every[0])}")
        say(f"Next, run: lumitui submit {shown}")
        return
    if run.state is State.TIMEOUT and not wrong:
        say("The trial reached its time limit, which is not an error in the job.")
        return
    cause = ""
    try:
        cause = next((diagnosis.brief for diagnosis in runs.why(run.id)), "")
    except LumiError as error:
        warn(error.message)
    how = "has a different binding than planned" if wrong else f"ended as {run.state}"
    raise RunFailed(
        f"The trial {run.id} {how}{f': {cause}' if cause else ''}.",
        f"Run `lumitui why {run.id}`, then correct the job file before you submit it.",
    )


@click.command()
@job_argument
@click.option(
    "--time",
    "length",
    metavar="TIME",
    default="30m",
    show_default=True,
    help="Time to hold the nodes, at least 5m.",
)
@click.option(
    "--idle",
    metavar="TIME",
    default="20m",
    show_default=True,
    help="End the job once no `lumitui shell` has been open for this long.",
)
@force_option
@yes_option
@json_option
@click.pass_obj
def debug(reply: Reply, job: Path, length: str, idle: str, force: bool, yes: bool) -> None:
    """Hold a job's nodes so that you can open shells on them.

    The job gets the job file's resources, container, environment and code, but does not start its
    program. If the site has a partition for trials that is large enough, the job uses it.
    """
    from lumitui.app.runs import seconds_in

    seconds, patience = int(seconds_in(length)), int(seconds_in(idle))
    with core() as runs:
        run = _send(runs, runs.debug(job, seconds=seconds, idle=patience), yes=yes, force=force)
        reply.give(run_data(run), run.id)
        say(f"Job {run.job_id} at {run.site}; waiting for it to start.")
        try:
            run = runs.wait(
                run.id, warn=warn, stop=lambda: runs.history.get(run.id).state is State.RUNNING
            )
        except KeyboardInterrupt:
            say(f"{run.id} stays in the queue; `lumitui cancel {run.id}` removes it.")
            raise
        reply.keep(run_data(run))
        if run.state.is_final and run.state is not State.DONE:
            raise RunFailed(
                f"{run.id} ended as {run.state} before it could be used.",
                f"Run `lumitui why {run.id}`.",
            )
        alone = f", and ends after {words.length(patience)} without a shell"
        say(
            f"{run.id} runs for at most {words.time_limit(run)}, "
            f"{words.price_sentence(run.price)}{alone if patience < seconds else ''}."
        )
        say(f"Next, run: lumitui shell {run.id}; to end it: lumitui cancel {run.id}")
