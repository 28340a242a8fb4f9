"""Shared parts of verbs that send several runs: a grid, its unsent rest, a ladder of sizes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lumitui.app.cli.confirmation import (
    CURE_OF_RUN,
    agree_to_submit,
    agreed,
    grid_lines,
    show_changes,
    show_code_news,
    show_findings,
)
from lumitui.app.cli.output import Reply, run_data, say, say_rows
from lumitui.app.cli.send_progress import show_step
from lumitui.app.cli.views import tables
from lumitui.app.explain import words
from lumitui.app.runs import InputError, quote

if TYPE_CHECKING:
    from lumitui.app.runs import (
        CodeNews,
        MemberOutcome,
        Preview,
        Resubmission,
        Run,
        Runs,
        RunSeries,
        SeriesMember,
        Standing,
    )

    _Numbers = click.ParamType[tuple[int, ...]]
else:
    _Numbers = click.ParamType  # click 8.3 has no generic class

_MOST_SIZES = 20


class Sizes(_Numbers):
    """Node counts: `1,2,4`."""

    name = "sizes"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Return the distinct counts in ascending order."""
        texts = [text.strip() for text in str(value).split(",")]
        if not all(text.isdecimal() and 0 < len(text) < 6 and int(text) for text in texts):
            self.fail(f"{value} is not a list of node counts like 1,2,4.", param, ctx)
        if len(texts) > _MOST_SIZES:
            self.fail(f"give at most {_MOST_SIZES} node counts.", param, ctx)
        return tuple(sorted({int(text) for text in texts}))


def send_grid(reply: Reply, runs: "Runs", previews: Sequence["Preview"]) -> None:
    """Send the runs of a grid, and print each id as soon as the run is sent."""
    _send(reply, runs, runs.series.begin_grid(previews))


def submit_rest(reply: Reply, runs: "Runs", job: Path, *, yes: bool, force: bool = False) -> None:
    """Send the unsent runs of a job file's last grid, after the user agrees.

    Raises:
        InputError: there are no unsent runs.
    """
    left = runs.series.interrupted(str(job.resolve()))
    if left is None:
        raise InputError(f"{job} has no unsent runs.", "Omit --rest to send all of its runs.")
    _send_rest(reply, runs, runs.series.settled(left), yes=yes, force=force)


def resubmit_rest(
    reply: Reply, runs: "Runs", run_id: str, *, yes: bool, force: bool = False
) -> None:
    """Send the unsent runs of a run's last ladder, after the user agrees.

    Raises:
        InputError: there are no unsent runs.
    """
    parent = runs.history.get(run_id).id
    left = runs.series.unfinished(parent)
    if left is None:
        raise InputError(
            f"No resubmission of {parent} has unsent runs.",
            "Omit --rest; --ladder 1,2,4 sends several sizes.",
        )
    _send_rest(reply, runs, runs.series.settled(left), yes=yes, force=force)


def _send_rest(
    reply: Reply, runs: "Runs", now: "Standing", *, yes: bool, force: bool = False
) -> None:
    """Send a series' unsent runs, after a query of the site for runs that may already be jobs.

    Raises:
        LumiError: another process is sending the series, or it is unknown which runs are unsent.
    """
    from lumitui.app.runs import still_unknown

    for label, text in now.rows:
        say(f"{label}: {text}")
    if not now.left:
        if now.open:
            raise still_unknown(now)
        say("All runs were sent already.")
        reply.give({"series": now.series.id, "runs": [], "members": []}, "")
        return
    ready = runs.series.made_ready(now)
    show_findings(*ready)
    ready = agree_to_submit(ready, yes=yes, force=force)
    forced = any(one.forced for one in ready)
    _send(reply, runs, now.series, now.left, forced=forced)


def _rest_of(series: "RunSeries") -> str:
    """Return the command that sends the unsent runs of a series."""
    verb = "resubmit" if series.again else "submit"
    return f"`lumitui {verb} {quote(series.source)} --rest`"


