"""A refresh: settle submissions, poll each site, and update the history.

A wrapper or controller may create a job after its sbatch has failed; the job ends at its claim. A
poll lists such a job, and settling its run again cancels it; see `remote/scheduler/evidence`. A
poll also shows the mark that an undelivered cancel left in the run's folder.
"""

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lumitui.app.history.history import History
from lumitui.app.history.run import Run
from lumitui.app.launch.send.lock import sender_lock, sweep_locks
from lumitui.remote.site.errors import (
    AnswerNeeded,
    LinkLost,
    LumiError,
    OutcomeUnknown,
    RefusedError,
)
from lumitui.remote.site.run_folder import attempt_log
from lumitui.remote.site.sites import Sites
from lumitui.remote.site.states import State
from lumitui.remote.ssh.prompts import attendance

if TYPE_CHECKING:
    from lumitui.app.follow.left_secrets import LeftSecrets
    from lumitui.remote.connect import Connection, Connections
    from lumitui.remote.scheduler.scheduler_protocol import Scheduler

RECENT_SECONDS = 3600.0
"""How long to keep checking the queue for an abandoned run if no other run is polled."""
_MOST_LOGS = 4
"""Maximum number of running runs' logs to read in a poll, 256 KiB each."""
_MOST = 50
"""Maximum number of runs of each state to compare with the queue."""
_OURS = re.compile(r"lumitui:[0-9a-f]|(?:^|\|)[a-z0-9.-]+-[0-9a-f]{6}\|")
"""The format of the identifiers of jobs that lumitui submitted; see `shipment.new_id`."""


def late_runs(history: History, site: str, others: Iterable[str]) -> list[Run]:
    """Return the abandoned and cancelled runs that have a job at a site.

    `others` identifies the jobs there that belong to no watched run.
    """
    signs = [text for text in others if _OURS.search(text)]
    if not signs:
        return []
    # A wrapper may resubmit a cancelled run, but its claim is void or taken by then.
    cancelled = history.page(_MOST, site=site, state=State.CANCELLED)
    return [
        run
        for run in (*_given_up(history, site), *cancelled)
        if any(f"|{run.id}|" in f"|{text}|" or f"lumitui:{run.token}" in text for text in signs)
    ]


def recent_runs(history: History, site: str | None) -> list[Run]:
    """Return at most three recently abandoned runs.

    If the laptop's clock is wrong, a late job stays queued until it ends at its claim.
    """
    now = time.time()
    recent = [run for run in _given_up(history, site) if abs(now - run.updated) < RECENT_SECONDS]
    return recent[:3]


def _given_up(history: History, site: str | None) -> list[Run]:
    states = (State.REFUSED, State.NOT_SENT)
    runs = [run for state in states for run in history.page(_MOST, site=site, state=state)]
    # `submitted` is written before the submit step, so without it there cannot be a job.
    return [run for run in runs if run.submitted is not None and run.job_id is None]


def cancel_late(run: Run, scheduler: "Scheduler") -> None:
    """Cancel the late job of an abandoned or cancelled run, found by its name and token.

    An unconfirmed cancel is retried at the next poll.
    """
    from lumitui.app.follow.transitions import watch_of
    from lumitui.app.launch.send.settle import GRACE_SECONDS, submission_of

    if run.job_id is not None:
        with contextlib.suppress(RefusedError, OutcomeUnknown):
            scheduler.cancel([watch_of(run)])
        return
    scheduler.settle(submission_of(run), deep=False, void=True, grace=GRACE_SECONDS)


Warn = Callable[[str], None]
"""Called with the error if a site cannot be queried; its runs stay unchanged."""


DAY = 86_400.0


class Backoff:
    """Which runs to query: unknown ones ever more rarely, because searching accounting is slow.

    Each interval is 1.5 times the last: about 20 polls on the first day, and one a day from the
    third on. Kept in memory, so a new process queries once.
    """

    def __init__(self) -> None:
        self._asked: dict[str, float] = {}

    def due(self, runs: Sequence[Run], now: float, *, attended: bool) -> list[Run]:
        """Return those of `runs` to query at `now` (epoch seconds); all if `attended`."""
        due_runs = []
        for run in runs:
            if run.state is not State.UNKNOWN:
                self._asked.pop(run.id, None)
            elif not attended and not self._is_due(run, now):
                continue
            else:
                self._asked[run.id] = now
            due_runs.append(run)
        return due_runs

    def _is_due(self, run: Run, now: float) -> bool:
        at = self._asked.get(run.id)
        if at is None or at > now:  # a clock that was set back must not stop the queries
            return True
        return now - at >= min(DAY, (at - (run.updated or run.created)) / 2)


