"""The outcome of sending a grid or ladder, in words. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lumitui.app.explain.run_phrases import time_limit
from lumitui.app.explain.words import (
    billing_notes,
    count,
    finding_rows,
    price,
    price_limit,
    price_sentence,
)
from lumitui.app.history.listing.series_runs import RunSeries, SeriesMember
from lumitui.app.history.run import Run
from lumitui.app.scale.resubmission import Resubmission
from lumitui.app.scale.scaling.rungs import likely_price
from lumitui.app.scale.scaling.scaling_words import middle
from lumitui.app.scale.scaling.study import Scaling
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError, LumiError, OutcomeUnknown

NEVER_A_JOB = (State.NOT_SENT, State.REFUSED)
"""The states of runs that certainly have no job."""
_MOST_NAMED = 6


@dataclass(frozen=True)
class Standing:
    """Which members of a series have jobs."""

    series: RunSeries
    sent: tuple[tuple[SeriesMember, Run], ...]
    """Members with a job, past or present."""
    open: tuple[tuple[SeriesMember, Run], ...]
    """Members for which lumitui must check the site for a job."""
    left: tuple[SeriesMember, ...]
    """Members that certainly have no job."""

    @property
    def rows(self) -> list[tuple[str, str]]:
        """What sending the rest would do, as (label, words) rows."""
        total = len(self.series.members)
        rows = [("sent", f"{len(self.sent)} of {total}{_names(run.id for _, run in self.sent)}")]
        if self.open:
            words = _named([member.words for member, _ in self.open])
            words += ": lumitui checks the site first, and never sends a job twice"
            rows.append(("unknown", words))
        return [*rows, ("not sent", _named([member.words for member in self.left]))]

    @property
    def sentence(self) -> str:
        """The same in one line."""
        sent = _sent(len(self.sent), count(len(self.series.members), "run"))
        rest = f", {len(self.left)} {_was(len(self.left))} not" if self.left else ""
        open_ = f", {len(self.open)} still unknown" if self.open else ""
        return f"{self.series.id}: {sent}{rest}{open_}."


def standing(series: RunSeries, runs: Mapping[str, Run]) -> Standing:
    """Return the standing of `series`; `runs` has its runs in the history, by id."""
    sent, unsettled, rest = [], [], []
    for member in series.members:
        run = runs.get(member.run or "")
        if run is None or run.state in NEVER_A_JOB:
            rest.append(member)
        elif run.job_id is None and run.state in (State.SENDING, State.UNKNOWN):
            unsettled.append((member, run))
        else:
            sent.append((member, run))
    return Standing(series, tuple(sent), tuple(unsettled), tuple(rest))


def still_unknown(now: Standing) -> LumiError:
    """Return the error for a series without unsent members of which one may have a job."""
    return LumiError(
        f"It is still unknown whether {now.series.site} has a job of {now.open[0][1].id}.",
        "Nothing was sent. Try again in three minutes.",
    )


class SeriesUnfinished(InputError):
    """An earlier series from the same source is unfinished, so a new one could send a run twice."""

    def __init__(self, problem: str, now: Standing) -> None:
        """Add the standing of the earlier series to `problem`."""
        do = "Send its remaining runs first, or drop them."
        super().__init__(f"{problem}: {now.sentence}", do)


@dataclass(frozen=True)
class MemberOutcome:
    """The outcome of one member."""

    member: SeriesMember
    run: Run | None = None
    error: LumiError | None = None
    """Why it was not sent; without run, error and `already`, it was not tried."""
    already: str = ""
    """Whether another laptop has sent or is sending it; `run` is its run, if known."""


def why_stopped(outcomes: Sequence[MemberOutcome]) -> str:
    """Return which member failed and why; "" if none did."""
    failed = next((outcome for outcome in outcomes if outcome.error is not None), None)
    return f"{failed.member.words}: {failed.error}" if failed else ""


def sent_of(outcomes: Sequence[MemberOutcome]) -> list[Run]:
    """Return the runs that have a job."""
    return [outcome.run for outcome in outcomes if outcome.run is not None]


def series_failure(series: RunSeries, outcomes: Sequence[MemberOutcome]) -> LumiError | None:
    """Return one error that lists sent and unsent members; None if all were sent."""
    failed = next((outcome for outcome in outcomes if outcome.error is not None), None)
    if failed is None or failed.error is None:
        return None
    error = failed.error
    if series.kind == "ladder":
        return LumiError("\n".join(map(_line, outcomes)), error.hint)
    done = sent_of(outcomes)
    verb = "failed" if not isinstance(error, OutcomeUnknown) else "may have failed"
    total = len(outcomes)
    runs = "run" if total == len(series.members) else "remaining run"
    return type(error)(
        f"{_sent(len(done), count(total, runs))}{_names(run.id for run in done)}. "
        f"Then {failed.member.words} {verb}: {error.message}",
        error.hint,
    )


def _line(outcome: MemberOutcome) -> str:
    if outcome.already:
        return f"{outcome.member.words}: {outcome.already}"
    if outcome.run is not None:
        return f"{outcome.member.words}: sent, {outcome.run.id} is job {outcome.run.job_id}."
    why = outcome.error.message if outcome.error else "lumitui did not try it."
    return f"{outcome.member.words}: not sent. {why}"


def _sent(number: int, total: str) -> str:
    return f"{number} of {total} {_was(number)} sent"


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _names(ids: Iterable[str]) -> str:
    names = list(ids)
    return f": {_named(names)}" if names else ""


def _named(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST_NAMED
    names = ", ".join(texts[:_MOST_NAMED])
    return f"{names} and {more} more" if more > 0 else names or "none"


def ladder_terms(plans: Sequence[Resubmission], study: Scaling | None) -> list[tuple[str, str]]:
    """Return the terms of sending a run at several sizes, as (label, words) rows.

    `study` has the likely price of each size.
    """
    prices = [plan.preview.launch.price for plan in plans]
    likely = [likely_price(study, plan.preview.launch) if study else None for plan in plans]
    lines = [
        (
            count(plan.preview.launch.layout.nodes, "node"),
            f"at most {time_limit(plan.preview.launch)}, billed {price_limit(most)}"
            + (f", about {middle(paid, price)}" if paid else ""),
        )
        for plan, most, paid in zip(plans, prices, likely, strict=True)
    ]
    total = replace(prices[0], amount=sum(most.amount for most in prices))
    known = [paid.likely for paid in likely if paid and paid.likely is not None]
    about = f", about {price(sum(known))}" if len(known) == len(plans) else ""
    lines.append(("in all", price_sentence(total) + about))
    lines += [("rate", note) for note in billing_notes([(total, plans[0].preview.site)])]
    return lines + finding_rows(found for plan in plans for found in plan.preview.findings)


def sent_sentence(sent: Sequence[Run]) -> str:
    """Return a sentence with each run's job; for many runs, only their number."""
    if len(sent) > _MOST_NAMED:
        return f"{count(len(sent), 'run')} were sent."
    return "; ".join(f"{run.id} is job {run.job_id}" for run in sent) + "."