def note_rest(runs: "Runs", job: Path) -> None:
    """Print a note on stderr if the job file's last grid was interrupted.

    First queries the site for a run that may be a job already.
    """
    if left := runs.series.interrupted(str(job.resolve())):
        now = runs.series.settled(left)
        how = f" {_rest_of(now.series)} sends only those; --no-rest drops them."
        say(f"note: {now.sentence}{how if now.left or now.open else ''}")


def sends_rest(
    reply: Reply, runs: "Runs", job: Path, previews: Sequence["Preview"], *, yes: bool, force: bool
) -> bool:
    """Send the unsent runs of an interrupted sequence; return whether there was one.

    First queries the site for a run that may be a job already.

    Raises:
        InputError: a run was sent, and the job file has changed since.
        LumiError: it is unknown which runs are unsent.
    """
    left = runs.series.interrupted(str(job.resolve()))
    if left is None or left.series.kind != "then":
        return False
    now = runs.series.settled(left)
    if not (now.sent or now.open):
        runs.series.leave_out(now.series.id)
        return False
    same, whole = runs.series.same_plan(now.series, previews), not (now.left or now.open)
    if not same and whole:
        say(f"note: {now.sentence}")
        return False
    if not same:
        raise InputError(
            f"{job} has changed since it was submitted: {now.sentence}",
            "--rest sends the others as planned; --no-rest sends all runs again.",
        )
    how = "" if whole else " This sends the others; --no-rest sends all runs again."
    say(f"{now.sentence}{how}")
    _send_rest(reply, runs, now, yes=yes, force=force)
    return True


def leave_out_rest(runs: "Runs", job: Path) -> None:
    """Stop offering the unsent runs of a job file's interrupted submissions."""
    while left := runs.series.unfinished(str(job.resolve())):
        runs.series.leave_out(left.series.id)


def note_unsent(runs: "Runs") -> None:
    """Print on stderr which grids and ladders have unsent runs; query no site."""
    for left in runs.series.unsent():
        how = f"{_rest_of(left.series)} sends those."
        if not left.series.source:
            how = "The TUI (`lumitui`) offers to send those."
        say(f"note: {left.sentence} {how}")


def plan_ladder(
    sizes: Sequence[int], plan: Callable[[int], "Resubmission"]
) -> list["Resubmission"]:
    """Return a resubmission for each of `sizes`.

    Raises:
        InputError: the run cannot be sent on the size named in the message.
    """
    plans = []
    for size in sizes:
        try:
            plans.append(plan(size))
        except InputError as error:
            where = words.count(size, "node")
            raise InputError(f"On {where}: {error.message}", error.hint) from error
    return plans


def resubmit_ladder(
    reply: Reply,
    runs: "Runs",
    plans: Sequence["Resubmission"],
    columns: int,
    *,
    yes: bool,
    force: bool = False,
) -> None:
    """Send a run on several sizes, after the user agrees once."""
    from lumitui.app.runs import ladder_terms, rungs

    parent, sizes = plans[0].plan.parent, [plan.preview.launch.layout.nodes for plan in plans]
    news = runs.code_news(parent.id)
    study = runs.resubmission_study(plans, news)
    rows = [rung.cells for rung in rungs.rungs_of(study) if rung.nodes in sizes]
    titles = [title.upper() for title in rungs.titles(study)]
    say_rows(tables.table(titles, rows, columns, shrink=(len(titles) - 1,)))
    if basis := rungs.basis(study):
        say(basis)
    for note in dict.fromkeys(note for made in plans for note in made.plan.notes):
        say(f"note: {note}")
    show_code_news(plans[0], news)
    previews = [plan.preview for plan in plans]
    show_findings(*previews)
    forced = agreed(
        previews,
        f"Resubmit {parent.id} as {words.count(len(plans), 'run')} with {plans[0].code_sent}?",
        yes=yes,
        force=force,
        cure=CURE_OF_RUN,
        terms=[f"{label}: {text}" for label, text in ladder_terms(plans, study)],
    )
    _send(reply, runs, runs.series.begin_again([plan.forced(forced) for plan in plans]))