@dataclass(frozen=True)
class Refreshed:
    """The result of a refresh."""

    changed: tuple[str, ...]
    """Ids of runs whose state has changed."""
    warnings: tuple[str, ...]
    requests: int
    """Number of requests, over all sites."""
    unanswered: tuple[AnswerNeeded, ...] = ()
    """Logins that need a user; lumitui sent nothing to those sites."""
    failed: Mapping[str, LumiError] = field(default_factory=dict)
    """Sites that did not answer, each with the reason; their runs are unchanged."""
    polled: frozenset[str] = frozenset()
    """Sites whose queues were listed."""
    heard: frozenset[str] = frozenset()
    """Sites that answered a request."""
    held: frozenset[str] = frozenset()
    """Sites that only their sender queries, because it is sending a run."""


@dataclass(frozen=True)
class Settled:
    """The result of checking a submission without a job id."""

    changed: tuple[str, ...] = ()
    """The run's id, if its state has changed."""
    requests: int = 0
    held: bool = False
    """Whether the send is still running, so that lumitui left the run alone."""


@dataclass(frozen=True)
class Watcher:
    """Everything needed to watch runs: the history, the sites, and the connections to them."""

    history: History
    locks: Path
    """Where a process records that it is sending a run."""
    sites: Sites
    connections: "Connections"
    left_secrets: "LeftSecrets"
    """Which runs may have secrets on their sites."""
    backoff: Backoff = field(default_factory=Backoff)
    clocks: set[str] = field(default_factory=set)
    """The sites for which the clock warning was shown."""

    def connection(self, site_name: str) -> "Connection":
        """Return the connection to a site."""
        return self.connections.get(self.sites.load(site_name))


def refresh(watcher: Watcher, site_name: str | None = None, *, attended: bool = True) -> Refreshed:
    """Query every site with unfinished runs, or one site, and update the history.

    A site takes one request, or more if a run has written much since the last poll.

    Interrupted sends are settled first. An unreachable site causes a warning, not an error; its
    runs stay unchanged. Unless `attended`, no login prompts: a site that needs one causes a warning
    too, and jobs that are no longer listed are queried ever more rarely.
    """
    with attendance(attended):
        news = _refresh(watcher, watcher.history.unfinished(site_name), attended=attended)
    if not attended:
        return news
    with attendance(False):
        requests = _cancel_recent(watcher, site_name, news.polled)
    return replace(news, requests=news.requests + requests)


def _refresh(watcher: Watcher, open_runs: Sequence[Run], *, attended: bool) -> Refreshed:
    changed: list[str] = []
    warnings: list[str] = []
    unanswered: list[AnswerNeeded] = []
    failed: dict[str, LumiError] = {}
    listed: set[str] = set()
    heard: set[str] = set()
    held: set[str] = set()
    requests = 0
    sweep_locks(watcher.locks)
    for name in dict.fromkeys(run.site for run in open_runs):
        mine = [run for run in open_runs if run.site == name]
        try:
            connection = watcher.connection(name)
            for run in mine:
                if run.job_id is None:
                    settled = settle_run(watcher, run, connection)
                    requests += settled.requests
                    changed += settled.changed
                    heard |= {name} if settled.requests else set()
                    held |= {name} if settled.held else set()
            with_jobs = [run for run in mine if run.job_id is not None]
            due = watcher.backoff.due(with_jobs, time.time(), attended=attended)
            if due:
                from lumitui.app.follow.poll import poll_site  # late: without such runs it is quick

                polled = poll_site(due, connection, watcher.history)
                requests += polled.requests
                changed += polled.changed
                watched = due if attended else ()
                requests += _keep_log_figures(watcher, connection, polled.changed, watched)
                warnings += [f"{name}: {words}" for words in polled.warnings]
                warnings += _tell_silent_ends(watcher, polled.changed)
                if polled.clock and name not in watcher.clocks:
                    watcher.clocks.add(name)
                    warnings.append(f"{name}: {polled.clock}")
                listed.add(name)
                heard.add(name)
                marked = map(watcher.history.get, polled.cancelled)
                for run in (*marked, *late_runs(watcher.history, name, polled.others)):
                    cancel_late(run, connection.scheduler)
                    requests += 1
            swept = watcher.left_secrets.sweep(watcher.history, name, connection.transport)
            requests, warnings = requests + swept.requests, [*warnings, *swept.warnings]
        except LumiError as error:
            warnings.append(f"{name}: {error}")
            failed[name] = error
            # A request that was lost or refused was sent; without a link, it never left.
            requests += isinstance(error, LinkLost | RefusedError | OutcomeUnknown)
            if isinstance(error, AnswerNeeded):
                unanswered.append(error)
    return Refreshed(
        tuple(changed),
        tuple(warnings),
        requests,
        tuple(unanswered),
        failed,
        frozenset(listed),
        frozenset(heard - set(failed)),
        frozenset(held),
    )


