"""Any part of a run's log, however long it is."""

from collections.abc import Sequence
from dataclasses import dataclass

from lumitui.app.follow.log_follower import log_path, read_end
from lumitui.app.follow.refresh import Watcher
from lumitui.app.history.run import Run
from lumitui.remote.scheduler import log_search, run_log
from lumitui.remote.scheduler.log_search import Match, Sought
from lumitui.remote.scheduler.run_log import LOG_BLOCK, LogPage
from lumitui.remote.site.errors import RefusedError

LAST_BYTES = 4 * LOG_BLOCK
"""Read of the end of a log that is not followed."""


@dataclass(frozen=True)
class LogMatches:
    """What a search found, and the part of the log in which there is nothing else."""

    matches: Sequence[Match]
    first: int
    last: int | None
    """Behind its last byte; None: to the end of the log."""


class LogPages:
    """The logs of all runs, page by page. Threads may share it."""

    def __init__(self, watcher: Watcher) -> None:
        """Read from the sites of `watcher`."""
        self._watcher = watcher

    def page(
        self, run_id: str, attempt: int | None, start: int, length: int = LOG_BLOCK
    ) -> LogPage:
        """Return the bytes of an attempt's log from `start` on, at most `length`; None is newest.

        It costs one request; what lies beyond the end of the log is left out.

        Raises:
            InputError: no such run.
            RefusedError: there is no such log, or it cannot be read.
            LinkError: the site cannot be reached.
        """
        run = self._watcher.history.get(run_id)
        transport = self._watcher.connection(run.site).transport
        piece = run_log.read_page(transport, log_path(run, attempt), start, length)
        if piece is None:
            raise _no_log(run)
        data = piece.data[start - piece.start :][:length]
        return LogPage(start, data, piece.size)

    def end(self, run_id: str, attempt: int | None, last: int = LAST_BYTES) -> LogPage:
        """Return the last bytes of an attempt's log, at most `last`; None is the newest attempt.

        Raises:
            InputError: no such run.
            RefusedError: there is no such log, or it cannot be read.
            LinkError: the site cannot be reached.
        """
        run = self._watcher.history.get(run_id)
        transport = self._watcher.connection(run.site).transport
        start, data = read_end(transport, run, attempt, last)
        return LogPage(start, data, start + len(data))

    def find(
        self, run_id: str, attempt: int | None, sought: Sought, at: int, *, forward: bool
    ) -> LogMatches:
        """Return where `sought` is in an attempt's log: the nearest places behind or before `at`.

        Raises:
            InputError: no such run.
            RefusedError: there is no such log, or it cannot be searched.
            LinkError: the site cannot be reached.
        """
        run = self._watcher.history.get(run_id)
        transport = self._watcher.connection(run.site).transport
        path = log_path(run, attempt)
        matches = log_search.find(transport, path, sought, at, forward=forward)
        if matches is None:
            raise _no_log(run)
        whole = len(matches) < log_search.MOST_MATCHES  # more are cut off
        if forward:
            return LogMatches(matches, at, None if whole else matches[-1].offset + 1)
        return LogMatches(matches, 0 if whole else matches[0].offset, at)


def _no_log(run: Run) -> RefusedError:
    return RefusedError(f"{run.id} has no log yet.", "It appears when the job starts.")
