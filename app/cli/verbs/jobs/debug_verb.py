"""The verb that holds a job's nodes for shells."""

from pathlib import Path

import click

from lumitui.app.cli.confirmation import agree_to_submit, show_findings
from lumitui.app.cli.inquiry import price_line
from lumitui.app.cli.output import Reply, run_data, say, warn
from lumitui.app.cli.send_progress import show_step
from lumitui.app.cli.session import core, force_option, job_argument, json_option, yes_option
from lumitui.app.explain import words
from lumitui.app.runs import RunFailed, State


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
    """Hold a job's nodes for shells in them; run nothing.

    The job gets the job file's resources, container, environment and code, but does not start its
    program. If the site has a partition for trials that is large enough, the job uses it.
    """
    from lumitui.app.runs import seconds_in

    seconds, patience = int(seconds_in(length)), int(seconds_in(idle))
    with core() as runs:
        preview = runs.debug(job, seconds=seconds, idle=patience)
        show_findings(preview)
        price = price_line(runs, preview)
        (preview,) = agree_to_submit([preview], yes=yes, force=force, price=price)
        run = runs.send(preview, report=show_step)
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