def _keep_log_figures(
    watcher: Watcher, connection: "Connection", changed: Sequence[str], due: Sequence[Run]
) -> int:
    """Store the `metrics:` values from logs; return the number of requests.

    An ended run's log is read once, so that grids, scaling and comparisons query no site. Of the
    runs in `due`, the running ones whose logs grew most are read, for lists and overviews.
    """
    from lumitui.app.follow.results.log_patterns import keep_log_figures, log_bytes, log_figures_of
    from lumitui.remote.scheduler import run_log

    runs = [run for run in map(watcher.history.get, changed) if run.state.is_final]
    grown = {
        run.id: log_bytes(run) + run.metrics_offset
        for run in map(watcher.history.get, [one.id for one in due if one.has_metrics])
        if run.state is State.RUNNING and run.metrics_offset <= 0
    }
    most = sorted((key for key in grown if grown[key] > 0), key=lambda key: -grown[key])
    runs += map(watcher.history.get, most[:_MOST_LOGS])
    read = [run for run in runs if run.log_sizes and run.has_metrics and run.metrics_offset <= 0]
    for run in read:
        path = f"{run.folder}/{attempt_log(run.attempt)}"
        end = partial(run_log.read_end, connection.transport, path)
        keep_log_figures(watcher.history, run, log_figures_of(run, end))
    return len(read)


def _tell_silent_ends(watcher: Watcher, changed: Sequence[str]) -> list[str]:
    """Send the notifications for jobs that were killed before they could; return a warning.

    Only the process that wrote the end to the history sends one, so that it arrives once.
    """
    if not changed:
        return []
    from lumitui.app.follow.notifications.silent_end import ended_silently, tell_silent_end

    ended = filter(ended_silently, map(watcher.history.get, changed))
    return [tell_silent_end(run) for run in ended]


def _cancel_recent(watcher: Watcher, site_name: str | None, listed: frozenset[str]) -> int:
    """Cancel late jobs of recently abandoned runs, at other sites; return the number of requests.

    A site that is `listed` was asked already. An unreachable one is skipped: a late job ends at its
    claim anyway.
    """
    requests = 0
    for run in recent_runs(watcher.history, site_name):
        if run.site in listed:
            continue
        with contextlib.suppress(LumiError):
            scheduler = watcher.connection(run.site).scheduler
            cancel_late(run, scheduler)
            requests += 1
    return requests


def settle_run(watcher: Watcher, run: Run, connection: "Connection") -> Settled:
    """Settle a submission without a job id, unless its send is still running."""
    from lumitui.app.launch.send.settle import asks_the_site, record, settle

    with sender_lock(watcher.locks, run.id) as free:
        if not free:
            return Settled(held=True)
        # Another process may have settled the run before this one got the lock.
        run = watcher.history.get(run.id)
        if run.job_id is not None or run.state.is_final:
            return Settled()
        asks = asks_the_site(run)
        answer = settle(run, connection.scheduler)
        # The history keeps the outcome anyway; a refresh should not raise it.
        with contextlib.suppress(RefusedError, OutcomeUnknown):
            record(run, answer, watcher.history)
    return Settled((run.id,) if answer.state is not run.state else (), int(asks))
