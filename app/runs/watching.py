"""Following what was sent: refreshes, logs, cancels."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from lumitui.app.runs.core import RunsCore
from lumitui.remote.site.states import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lumitui.app.follow.log_follower import LogEvent
    from lumitui.app.follow.log_pages import LogPages
    from lumitui.app.follow.refresh import Refreshed, Warn
    from lumitui.app.follow.sites.cluster_overviews import Clusters
    from lumitui.app.follow.wait import Stop
    from lumitui.app.history.run import Run
    from lumitui.remote.transport.footprint import Footprint
    from lumitui.remote.transport.sessions import ForwardedPort


class Watching(RunsCore):
    """Refresh, cancel, wait, and read logs."""

    def refresh(self, site_name: str | None = None, *, attended: bool = True) -> Refreshed:
        """Ask every site with unfinished runs, or the named one, and write what is new to history.

        A site that cannot be reached is a warning, not an error: its runs stay as they were.
        Not `attended`, no login asks a question.

        Raises:
            InputError: there is no such site.
        """
        from lumitui.app.follow.refresh import refresh

        return refresh(self._watcher, site_name, attended=attended)

    def footprint(self, site_name: str) -> Footprint:
        """Return what this program has cost a site so far; no site is asked."""
        return self._connections.footprint(site_name)

    def silence(self, site_name: str) -> float:
        """Return the seconds since a site was heard; infinity without a connection, asks nothing.

        0.0 always: its connection cannot be lost.
        """
        return self._connections.silence(site_name)

    def cancel(self, run_id: str, *, warn: Warn = lambda words: None) -> Run:
        """Cancel a run's job and return the run as it is then.

        `warn` is called where nothing was cancelled, or the site cannot be polled afterwards.

        Raises:
            InputError: it has ended, or is still being sent.
            OutcomeUnknown: the job may go on, or start again; or nobody knows how it ended.
            RefusedError, LinkError: the scheduler would not, or cannot be reached.
        """
        from lumitui.app.follow.cancel import cancel

        return cancel(self._watcher, self.history.get(run_id), warn)

    @cached_property
    def pages(self) -> LogPages:
        """Any part of a run's log."""
        from lumitui.app.follow.log_pages import LogPages

        return LogPages(self._watcher)

    def read_log(
        self, run_id: str, *, attempt: int | None = None, last: int = 65536
    ) -> tuple[int, bytes]:
        """Return the offset of at most the `last` bytes of a log, and the bytes.

        Raises:
            InputError: no such run.
            RefusedError: there is no such log.
            LinkError: the site cannot be reached.
        """
        page = self.pages.end(run_id, attempt, last)
        return page.start, page.data

    def follow(
        self, run_id: str, *, last: int | None = None, stop: Stop = lambda: False
    ) -> Iterator[LogEvent]:
        """Yield a run's log from its `last` bytes on until the run has ended.

        The site is refreshed now and then.

        Raises:
            InputError: no such run.
            AnswerNeeded: the link was lost, and a new one needs a user.
            LinkError: the site cannot be reached, or the link was cut again and again.
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
        """Yield a run's log for a screen that has `offset` bytes of an attempt's log already.

        It costs one stream; the app's own refreshes bring the state of the run. A link that is
        lost is tried again for as long as the screen is there.

        Raises:
            InputError: no such run.
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
        """Return the run when it has ended, or as it is after `timeout` seconds.

        Raises:
            InputError: no such run.
            AnswerNeeded: the link was lost, and a new one needs a user; the job continues.
        """
        from lumitui.app.follow.wait import wait

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
        """Return what runs `command` (empty: a shell) inside a running job in this terminal.

        It has the container, the variables and the folder of the run, on one node: `node`, or the
        one of `rank`, or the first. What is returned may be called once; it gives the exit status,
        and raises a LinkError if the link is lost (the job continues).

        Raises:
            InputError: no such run or rank, or it is not running.
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
        """Return a port of this machine (`here`; 0: any) that leads to one of a running job's node.

        It works until it is closed; the connection to the site carries it.

        Raises:
            InputError: as `prepare_shell`; or the port of this machine is in use.
            RefusedError, LinkError: as `prepare_shell`.
        """
        from lumitui.app.follow.inside import reach_port
        from lumitui.remote.transport.sessions import ForwardedPort

        run = self._started(run_id)
        site = self.sites.load(run.site)
        connect = reach_port(self._watcher, site, run, port, node=node, rank=rank)
        return ForwardedPort(port if here is None else here, connect)

    def _started(self, run_id: str) -> Run:
        """Return a run; its site is asked if the run was waiting when it was last heard of."""
        run = self.history.get(run_id)
        if run.state is not State.RUNNING and not run.state.is_final:
            failed = self.refresh(run.site).failed
            if run.site in failed:
                raise failed[run.site]
            run = self.history.get(run.id)
        return run

    @cached_property
    def clusters(self) -> Clusters:
        """The sites as they are now: nodes, queue, reservations, budget."""
        from lumitui.app.follow.sites.cluster_overviews import Clusters

        return Clusters(self.history, self.sites, self._watcher.connection, self._budgets.keep)
