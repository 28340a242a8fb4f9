"""Any part of a run's log, however long it is: pages from the site."""

from lumitui.app.watch.follow_log import log_path
from lumitui.app.watch.refresh import Watcher
from lumitui.remote.errors import RefusedError
from lumitui.remote.scheduler import run_log
from lumitui.remote.scheduler.run_log import BLOCK, Page

LAST_BYTES = 4 * BLOCK
"""Read of the end of a log that is not followed."""


class LogPages:
    """The logs of all runs, page by page. Threads may share it."""

    def __init__(self, watcher: Watcher) -> None:
        """Read from the sites of `watcher`."""
        self._watcher = watcher

    def page(self, run_id: str, attempt: int | None, start: int, length: int = BLOCK) -> Page:
        """Return the bytes of an attempt's log from `start` on, at most `length`; None is newest.

        One request at most; what lies beyond the end of the log is left out.

        Raises:
            InputError: no such run.
            RefusedError: there is no such log, or it cannot be read.
            LinkError: the site cannot be reached.
        """
        run = self._watcher.history.get(run_id)
        transport = self._watcher.connection(run.site).transport
        found = run_log.read_page(transport, log_path(run, attempt), start, length)
        if found is None:
            raise RefusedError(f"{run.id} has no log yet.", "It appears when the job starts.")
        data = found.data[start - found.start :][:length]
        return Page(start, data, found.size)

    def end(self, run_id: str, attempt: int | None, last: int = LAST_BYTES) -> Page:
        """Return the last bytes of an attempt's log, at most `last`; None is the newest attempt.

        Raises:
            InputError: no such run.
            RefusedError: there is no such log, or it cannot be read.
            LinkError: the site cannot be reached.
        """
        run = self._watcher.history.get(run_id)
        transport = self._watcher.connection(run.site).transport
        found = run_log.read_end(transport, log_path(run, attempt), last)
        if found is None:
            raise RefusedError(f"{run.id} has no log yet.", "It appears when the job starts.")
        start, data = found
        return Page(start, data, start + len(data))
