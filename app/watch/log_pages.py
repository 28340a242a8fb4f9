"""Any part of a run's log, however long it is: pages from the site."""

from collections.abc import Sequence
from dataclasses import dataclass

from lumitui.app.watch.follow_log import log_path
from lumitui.app.watch.refresh import Watcher
from lumitui.remote.errors import RefusedError
from lumitui.remote.scheduler import log_search, run_log
from lumitui.remote.scheduler.log_search import Match, Sought
from lumitui.remote.scheduler.run_log import BLOCK, Page

LAST_BYTES = 4 * BLOCK
"""Read of the end of a log that is not followed."""


@dataclass(frozen=True)
class Found:
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

    def find(
        self, run_id: str, attempt: int | None, sought: Sought, at: int, *, forward: bool
    ) -> Found:
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
            raise RefusedError(f"{run.id} has no log yet.", "It appears when the job starts.")
        return found_of(matches, at, forward=forward)


def found_of(matches: list[Match], at: int, *, forward: bool) -> Found:
    """Return what is known after a search: more matches than MOST are cut off."""
    whole = len(matches) < log_search.MOST
    if forward:
        return Found(matches, at, None if whole else matches[-1].offset + 1)
    return Found(matches, 0 if whole else matches[0].offset, at)
