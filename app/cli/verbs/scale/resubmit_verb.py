"""The verb that sends a run again: unchanged, with changes, or on other sizes."""

from time import time
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import click

from lumitui.app.cli import series_verbs
from lumitui.app.cli.confirmation import agree_to_resubmit, refuse_wait
from lumitui.app.cli.output import Reply
from lumitui.app.cli.send_progress import show_sent, show_step, wait_for_end
from lumitui.app.cli.session import (
    columns,
    core,
    force_option,
    json_option,
    refuse_options,
    run_argument,
    wait_options,
    yes_option,
)
from lumitui.app.runs import InputError

if TYPE_CHECKING:
    from lumitui.app.runs import Run, StartPoint


class _Changes(TypedDict):
    """The options of `resubmit` that change the job."""

    nodes: int | None
    settings: tuple[str, ...]
    code: Literal["same", "current"]
    start: "StartPoint | None"


def _remedies(run: "Run", exclude: str | None, batch: str | None) -> tuple[str, ...]:
    from lumitui.app.job.setting import half_batch, without_nodes

    kept_off = [without_nodes(run.spec, exclude)] if exclude else []
    return (*kept_off, *([half_batch(run.spec)] if batch else []))


_PLANNED = ("ladder", "then", "nodes", "settings", "code", "start", "exclude", "batch")
"""The options that change the resubmission; --rest sends the remaining planned runs."""


@click.command()
@run_argument
@click.option(
    "--nodes", metavar="N", type=int, help="Run on N nodes, and recompute what depends on N."
)
@click.option(
    "--ladder",
    metavar="N,N,…",
    type=series_verbs.Sizes(),
    help="Send one run for each of these node counts.",
)
@click.option(
    "--rest/--no-rest",
    default=None,
    help="Send the unsent runs of the last ladder, or start a new one.",
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
    help="Code to send: the run's, or the project's current state.",
)
@click.option(
    "--from",
    "start",
    type=click.Choice(["scratch", "checkpoint"]),
    help="Starting point. [default: a failed run resumes from its checkpoint]",
)
@click.option("--then", is_flag=True, help="Also resubmit the runs that followed RUN.")
@click.option("--exclude", metavar="NODES", help="Exclude these nodes too.")
@click.option("--batch", type=click.Choice(["half"]), help="Halve the samples per rank and step.")
@force_option
@wait_options
@yes_option
@json_option
@click.pass_obj
def resubmit(
    reply: Reply,
    run_id: str,
    ladder: tuple[int, ...] | None,
    rest: bool | None,
    then: bool,
    exclude: str | None,
    batch: str | None,
    force: bool,
    wait: bool,
    timeout: float | None,
    yes: bool,
    **changes: Unpack[_Changes],
) -> None:
    """Send a run again after you confirm, at one or several sizes.

    The confirmation lists what changes, and the adviser's errors. On another size, `scale:` in the
    job file decides what happens to batch and learning rate:

    \b
    batch: {keep: global}   keeps the global batch [default]
    batch: {keep: per_gpu}  keeps the samples of each rank; the global batch grows
    lr: {rule: none}        keeps the learning rate [default]
    lr: {rule: linear}      multiplies the learning rate like the global batch
    lr: {rule: sqrt}        multiplies it by the square root of that factor
    """  # noqa: D301 - click needs the backspace itself, or it wraps the table
    from lumitui.app.explain.run_phrases import price_outlook_sentence

    with core() as runs:
        refuse_wait((wait or timeout is not None) and bool(rest or ladder or then))
        for option, given in (("--nodes", changes["nodes"] is not None), ("--then", then)):
            if ladder is not None and given:
                raise InputError(
                    f"{option} and --ladder cannot be combined.", "Choose one of them."
                )
        if rest:
            refuse_options("cannot change the planned runs that --rest sends", *_PLANNED)
            series_verbs.resubmit_rest(reply, runs, run_id, yes=yes, force=force)
            return
        remedies = _remedies(runs.history.get(run_id), exclude, batch)
        changes["settings"] = (*remedies, *changes["settings"])
        if ladder is not None:
            series_verbs.refuse_second_ladder(runs, run_id, drop=rest is False)
            plans = series_verbs.plan_ladder(
                ladder, lambda size: runs.plan_resubmission(run_id, **changes | {"nodes": size})
            )
            series_verbs.resubmit_ladder(reply, runs, plans, columns(), yes=yes, force=force)
            return
        planned = runs.plan_resubmission(run_id, **changes)
        news = runs.code_news(run_id)
        if then:
            series_verbs.resubmit_sequence(
                reply, runs, planned, news, columns(), yes=yes, force=force, drop=rest is False
            )
            return
        series_verbs.note_followers(runs, planned.plan.parent.id)
        outlook = runs.resubmission_outlook(planned, news)
        price = price_outlook_sentence(outlook, time())
        planned = agree_to_resubmit(planned, news, columns(), price, yes=yes, force=force)
        sent = runs.resubmit(planned, report=show_step)
        show_sent(reply, sent)
        if wait or timeout is not None:
            wait_for_end(reply, runs, sent, timeout)
