"""The verb that runs a short trial of a job."""

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
    from lumitui.app.runs import Run, Runs


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
        preview = runs.trial(job)
        show_findings(preview)
        price = price_line(runs, preview)
        (preview,) = agree_to_submit([preview], yes=yes, force=force, price=price)
        run = runs.send(preview, report=show_step)
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
