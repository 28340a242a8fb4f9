"""One poll of a site: its request, the remaining metrics, and the changes to the history."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lumitui.app.explain.words import length
from lumitui.app.follow import transitions
from lumitui.app.history.history import History
from lumitui.app.history.run import Changes, Run
from lumitui.remote.connect import Connection
from lumitui.remote.scheduler.run_files import poll_files
from lumitui.remote.scheduler.scheduler_protocol import NewRunFiles, State, Watch
from lumitui.remote.site.errors import LinkError
from lumitui.remote.site.run_folder import POLL_SECONDS

MOST_ROUNDS = 16
"""Maximum number of requests for remaining metrics in one poll (64 MiB); the next poll gets the
rest."""
_GOING = (State.QUEUED, State.RUNNING)
_TOLERATED = 60.0
"""Tolerated clock difference in seconds: displayed times have minutes."""


@dataclass(frozen=True)
class Polled:
    """The result of polling a site."""

    changed: tuple[str, ...]
    """Ids of runs whose state has changed."""
    warnings: tuple[str, ...]
    requests: int
    others: tuple[str, ...] = ()
    """Jobs without a watched run; see Poll.others."""
    clock: str = ""
    """The warning about this machine's clock; "" if the clock is right."""
    cancelled: tuple[str, ...] = ()
    """Cancelled runs whose jobs are still alive."""


def poll_site(runs: Sequence[Run], connection: Connection, history: History) -> Polled:
    """Query a site about `runs`, which all have jobs, and write changes to the history.

    A run ends in the history only once all its metrics have arrived, because nothing requests them
    afterwards.
    """
    watches = {run.id: transitions.watch_of(run) for run in runs}
    began = time.time()
    poll = connection.scheduler.poll(list(watches.values()))
    now = time.time()
    observed = [
        (run, changes) for run in runs if (changes := transitions.transition(run, poll, now))
    ]
    warnings = [poll.warning] if poll.warning else []
    # Once: afterwards the run's reason says so, and other runs of the site are not stale.
    if poll.silent and any(
        changes.get("state") is State.UNKNOWN and changes.get("reason") != run.reason
        for run, changes in observed
    ):
        warnings.append(poll.silent)
    behind, rounds = _store(watches, poll.files, history), 0
    deadline = time.monotonic() + POLL_SECONDS
    warnings += [
        f"{key}: its metrics.jsonl was rewritten; lumitui dropped the earlier points."
        for key, watch in behind.items()
        if watch.anew
    ]
    try:
        while behind and rounds < MOST_ROUNDS and time.monotonic() < deadline:
            rounds += 1
            files = poll_files(connection.transport, list(behind.values()))
            behind = _store(behind, files, history)
    except LinkError as error:
        warnings.append(str(error))
    for run, changes in observed:
        news, ended = poll.files.get(run.id, NewRunFiles()), changes.get("ended") or 0.0
        # A missing folder may reappear, with the exit file and the metrics.
        if news.missing and not transitions.is_over(ended, poll.clock):
            _hold_end(changes, "its folder is not visible")
        elif run.id in behind:
            _hold_end(changes, "its metrics are not complete yet")
    changed = history.observe(observed)
    clock = clock_words(poll.clock, began, now)
    going = (run.id for run, changes in observed if changes.get("state") in _GOING)
    marked = tuple(key for key in going if key in poll.files and poll.files[key].cancelled)
    return Polled(tuple(changed), tuple(warnings), 1 + rounds, poll.others, clock, marked)


def _hold_end(changes: Changes, why: str) -> None:
    """Keep polling a run that has ended until its end is final."""
    if changes.get("state", State.UNKNOWN).is_final:
        changes["state"] = State.FINISHING
        changes["reason"] = f"it has ended; {why}"
        # The next poll reads the exit file again.
        changes.pop("exits", None)


def _store(
    watches: dict[str, Watch], files: Mapping[str, NewRunFiles], history: History
) -> dict[str, Watch]:
    """Write new metrics to the history; return the queries for the runs that have more."""
    behind: dict[str, Watch] = {}
    for key, watch in watches.items():
        news = files.get(key, NewRunFiles())
        start = 0 if watch.anew else watch.metrics_offset
        end = start + news.metrics_skipped + len(news.metrics)
        newest = max((item.attempt for item in news.exits), default=watch.exits)
        later = replace(watch, has_binding=True, exits=newest)
        after = news.metrics_after
        if news.metrics_anew or (
            news.metrics and after is not None and not history.metrics.continues(key, start, after)
        ):
            behind[key] = replace(later, anew=True)
            continue
        if end > start:
            instead = watch.metrics_offset if watch.anew else None
            history.metrics.add(key, news.metrics.splitlines(), (start, end), instead=instead)
        if news.more_metrics:
            behind[key] = replace(later, metrics_offset=end, anew=False)
    return behind


def clock_words(clock: float | None, began: float, ended: float) -> str:
    """Return a warning if a site's `clock` differs from this machine's, else "".

    Both in epoch seconds; None: the site did not report its clock.
    """
    if clock is None:
        return ""
    ahead, behind = began - clock, clock - ended
    if max(ahead, behind) <= _TOLERATED:
        return ""
    how = f"{length(ahead)} ahead of" if ahead > behind else f"{length(behind)} behind"
    return (
        f"This machine's clock is {how} the site's, so durations and ages shown here are wrong. "
        "Synchronize it with a time server."
    )
