"""Follows runs: refreshes, logs, cancels."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from lumitui.app.runs.core import RunsCore
from lumitui.remote.site.states import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lumitui.app.follow.log_follower import LogEvent, LogPages, Stop
    from lumitui.app.follow.refresh import Refreshed, Warn
    from lumitui.app.follow.sites.cluster_overviews import Clusters
    from lumitui.app.history.run import Run
    from lumitui.remote.transport.request_log import Footprint
    from lumitui.remote.transport.sessions import ForwardedPort


class Watching(RunsCore):
    """Refresh, cancel, wait and read logs."""

    def refresh(self, site_name: str | None = None, *, attended: bool = True) -> Refreshed:
        """Query each site with unfinished runs, or the named one, and update the history.

        If a site cannot be reached, a warning says so, and its runs stay unchanged. Unless
        `attended`, no login asks a question.

        Raises:
            InputError: there is no such site.
        """
        from lumitui.app.follow.refresh import refresh

        return refresh(self._watcher, site_name, attended=attended)

    def footprint(self, site_name: str) -> Footprint:
        """Return the load that this program has caused at a site so far."""
        return self._connections.footprint(site_name)

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
            AnswerNeeded: the connection was lost, and a new one needs an answer of the user.
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
    ) -> Run:
        """Wait until the run has ended, or for `timeout` seconds, and return it.

        Raises:
            InputError: there is no such run.
            AnswerNeeded: the connection was lost, and a new one needs an answer of the user; the
                job continues.
        """
        from lumitui.app.follow.log_follower import wait

        run = self.history.get(run_id)
        return wait(self._watcher, run, timeout=timeout, stop=stop, warn=warn)

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
            InputError: as `prepare_shell`, or the port of this machine is in use.
            RefusedError, LinkError: as `prepare_shell`.
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
