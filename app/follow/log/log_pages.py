"""Any part of a run's log, however long it is: from the site, or as it is kept on the laptop."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lumitui.app.follow.log.log_follower import LogBegan, LogEvent, LogGrew, log_path
from lumitui.app.follow.log.log_store import MOST_OF_RUN, KeptLogs
from lumitui.app.follow.refresh import Watcher
from lumitui.app.history.run import Run
from lumitui.remote.scheduler import log_search, run_log
from lumitui.remote.scheduler.log_search import Match, Sought
from lumitui.remote.scheduler.run_log import LOG_BLOCK, LogPage
from lumitui.remote.site.errors import LinkError, RefusedError

LAST_BYTES = 4 * LOG_BLOCK
"""Read of the end of a log that is not followed."""


@dataclass(frozen=True)
class LogMatches:
    """What a search found, and the part of the log in which there is nothing else."""

    matches: Sequence[Match]
    first: int
    last: int | None
    """Behind its last byte; None: to the end of the log."""


@dataclass(frozen=True)
class KeptPage(LogPage):
    """A part of a log as it is kept on the laptop: the site cannot be reached."""

    read: float
    """When the newest of it was read; epoch seconds."""


class LogPages:
    """The logs of all runs, page by page. Threads may share it."""

    def __init__(self, watcher: Watcher, folder: Path) -> None:
        """Read from the sites of `watcher`; what was read is kept below `folder`."""
        self._watcher = watcher
        self.kept = KeptLogs(folder)

    def keeping(
        self, run_id: str, attempt: int | None, events: Iterable[LogEvent]
    ) -> Iterator[LogEvent]:
        """Yield `events` of a followed log, and keep what comes; it begins in `attempt`."""
        for event in events:
            if isinstance(event, LogBegan):
                attempt = event.attempt
            elif isinstance(event, LogGrew) and attempt is not None:
                self.kept.keep(run_id, attempt, event.end - len(event.data), event.data)
            yield event

    def page(
        self, run_id: str, attempt: int | None, start: int, length: int = LOG_BLOCK
    ) -> LogPage:
        """Return the bytes of an attempt's log from `start` on, at most `length`; None is newest.

        One request at most, and none for what is kept on the laptop; what lies beyond the end of
        the log is left out.

        Raises:
            InputError: no such run.
            RefusedError: there is no such log, or it cannot be read.
            LinkError: the site cannot be reached.
        """
        run = self._watcher.history.get(run_id)
        number = attempt or run.attempt
        kept = self.kept.read(run.id, number, start, length)
        if len(kept) == length:
            return LogPage(start, kept, start + length)
        transport = self._watcher.connection(run.site).transport
        try:
            piece = run_log.read_page(transport, log_path(run, attempt), start, length)
        except LinkError:
            if kept:
                return LogPage(start, kept, start + len(kept))
            raise
        if piece is None:
            raise _no_log(run)
        self.kept.keep(run.id, number, piece.start, piece.data)
        data = piece.data[start - piece.start :][:length]
        return LogPage(start, data, piece.size)

    def end(self, run_id: str, attempt: int | None, last: int = LAST_BYTES) -> LogPage:
        """Return the last bytes of an attempt's log, at most `last`; None is the newest attempt.

        Without a link it is a KeptPage, if anything of the log is kept.

        Raises:
            InputError: no such run.
            RefusedError: there is no such log, or it cannot be read.
            LinkError: the site cannot be reached.
        """
        run = self._watcher.history.get(run_id)
        transport = self._watcher.connection(run.site).transport
        try:
            piece = run_log.read_end(transport, log_path(run, attempt), last)
        except LinkError:
            if (page := self.kept_end(run, attempt, last)) is not None:
                return page
            raise
        if piece is None:
            raise _no_log(run)
        start, data = piece
        self.kept.keep(run.id, attempt or run.attempt, start, data)
        return LogPage(start, data, start + len(data))

    def kept_end(self, run: Run, attempt: int | None, last: int = LAST_BYTES) -> KeptPage | None:
        """Return the last bytes that are kept of a log, at most `last`; None: none are kept."""
        piece = self.kept.last(run.id, attempt or run.attempt, last)
        if piece is None:
            return None
        start, data, read = piece
        return KeptPage(start, data, start + len(data), read)

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
        try:
            matches = log_search.find(transport, path, sought, at, forward=forward)
        except LinkError:
            page = self.kept_end(run, attempt, MOST_OF_RUN)
            if page is None:
                raise
            matches = _find_kept(page, sought, at, forward=forward)
        if matches is None:
            raise _no_log(run)
        whole = len(matches) < log_search.MOST_MATCHES  # more are cut off
        if forward:
            return LogMatches(matches, at, None if whole else matches[-1].offset + 1)
        return LogMatches(matches, 0 if whole else matches[0].offset, at)


def _no_log(run: Run) -> RefusedError:
    return RefusedError(f"{run.id} has no log yet.", "It appears when the job starts.")


def _find_kept(page: LogPage, sought: Sought, at: int, *, forward: bool) -> list[Match]:
    """Return what log_search.find would, of the part of the log in `page`."""
    words = sought.words if sought.is_pattern else re.escape(sought.words)
    pattern = re.compile(words.encode(), re.IGNORECASE if sought.any_case else 0)
    matches, offset = [], page.start
    for line in page.data.split(b"\n"):
        if (offset >= at) == forward and pattern.search(line):
            matches.append(Match(offset, line[: log_search.WIDTH]))
        offset += len(line) + 1
    return matches[: log_search.MOST_MATCHES] if forward else matches[-log_search.MOST_MATCHES :]
