"""The base of the facade: history, profiles, connections, following, results, upkeep."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Self

from lumitui.app.history.history import History
from lumitui.remote.site.sites import Sites
from lumitui.remote.site.states import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lumitui.app.explain.proof.binding_proof import Verdict
    from lumitui.app.follow.ending import RaisingCode
    from lumitui.app.follow.left_secrets import LeftSecrets
    from lumitui.app.follow.log_follower import LogEvent, LogPages, Stop
    from lumitui.app.follow.recover import RecoveredRuns
    from lumitui.app.follow.refresh import Refreshed, Warn, Watcher
    from lumitui.app.follow.results.comparison import Comparisons
    from lumitui.app.follow.results.log_patterns import LogFigures
    from lumitui.app.follow.results.result_files import RunFileLists
    from lumitui.app.follow.results.summary import Figures
    from lumitui.app.follow.results.sweep import Sweeps
    from lumitui.app.follow.sites.cluster_overviews import Clusters
    from lumitui.app.follow.sites.inventory import Stocks
    from lumitui.app.history.metric_points import MetricPoint
    from lumitui.app.history.run import Run
    from lumitui.app.job.settings import Settings
    from lumitui.app.knowledge.failure.diagnosis import Diagnosis
    from lumitui.app.survey.inquiry.kept_budgets import KeptBudgets
    from lumitui.remote.connect import Connect, Connections
    from lumitui.remote.site.finding import Finding
    from lumitui.remote.ssh.prompts import Ask
    from lumitui.remote.transfer.results.fetch_files import FetchOutcome
    from lumitui.remote.transfer.snapshots.snapshot_store import Pruned
    from lumitui.remote.transport.request_log import Footprint, SiteRequest
    from lumitui.remote.transport.sessions import ForwardedPort
    from lumitui.remote.transport.transport import Transport


class RunsCore:
    """The history, profiles and connections of one user."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        ask: Ask = lambda question: None,
        connect: Connect | None = None,
    ) -> None:
        """Open the history; use no network until something needs it.

        Args:
            settings: the folders of history and profiles; None: those of the command line.
            ask: asks the user a login's question and returns the answer; None: they declined.
            connect: opens a connection to a site; None: over SSH, as its profile describes.

        Raises:
            HistoryError: the history cannot be opened.
        """
        if settings is None:
            from lumitui.app.job.settings import settings as own

            settings = own()
        self._settings = settings
        self.sites = Sites(settings.profiles, real_host=_real_host)
        self.history = History(settings.history)
        self._locks, self._hashes = settings.data / "sending", settings.data / "hashes"
        self._ask, self._connect = ask, connect
        self._made: Connections | None = None
        self._making = Lock()
        self._data = settings.data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close connections and history; jobs continue."""
        if self._made is not None:
            self._made.close()
        self.history.close()

    @property
    def _connections(self) -> Connections:
        from lumitui.remote.connect import Connections, connect

        with self._making:  # two threads must not log in twice
            if self._made is None:
                self._made = Connections(self._ask, self._connect or connect)
            return self._made

    @cached_property
    def _left_secrets(self) -> LeftSecrets:
        from lumitui.app.follow.left_secrets import LeftSecrets

        return LeftSecrets(self._data / "secrets-left")

    @cached_property
    def _watcher(self) -> Watcher:
        from lumitui.app.follow.refresh import Watcher

        return Watcher(self.history, self._locks, self.sites, self._connections, self._left_secrets)

    @cached_property
    def _budgets(self) -> KeptBudgets:
        from lumitui.app.survey.inquiry.kept_budgets import KeptBudgets

        return KeptBudgets(self._data / "budgets.json")

    def _transport(self, run: Run) -> Transport:
        return self._watcher.connection(run.site).transport

    def refresh(self, site_name: str | None = None, *, attended: bool = True) -> Refreshed:
        """Query each site with unfinished runs, or the named one, and update the history.

        If a site cannot be reached, a warning says so, and its runs stay unchanged. Unless
        `attended`, no login prompts the user.

        Raises:
            InputError: there is no such site.
        """
        from lumitui.app.follow.refresh import refresh

        return refresh(self._watcher, site_name, attended=attended)

    def footprint(self, site_name: str) -> Footprint:
        """Return the load that this program has caused at a site so far."""
        return self._connections.footprint(site_name)

    def login_address(self, site_name: str) -> str:
        """Return user and host of a site's login, from profile and ssh configuration; no request.

        Raises:
            InputError: there is no such site.
            LinkError: the ssh configuration cannot be used.
        """
        return self._connections.get(self.sites.load(site_name)).address()

    def silence(self, site_name: str) -> float:
        """Return the seconds since a site last answered; infinity without a connection.

        A connection that cannot be lost always has 0.0.
        """
        return self._connections.silence(site_name)

    def cancel(self, run_id: str, *, warn: Warn = lambda words: None) -> Run:
        """Cancel a run's job and return the updated run.

        Calls `warn` if there was nothing to cancel, or if the site cannot be polled afterwards.

        Raises:
            InputError: the run has ended, or is still being sent.
            OutcomeUnknown: the job may continue or restart, or its end is unknown.
            RefusedError, LinkError: the scheduler refused, or cannot be reached.
        """
        from lumitui.app.follow.cancel import cancel

        return cancel(self._watcher, self.history.get(run_id), warn)

    def left_waiting(self, run_id: str) -> list[str]:
        """Return the effect of a cancel on the runs that wait for this one.

        Returns a sentence for each run; queries no site.

        Raises:
            InputError: there is no such run.
        """
        from lumitui.app.explain.waiting import left_waiting

        return left_waiting(self.history.unfinished(), self.history.get(run_id))

    @cached_property
    def pages(self) -> LogPages:
        """Any part of a run's log."""
        from lumitui.app.follow.log_follower import LogPages

        return LogPages(self._watcher)

    def read_log(
        self, run_id: str, *, attempt: int | None = None, last: int = 65536
    ) -> tuple[int, bytes]:
        """Return at most the `last` bytes of a log, after their offset.

        Raises:
            InputError: there is no such run.
            RefusedError: there is no such log.
            LinkError: the site cannot be reached.
        """
        page = self.pages.end(run_id, attempt, last)
        return page.start, page.data

    def follow(
        self, run_id: str, *, last: int | None = None, stop: Stop = lambda: False
    ) -> Iterator[LogEvent]:
        """Yield a run's log from its `last` bytes on until the run has ended; refresh its site.

        Raises:
            InputError: there is no such run.
            AnswerNeeded: the connection was lost, and a new one needs the user's answer.
            LinkError: the site cannot be reached, or the connection was lost repeatedly.
        """
        from lumitui.app.follow.log_follower import FIRST_BYTES, follow

        last = FIRST_BYTES if last is None else last
        return follow(self._watcher, self.history.get(run_id), last=last, stop=stop)

    def show_log(
        self,
        run_id: str,
        *,
        attempt: int | None = None,
        offset: int = 0,
        stop: Stop = lambda: False,
    ) -> Iterator[LogEvent]:
        """Yield a run's log for a screen that already has `offset` bytes of an attempt's log.

        This uses one stream; the app's own refreshes update the run. It reconnects as long as the
        screen is open.

        Raises:
            InputError: there is no such run.
        """
        from lumitui.app.follow.log_follower import show

        run = self.history.get(run_id)
        return show(self._watcher, run, attempt=attempt, offset=offset, stop=stop)

    def wait(
        self,
        run_id: str,
        *,
        timeout: float | None = None,
        stop: Stop = lambda: False,
        warn: Warn = lambda words: None,
        moved_to: Callable[[Run], None] = lambda run: None,
    ) -> Run:
        """Wait until the run has ended, or for `timeout` seconds, and return it.

        `moved_to` is called when its state changes. A queued run that can never start
        (`never_starts`) is returned at once.

        Raises:
            InputError: there is no such run.
            AnswerNeeded: the connection was lost, and a new one needs the user's answer; the job
                continues.
        """
        from lumitui.app.follow.log_follower import wait

        run = self.history.get(run_id)
        return wait(self._watcher, run, timeout=timeout, stop=stop, warn=warn, moved_to=moved_to)

    def mark_told(self, run: Run) -> None:
        """Note that the user saw a run's end, so that the TUI does not report it again."""
        from lumitui.app.follow.notifications.last_seen import mark_told

        if run.state.is_final:
            mark_told(self._data / "last-seen", run.id)

    def prepare_shell(
        self,
        run_id: str,
        command: Sequence[str] = (),
        *,
        node: str = "",
        rank: int | None = None,
        terminal: bool = True,
    ) -> Callable[[], int]:
        """Return a function that runs `command`, by default a shell, inside a running job.

        The command has the run's container, variables and folder, on one node: `node`, that of
        `rank`, or the first. Call the function once; it returns the exit status, and raises a
        LinkError if the connection is lost (the job continues).

        Raises:
            InputError: there is no such run or rank, or the run is not running.
            RefusedError: the job has no such node.
            LinkError: the site cannot be reached.
        """
        from lumitui.app.follow.inside import prepare

        run = self._started(run_id)
        site = self.sites.load(run.site)
        return prepare(self._watcher, site, run, command, node=node, rank=rank, terminal=terminal)

    def forward(
        self,
        run_id: str,
        port: int,
        here: int | None = None,
        *,
        node: str = "",
        rank: int | None = None,
    ) -> ForwardedPort:
        """Forward a port of this machine (`here`; 0: any) to `port` on a running job's node.

        It uses the connection to the site, and works until it is closed.

        Raises:
            InputError: as for `prepare_shell`, or the port of this machine is in use.
            RefusedError, LinkError: as for `prepare_shell`.
        """
        from lumitui.app.follow.inside import reach_port
        from lumitui.remote.transport.sessions import ForwardedPort

        run = self._started(run_id)
        site = self.sites.load(run.site)
        connect = reach_port(self._watcher, site, run, port, node=node, rank=rank)
        return ForwardedPort(port if here is None else here, connect)

    def _started(self, run_id: str) -> Run:
        """Return a run; refresh its site if the run was not running yet."""
        run = self.history.get(run_id)
        if run.state is not State.RUNNING and not run.state.is_final:
            failed = self.refresh(run.site).failed
            if run.site in failed:
                raise failed[run.site]
            run = self.history.get(run.id)
        return run

    @cached_property
    def clusters(self) -> Clusters:
        """The current state of sites: nodes, queue, reservations, budget."""
        from lumitui.app.follow.sites.cluster_overviews import Clusters

        return Clusters(self.history, self.sites, self._watcher.connection, self._budgets.keep)

    def note(self, run_id: str, text: str) -> Run:
        """Save a note about a run; '' removes it. The run's tags stay.

        Raises:
            InputError: there is no such run, or the text is not one plain line.
        """
        from lumitui.app.history.listing.tags import with_text
        from lumitui.app.history.run import one_line

        run = self.history.get(run_id)
        note = one_line(with_text(run.note, text))
        self.history.update(run.id, note=note)
        return replace(run, note=note)

    def proof(self, run: Run) -> Verdict:
        """Return the proof of the run's binding."""
        from lumitui.app.explain.proof.binding_proof import verdict_of

        return verdict_of(run)

    def metrics(self, run_id: str) -> list[MetricPoint]:
        """Return the lines of a run's metrics.jsonl that `wait` and `refresh` have copied.

        Queries no site.

        Raises:
            InputError: there is no such run.
        """
        return self.history.metrics.of(self.history.get(run_id).id)

    def figures(self, run_id: str) -> Figures:
        """Return the figures from a run's metrics, without querying a site.

        Raises:
            InputError: there is no such run.
        """
        from lumitui.app.follow.results.summary import figures_of

        return figures_of(self.history, self.history.get(run_id).id)

    def log_figures(self, run_id: str, tail: bytes | None = None) -> LogFigures:
        """Return the values of the job file's `metrics:` in the run's log; may query its site.

        Given the end of the log as `tail`, it queries no site and stores nothing.

        Raises:
            InputError: there is no such run.
        """
        from lumitui.app.follow.results.log_patterns import keep_log_figures, log_figures_of

        run = self.history.get(run_id)
        if tail is not None:
            return log_figures_of(run, lambda last: (0, tail))
        read = partial(self.read_log, run_id)
        figures = log_figures_of(run, lambda last: read(last=last) if run.log_sizes else None)
        keep_log_figures(self.history, run, figures)
        return figures

    def why(self, run_id: str) -> list[Diagnosis]:
        """Return why a run failed, the likeliest cause first; reads its log from the site.

        The history keeps a short form of the first cause, for lists; not for a run without a job,
        for which the site's own message says more.

        Raises:
            InputError: there is no such run.
            LinkError: the site cannot be reached.
        """
        from lumitui.app.follow.ending import ending_of
        from lumitui.app.history.listing.state_filter import WENT_WRONG
        from lumitui.app.knowledge.failure.diagnose import diagnose
        from lumitui.app.launch.rules.outside_project import with_outside_advice

        run = self.history.get(run_id)
        causes = diagnose(ending_of(self._watcher, run))
        causes = with_outside_advice(causes, run.spec, Path(run.project), run.folder)
        had_job = run.state in WENT_WRONG and run.job_id
        # A log that was deleted since says less than what was found in it.
        found = had_job and causes and (causes[0].id != "unknown" or not run.cause)
        if found and causes[0].brief != run.cause:
            self.history.update(run.id, cause=causes[0].brief)
        return causes

    def raising_code(self, run_id: str, place: str) -> RaisingCode | None:
        """Return the code around a cause's `place` if the project still has it; query no site.

        Raises:
            InputError: there is no such run.
        """
        from lumitui.app.follow.ending import code_around

        run = self.history.get(run_id)
        return code_around(run, place, self.history.snapshots.manifest(run.site, run.root))

    def fetch(self, run_id: str, target: Path | str, patterns: Sequence[str] = ()) -> FetchOutcome:
        """Copy results to the folder `target`, verified by hash; skip files already equal there.

        Without `patterns`, this copies the files of the job file's or the trainer's `fetch:`, and
        the run's records. If a pattern without a slash matches nothing, all folders are searched.

        Raises:
            InputError: there is no such run, or a pattern leaves its folder.
            LinkError: the site cannot be reached.
        """
        from lumitui.app.follow.results.result_files import bring
        from lumitui.app.history.listing.tags import with_tags
        from lumitui.app.history.run import FETCHED_TAG

        run = self.history.get(run_id)
        with self._watcher.connection(run.site).files() as transport:
            sent = self.history.snapshots.manifest(run.site, run.root)
            brought = bring(run, transport, Path(target), patterns, sent)
        if run.state.is_final and not (patterns or brought.left):
            note = self.history.get(run.id).note  # it may be edited during the fetch
            self.history.update(run.id, note=with_tags(note, FETCHED_TAG))
        return brought

    @cached_property
    def sweeps(self) -> Sweeps:
        """Comparisons of the runs of grids."""
        from lumitui.app.follow.results.sweep import Sweeps

        return Sweeps(self.history)

    @cached_property
    def comparisons(self) -> Comparisons:
        """Comparisons of runs."""
        from lumitui.app.follow.results.comparison import Comparisons

        return Comparisons(self.history, self._transport)

    @cached_property
    def files(self) -> RunFileLists:
        """The files in runs' folders."""
        from lumitui.app.follow.results.result_files import RunFileLists

        return RunFileLists(self.history, self._transport)

    def prune(
        self, site_name: str, *, dry: bool = False, warn: Warn = lambda words: None
    ) -> dict[str, Pruned]:
        """Remove snapshots that no unfinished run on a site uses; return what was freed, by root.

        The newest snapshot of each project stays, since the next send builds on it. `dry` only
        counts.

        Raises:
            InputError: there is no such site.
            LinkError: the site cannot be reached.
        """
        from lumitui.remote.transfer.snapshots.snapshot_store import prune

        transport = self._watcher.connection(site_name).transport
        for words in self.refresh(site_name).warnings:
            warn(words)
        for words in self._left_secrets.sweep(self.history, site_name, transport).warnings:
            warn(words)
        return {
            root: prune(transport, f"{root}/code", keep, dry=dry)
            for root, keep in self.history.snapshots.in_use(site_name).items()
        }

    def recover(
        self, site_name: str, account: str = "", *, report: Warn = lambda words: None
    ) -> RecoveredRuns:
        """Rebuild runs that the history lacks from their folders on a site.

        Runs in the history stay unchanged. By default, this searches all accounts of the user.
        `report` is called with the progress, in words.

        Raises:
            InputError: there is no such site, or it needs an account and none is known.
            LinkError: the site cannot be reached.
        """
        from lumitui.app.follow.recover import recover

        return recover(self._watcher, site_name, account, report)

    def doctor(self, site_name: str, account: str = "") -> list[Finding]:
        """Check a site's profile against its live cluster.

        Raises:
            InputError: there is no such site.
            LinkError: the site cannot be reached.
        """
        from lumitui.remote.survey.doctor.cluster_checks import host_key
        from lumitui.remote.survey.doctor.examine import examine

        site = self.sites.load(site_name)
        connection = self._watcher.connection(site_name)
        work_root = partial(connection.work_root, site)
        found = examine(connection.transport, site, account, work_root, connection.notes)
        return [*found, *map(host_key, connection.key_doubts())]

    @cached_property
    def stocks(self) -> Stocks:
        """The staged data on sites."""
        from lumitui.app.follow.sites.inventory import Stocks

        return Stocks(self.history, self.sites, self._watcher.connection)

    def requests(self) -> dict[str, list[SiteRequest]]:
        """Return the recent requests to each site, the newest first."""
        return self._connections.requests()


def _real_host(host: str, config: str) -> str:
    from lumitui.remote.connect import real_host  # only for a system's pause; a verb starts sooner

    return real_host(host, config)
