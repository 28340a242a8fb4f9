"""A look at the sites: submissions settled, each site asked, and what is new written down."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lumitui.app.history.history import History
from lumitui.app.history.run import Run
from lumitui.app.send import submit
from lumitui.app.send.lock import sender_lock, sweep_locks
from lumitui.app.watch.backoff import Patience
from lumitui.app.watch.poll import look_at
from lumitui.app.watch.transitions import watch
from lumitui.remote.connect import Connection
from lumitui.remote.errors import AnswerNeeded, InputError, LumiError, OutcomeUnknown, RefusedError

Warn = Callable[[str], None]
"""Called with what kept a site from being asked; the runs there are as they were."""


@dataclass(frozen=True)
class Refreshed:
    """What a look at the sites brought."""

    changed: tuple[str, ...]
    """Ids of runs whose state is another now."""
    warnings: tuple[str, ...]
    requests: int
    """Requests that were made, over all sites."""
    unanswered: tuple[AnswerNeeded, ...] = ()
    """Logins that wait for a person; nothing was sent to those sites."""
    failed: Mapping[str, LumiError] = field(default_factory=dict)
    """Sites that told nothing, each with why; their runs are as they were."""


@dataclass(frozen=True)
class Desk:
    """What a look needs of the laptop."""

    history: History
    locks: Path
    """Where a process says that it is sending a run."""
    connection: Callable[[str], Connection]
    """The connection to the site of that name."""
    patience: Patience = field(default_factory=Patience)


def refresh(desk: Desk, open_runs: Sequence[Run], *, wanted: bool) -> Refreshed:
    """Ask the sites of `open_runs`; see `Runs.refresh`. A person `wanted` it, or time passed."""
    changed: list[str] = []
    warnings: list[str] = []
    unanswered: list[AnswerNeeded] = []
    failed: dict[str, LumiError] = {}
    requests = 0
    sweep_locks(desk.locks)
    for name in dict.fromkeys(run.site for run in open_runs):
        mine = [run for run in open_runs if run.site == name]
        try:
            connection = desk.connection(name)
            for run in mine:
                if run.job_id is None:
                    requests += 1
                    changed += settle(desk, run, connection)
            watched = [run for run in mine if run.job_id is not None]
            watched = desk.patience.due(watched, time.time(), wanted=wanted)
            if watched:
                requests += 1
                looked = look_at(watched, connection, desk.history)
                requests += looked.requests - 1
                changed += looked.changed
                warnings += [f"{name}: {words}" for words in looked.warnings]
        except LumiError as error:
            warnings.append(f"{name}: {error}")
            failed[name] = error
            if isinstance(error, AnswerNeeded):
                unanswered.append(error)
                requests -= 1
    return Refreshed(tuple(changed), tuple(warnings), requests, tuple(unanswered), failed)


def settle(desk: Desk, run: Run, connection: Connection) -> list[str]:
    """Settle a submission without a job id; a send that is still going on is left alone."""
    with sender_lock(desk.locks, run.id) as free:
        if not free:
            return []
        # What was read before the lock may have been settled meanwhile.
        run = desk.history.get(run.id)
        if run.job_id is not None or run.state.is_final:
            return []
        answer = submit.settle(run, connection.scheduler, time.time())
        # Recorded all the same: the state tells it, and a refresh is no place to raise it.
        with contextlib.suppress(RefusedError, OutcomeUnknown):
            submit.record(run, answer, desk.history)
    return [run.id] if answer.state is not run.state else []


def cancel(desk: Desk, run: Run, warn: Warn) -> bool:
    """Cancel a run's job; false when it turns out that it never had one, and history says so.

    `warn` is told that nothing was cancelled, where the queue has no such job any more.

    Raises:
        InputError: it has ended.
        OutcomeUnknown: whether it has a job is not known yet.
        RefusedError, LinkError: the scheduler would not, or cannot be reached.
    """
    if run.state.is_final:
        raise InputError(f"{run.id} has ended: {run.state}.", "There is nothing to cancel.")
    connection = desk.connection(run.site)
    if run.job_id is None:
        settle(desk, run, connection)
        run = desk.history.get(run.id)
    if run.job_id is None:
        if run.state.is_final:
            return False
        raise OutcomeUnknown(
            f"{run.id} has no known job yet ({run.reason}).", "Try again in two minutes."
        )
    if run.job_id in connection.scheduler.poll([watch(run)]).gone:
        # Its id may be another job's by now.
        warn("The queue does not have its job any more, so that nothing was cancelled.")
    else:
        connection.scheduler.cancel([run.job_id])
    return True