def note_followers(runs: "Runs", run_id: str) -> None:
    """Print on stderr which runs followed a run, and how to send them again with it."""
    if followers := [run.id for run, _ in runs.series.followers(run_id)]:
        them = followers[0] if len(followers) == 1 else "them"
        say(f"note: {', '.join(followers)} followed {run_id}. To resubmit {them} too, add --then.")


def resubmit_sequence(
    reply: Reply,
    runs: "Runs",
    planned: "Resubmission",
    news: "CodeNews",
    columns: int,
    *,
    yes: bool,
    force: bool,
    drop: bool,
) -> None:
    """Send a run and its followers again, after the user agrees once.

    `drop` discards an unfinished earlier resubmission.

    Raises:
        InputError: no run followed it, or an earlier resubmission is unfinished.
    """
    parent = planned.plan.parent.id
    refuse_second_ladder(runs, parent, drop=drop)
    plans = [planned, *runs.series.plan_followers(planned)]
    if len(plans) == 1:
        raise InputError(f"No run followed {parent}.", "Omit --then.")
    show_changes(planned, columns)
    show_code_news(planned, news)
    previews = [replace(plan.preview, cell=plan.preview.name) for plan in plans]
    show_findings(*previews)
    forced = agreed(
        previews,
        f"Resubmit these {len(plans)} runs, each after the previous one?",
        yes=yes,
        force=force,
        cure=CURE_OF_RUN,
        terms=grid_lines(previews),
    )
    _send(reply, runs, runs.series.begin_again([plan.forced(forced) for plan in plans]))


def refuse_second_ladder(runs: "Runs", run_id: str, *, drop: bool) -> None:
    """Refuse a ladder while the run has an unfinished earlier one; `drop` discards that one.

    Raises:
        InputError: an earlier ladder is unfinished.
    """
    from lumitui.app.runs import SeriesUnfinished

    parent = runs.history.get(run_id).id
    while drop and (left := runs.series.unfinished(parent)):
        runs.series.leave_out(left.series.id)
    try:
        runs.series.refuse_second_ladder(parent)
    except SeriesUnfinished as error:
        error.hint = (
            f"Send the rest with `lumitui resubmit {parent} --rest`, or add --no-rest to drop it."
        )
        raise


def _send(
    reply: Reply,
    runs: "Runs",
    series: "RunSeries",
    members: "Sequence[SeriesMember] | None" = None,
    *,
    forced: bool = False,
) -> None:
    """Send a series, or only `members`; reply with its runs as soon as they are jobs.

    `forced` sends it despite the adviser's errors.

    Raises:
        LumiError: some runs were not sent; the message says which.
    """
    from lumitui.app.runs import series_failure

    done: list[Run] = []
    before = len(runs.series.standing(series).sent)

    def sent(run: "Run") -> None:
        done.append(run)
        say(f"{before + len(done)} of {len(series.members)}: job {run.job_id} at {run.site}")
        reply.give({"series": series.id, "runs": [run_data(one) for one in done]}, run.id)

    outcomes = runs.series.send(
        series.id, report=show_step, sent=sent, agreed=members, forced=forced
    )
    reply.keep(
        {
            "series": series.id,
            "runs": [run_data(one) for one in done],
            "members": [_member_data(outcome) for outcome in outcomes],
        }
    )
    for outcome in outcomes:
        if outcome.already:
            say(f"{outcome.member.words}: {outcome.already}")
    if error := series_failure(series, outcomes):
        rest = f"{_rest_of(series)} sends the rest."
        if series.kind == "then":
            rest += " To send all runs again, use --no-rest."
        raise type(error)(error.message, f"{error.hint} {rest}".strip())


def _member_data(outcome: "MemberOutcome") -> dict[str, object]:
    return {
        "place": outcome.member.place,
        "settings": outcome.member.words,
        "run": outcome.run.id if outcome.run else None,
        "error": outcome.error.message if outcome.error else None,
        "already": outcome.already or None,
    }
