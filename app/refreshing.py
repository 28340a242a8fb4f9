"""A look at the sites: submissions settled, one request each, and what is new written down."""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lumitui.app import following, sending
from lumitui.app.connections import Connection
from lumitui.app.history import Changes, History
from lumitui.app.records import Run
from lumitui.remote.errors import AnswerNeeded, LumiError, OutcomeUnknown, RefusedError
from lumitui.remote.scheduler import Poll


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


@dataclass(frozen=True)
class Desk:
    """What a look needs of the laptop."""

    history: History
    locks: Path
    """Where a process says that it is sending a run."""
    connection: Callable[[str], Connection]
    """The connection to the site of that name."""


def refresh(desk: Desk, open_runs: Sequence[Run]) -> Refreshed:
    """Ask the sites of `open_runs`, one request each; see `Runs.refresh`."""
    changed: list[str] = []
    warnings: list[str] = []
    unanswered: list[AnswerNeeded] = []
    requests = 0
    for name in dict.fromkeys(run.site for run in open_runs):
        mine = [run for run in open_runs if run.site == name]
        try:
            connection = desk.connection(name)
            for run in mine:
                if run.job_id is None:
                    requests += 1
                    changed += settle(desk, run, connection)
            watched = [run for run in mine if run.job_id is not None]
            if watched:
                requests += 1
                poll = connection.scheduler.poll([following.watch(run) for run in watched])
                changed += _take(desk.history, watched, poll)
                if poll.warning:
                    warnings.append(f"{name}: {poll.warning}")
        except LumiError as error:
            warnings.append(f"{name}: {error}")
            if isinstance(error, AnswerNeeded):
                unanswered.append(error)
                requests -= 1
    return Refreshed(tuple(changed), tuple(warnings), requests, tuple(unanswered))


def settle(desk: Desk, run: Run, connection: Connection) -> list[str]:
    """Settle a submission without a job id; a send that is still going on is left alone."""
    with sending.sender_lock(desk.locks, run.id) as free:
        if not free:
            return []
        # What was read before the lock may have been settled meanwhile.
        run = desk.history.get(run.id)
        if run.job_id is not None or run.state.is_final:
            return []
        answer = sending.settle(run, connection.scheduler, time.time())
        # Recorded all the same: the state tells it, and a refresh is no place to raise it.
        with contextlib.suppress(RefusedError, OutcomeUnknown):
            sending.record(run, answer, desk.history)
    return [run.id] if answer.state is not run.state else []


def _take(history: History, watched: Sequence[Run], poll: Poll) -> list[str]:
    now = time.time()
    looks: list[tuple[Run, Changes]] = []
    for run in watched:
        changes = following.judge(run, poll, now)
        if changes:
            looks.append((run, changes))
        files = poll.files.get(run.id)
        if files and files.metrics:
            span = (run.metrics_offset, run.metrics_offset + len(files.metrics))
            history.add_metrics(run.id, files.metrics.splitlines(), span)
    return history.observe(looks)
