"""Rebuilding a lost history from the runs' folders on a site."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from lumitui.app.explain.words import count, length
from lumitui.app.follow.refresh import Watcher, refresh
from lumitui.app.follow.transitions import watch_of
from lumitui.app.history.history import History
from lumitui.app.history.rows.run_record import run_of
from lumitui.app.history.run import Run
from lumitui.remote.connect import Connection
from lumitui.remote.scheduler import run_folders
from lumitui.remote.scheduler.run_files import poll_files
from lumitui.remote.scheduler.run_folders import RECORD_BYTES, RunFolder
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.run_folder import preparing_seconds
from lumitui.remote.transport.transport import Transport

Report = Callable[[str], None]
"""Called with the progress of the recovery."""
MOST_ROUNDS = 1000
"""Maximum number of requests for the metrics of 50 runs (4 GiB): a broken site may report more for
ever."""


@dataclass(frozen=True)
class PassedOver:
    """A folder from which no run could be rebuilt."""

    folder: str
    why: str


@dataclass(frozen=True)
class RecoveredRuns:
    """The rebuilt runs of a site."""

    roots: tuple[str, ...]
    """The work roots that were searched."""
    rebuilt: tuple[Run, ...]
    known: int
    """Number of folders whose runs the history already has completely; they stay unchanged."""
    passed: tuple[PassedOver, ...]
    warnings: tuple[str, ...] = ()


def recover(watcher: Watcher, site_name: str, account: str, report: Report) -> RecoveredRuns:
    """Rebuild the runs in a site's folders that the history lacks or cannot read.

    Without `account`, lumitui searches the work roots of all the user's accounts. A refresh then
    updates the states of the rebuilt runs.

    Raises:
        InputError: the site does not exist, or its work root needs an account and `account` is
            missing or invalid.
        HistoryError: the history cannot be written.
    """
    site = watcher.sites.load(site_name)
    outcome = rebuild(watcher.connection(site_name), site, account, watcher.history, report)
    then = ", querying their states" if outcome.rebuilt else ""
    report(f"rebuilt {count(len(outcome.rebuilt), 'run')}{then}")
    warnings = refresh(watcher, site_name).warnings if outcome.rebuilt else ()
    rebuilt = tuple(watcher.history.get(run.id) for run in outcome.rebuilt)
    return replace(outcome, rebuilt=rebuilt, warnings=(*outcome.warnings, *warnings))


def adopt_sent(connection: Connection, site_name: str, folder: str, history: History) -> Run | None:
    """Write another laptop's run to `history`; None if that laptop may still be sending it."""
    for entry in run_folders.read_folders(connection.transport, [folder]):
        try:
            run = folder_run(entry, site_name)
        except ValueError:
            continue
        history.adopt([run])
        return history.get(run.id)
    return None


def rebuild(
    connection: Connection, site: Site, account: str, history: History, report: Report
) -> RecoveredRuns:
    """Write a site's missing runs to `history`; their states are unknown until a refresh."""
    transport = connection.transport
    roots, present, rebuilt, passed, warnings = [], 0, list[Run](), list[PassedOver](), list[str]()
    known = {run.brief.account for run in history.page(limit=1000, site=site.name)}
    for work in work_roots(connection, site, [account] if account else [], known):
        paths = run_folders.list_folders(transport, work)
        if paths is None:
            warnings.append(f"There is no readable folder {work}.")
            continue
        roots.append(work)
        have = history.whole_ids()
        new = [path for path in paths if path.rpartition("/")[2] not in have]
        present += len(paths) - len(new)
        for done in range(0, len(new), run_folders.PAGE):
            page = new[done : done + run_folders.PAGE]
            report(f"reading run folders: {done:,} of {len(new):,} in {work}")
            runs = []
            for folder in run_folders.read_folders(transport, page):
                try:
                    runs.append(folder_run(folder, site.name))
                except ValueError as error:
                    passed.append(PassedOver(folder.path, str(error)))
            added = history.adopt(runs)
            fetch_metrics(transport, added, history)
            rebuilt += added
    rebuilt.sort(key=lambda run: run.created)
    return RecoveredRuns(tuple(roots), tuple(rebuilt), present, tuple(passed), tuple(warnings))


def fetch_metrics(transport: Transport, runs: Sequence[Run], history: History) -> None:
    """Get all metrics of `runs`: a poll gets only a part, and none after a run's end."""
    rest = [run for run in runs if run.job_id is not None]
    for _ in range(MOST_ROUNDS):
        if not rest:
            return
        watches = [replace(watch_of(run), has_binding=True) for run in rest]
        by_run = poll_files(transport, watches)
        more = []
        for run in rest:
            files = by_run[run.id]
            end = run.metrics_offset + files.metrics_skipped + len(files.metrics)
            if end > run.metrics_offset:
                span = (run.metrics_offset, end)
                history.metrics.add(run.id, files.metrics.splitlines(), span)
            # Not for every answer with new lines: a training job writes more during the request.
            if files.more_metrics:
                more.append(replace(run, metrics_offset=end))
        rest = more


def work_roots(
    connection: Connection,
    site: Site,
    accounts: Sequence[str],
    known: Collection[str] = (),
    user: str = "",
) -> list[str]:
    """Return the folders of a user's projects at a site.

    By default, these are of the `known` accounts and of those that the site lists.

    Raises:
        InputError: one of `accounts` is invalid, or there is none.
    """
    pattern = site.account.pattern
    if wrong := [name for name in accounts if not re.match(pattern, name)]:
        raise InputError(
            f"{wrong[0]!r} is not an account at {site.name}.", f"Use one that matches {pattern}."
        )
    if "{account}" not in site.work_root:
        return [connection.work_root(site, "", user)]
    if not accounts:
        listed = run_folders.list_accounts(connection.transport, pattern)
        accounts = sorted(name for name in {*known, *listed} if re.match(pattern, name))
    if not accounts:
        raise InputError(
            f"{site.name} keeps runs by account, but lists no account of yours.",
            "Pass one: --account PROJECT.",
        )
    return list(dict.fromkeys(connection.work_root(site, name, user) for name in accounts))


def folder_run(folder: RunFolder, site: str | None) -> Run:
    """Return the run of `folder`, of `site` if given; ValueError with the reason if it has none."""
    if folder.record is None:
        job = f"; its job was {folder.job_id}" if folder.job_id else ""
        raise ValueError(f"it has no record of a run{job}")
    if len(folder.record) >= RECORD_BYTES:
        raise ValueError(f"its record has more than {RECORD_BYTES} bytes")
    try:
        run = run_of(folder.record, folder.path)
    except ValueError as error:
        raise ValueError(f"its record cannot be read: {error}") from error
    if site is not None and run.site != site:
        raise ValueError(f"its site is {run.site!r}: `lumitui history --recover {run.site}`")
    # Another laptop may still be creating a younger folder.
    making = preparing_seconds(copies_checkpoints=bool(run.resumed_from))
    young = folder.age is None or folder.age < making
    if not folder.locked and folder.job_id is None and young:
        raise ValueError(f"lumitui may still be sending it; try again in {length(making)}")
    return replace(run, job_id=folder.job_id)
