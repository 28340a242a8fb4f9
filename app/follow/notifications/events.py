"""Events of runs between two readings of the history, and their sentences. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lumitui.app.explain import run_phrases, words
from lumitui.app.history.run import Run
from lumitui.remote.site.states import State

MOST_SINGLE_EVENTS = 3
"""Maximum number of events to show one by one; above it, only their number is shown."""


class Happened(StrEnum):
    """The kinds of events, by their names in the settings file."""

    STARTED = "started"
    ENDED = "ended"
    FAILED = "failed"


@dataclass(frozen=True)
class Event:
    """Something that happened to a run."""

    run_id: str
    site: str
    state: State
    happened: Happened
    sentence: str


def happened(before: State, now: State) -> Happened | None:
    """Return the event for a change of state, or None."""
    if before is now or before.is_final:
        return None
    if now in (State.DONE, State.CANCELLED):
        return Happened.ENDED
    if now.is_final:
        return Happened.FAILED
    waited = before in (State.SENDING, State.QUEUED, State.UNKNOWN)
    return Happened.STARTED if now is State.RUNNING and waited else None


def runs_with_events(before: Mapping[str, State], now: Mapping[str, State]) -> list[str]:
    """Return the runs of `before` that may have an event: with a changed state, or missing."""
    return [run_id for run_id, state in before.items() if now.get(run_id) is not state]


def event_of(run: Run, before: State) -> Event | None:
    """Return the event of `run` since it was `before`, or None."""
    kind = happened(before, run.state)
    if kind is None:
        return None
    return Event(run.id, run.site, run.state, kind, _sentence(run, kind))


def _sentence(run: Run, kind: Happened) -> str:
    if kind is Happened.STARTED:
        again = f", {run_phrases.attempt(run)}" if run.attempt > 1 else ""
        return f"{run.id} is running on {run.site}{again}."
    ran = run.ran(run.ended or 0.0)
    took = f" after {words.length(ran)}" if run.started or ran else ""
    if kind is Happened.ENDED:
        return f"{run.id} is {run.state}{took}."
    if stopped := words.chain_end(run):
        return f"{run.id} stopped{took}: {stopped}."
    why = words.reason(run)
    return f"{run.id}: {run.state}{took}{f' ({why})' if why else ''}."


def counted(states: Iterable[State]) -> str:
    """Return the number of runs in each state, most frequent first: `2 done, 1 failed`."""
    return ", ".join(f"{count} {state}" for state, count in Counter(states).most_common())


def away_words(states: Iterable[State]) -> str:
    """Return a sentence on the runs that ended while the user was away; '' if none did."""
    ended = [state for state in states if state.is_final]
    return f"{len(ended)} ended while you were away: {counted(ended)}" if ended else ""


def joint_sentence(events: list[Event]) -> str:
    """Return several events in one sentence."""
    started = [event for event in events if event.happened is Happened.STARTED]
    ended = [event.state for event in events if event.happened is not Happened.STARTED]
    parts = [f"{words.count(len(started), 'run')} started"] if started else []
    parts += [f"{words.count(len(ended), 'run')} ended: {counted(ended)}"] if ended else []
    return f"{'; '.join(parts)}."
