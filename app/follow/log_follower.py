"""A run's log: any part of it, its end, or its events until the run has ended."""

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass

from lumitui.app.follow import transitions
from lumitui.app.follow.refresh import Warn, Watcher, refresh
from lumitui.app.follow.transitions import nobody_knows
from lumitui.app.history.run import Run
from lumitui.remote.scheduler import log_search, run_log
from lumitui.remote.scheduler.log_search import Match, Sought
from lumitui.remote.scheduler.run_log import LOG_BLOCK, LogPage
from lumitui.remote.site.errors import AnswerNeeded, LinkError, RefusedError
from lumitui.remote.site.run_folder import attempt_log
from lumitui.remote.ssh.prompts import attendance, is_attended
from lumitui.remote.transport.transport import Transport

Stop = Callable[[], bool]
"""Called at least every 0.5 s; True ends the current operation."""


def wait(watcher: Watcher, run: Run, *, timeout: float | None, stop: Stop, warn: Warn) -> Run:
    """Return the run once it has ended, or its state after `timeout` seconds or `stop()`.

    A queued run that can never start is returned at once.

    Its state is `unknown` when neither the queue nor accounting has known its job for
    ACCOUNTING_SECONDS, and at a last refresh. A site that cannot be asked is waited for; `warn`
    is called when the reason changes.

    Raises:
        AnswerNeeded: the link was lost, and a new one needs a user; the job continues.
    """
    pause = watcher.sites.load(run.site).poll_seconds
    deadline = None if timeout is None else time.monotonic() + timeout
    attended = True
    warned: tuple[str, ...] = ()
    lost: float | None = None
    while True:
        news = refresh(watcher, run.site, attended=attended)
        if news.unanswered:
            raise news.unanswered[0]
        for words in news.warnings:
            if words not in warned:
                warn(words)
        warned = news.warnings
        run = watcher.history.get(run.id)
        now = time.monotonic()
        lost = (lost or now) if transitions.nobody_knows(run) else None
        given_up = lost is not None and now - lost > transitions.ACCOUNTING_SECONDS
        rest = None if deadline is None else deadline - now
        over = run.state.is_final or run.never_starts
        if over or stop() or (rest is not None and rest <= 0):
            return run
        if given_up and attended:
            return run
        # Before it is given up, accounting is asked once more, as a user would.
        attended = given_up
        sleep_unless(pause if rest is None else min(pause, rest), stop)


def sleep_unless(seconds: float, stop: Stop) -> None:
    """Sleep, but wake when `stop()` is true."""
    deadline = time.monotonic() + seconds
    while not stop() and (rest := deadline - time.monotonic()) > 0:
        time.sleep(min(rest, 0.2))


FIRST_BYTES = 262_144
"""Bytes read when a screen opens a log; earlier ones stay on the site."""
TRIES = 8
"""Maximum number of consecutive cuts without an answer before following gives up."""
SILENCE = 8.0
"""Seconds of silence after which a reader is informed; the site is queried after 5."""
LAST_WORDS = 1.5
"""Seconds of silence after the end of an attempt before its log counts as complete."""


@dataclass(frozen=True)
class LogBegan:
    """An attempt's log, from its first byte or from near its end."""

    attempt: int
    start: int
    """Offset of the next byte."""


@dataclass(frozen=True)
class LogGrew:
    """More of the log.

    `data` may be empty as the first answer, and after LogWaits and LogLost: the log is followed.
    """

    data: bytes
    end: int
    """Offset after `data`."""


@dataclass(frozen=True)
class LogWaits:
    """The link was lost, and a new one needs a user; lumitui sends nothing meanwhile."""

    words: str


@dataclass(frozen=True)
class LogHeard:
    """The site was heard, though the log has not grown. Only where a link can be lost."""

    at: float
    """Epoch seconds."""


@dataclass(frozen=True)
class LogLost:
    """The site does not answer. lumitui retries, and keeps the lines it has read."""

    since: float
    """Epoch seconds of its last answer, or of the first unanswered request."""
    words: str
    """The error; "" while the connection is only silent."""


@dataclass(frozen=True)
class LogEnded:
    """The log is complete."""

    words: str


LogEvent = LogBegan | LogGrew | LogHeard | LogLost | LogWaits | LogEnded


def log_path(run: Run, attempt: int | None = None) -> str:
    """Return the path of an attempt's log on the site; None means the newest."""
    return f"{run.folder}/{attempt_log(attempt or run.attempt)}"


def read_end(transport: Transport, run: Run, attempt: int | None, last: int) -> tuple[int, bytes]:
    """Return the offset of at most the `last` bytes of a log, and the bytes.

    Raises:
        RefusedError: there is no such log.
        LinkError: the site could not be asked.
    """
    if _never_logged(run):
        raise RefusedError(f"{run.id} has no log: it is {run.state}.", "No job could write one.")
    end = run_log.read_end(transport, log_path(run, attempt), last)
    if end is None:
        raise RefusedError(f"{run.id} has no log yet.", "It appears when the job starts.")
    return end


def follow(watcher: Watcher, run: Run, *, last: int, stop: Stop) -> Iterator[LogEvent]:
    """Yield a run's log from its `last` bytes on; the site is refreshed now and then.

    A later attempt's log is yielded from its first byte.

    Raises:
        AnswerNeeded: the link was lost, and a new one needs a user.
        LinkError: the site cannot be reached, or the link was cut again and again.
    """
    if ended := _never_logged(run):
        return iter((ended,))
    return LogFollower(
        watcher.connection(run.site).transport,
        stop,
        run=lambda: watcher.history.get(run.id),
        last=last,
        refresh=lambda: refresh(watcher, run.site, attended=False),
        pause=watcher.sites.load(run.site).poll_seconds,
    ).events()


def show(
    watcher: Watcher, run: Run, *, attempt: int | None, offset: int, stop: Stop
) -> Iterator[LogEvent]:
    """Yield a run's log for a screen that has `offset` bytes of an attempt's log already.

    It costs one stream: the state of the run comes from history, which the app's own refreshes
    keep fresh. A lost link is tried again for as long as the screen is there; one that only a
    user can restore is waited for without traffic.
    """
    if ended := _never_logged(run):
        return iter((ended,))
    connection = watcher.connection(run.site)
    return LogFollower(
        connection.transport,
        stop,
        run=lambda: watcher.history.get(run.id),
        last=FIRST_BYTES,
        attempt=attempt,
        offset=offset,
        waits=True,
        silence=connection.silence,
    ).events()


def _never_logged(run: Run) -> LogEnded | None:
    """Return the end of following a run that never had a job, without querying the site."""
    if run.job_id is None and run.state.is_final:
        return LogEnded(f"{run.state}: there is no log")
    return None


@dataclass
class LogFollower:
    """One reader of a run's log: its position, and its source for the run's end."""

    transport: Transport
    stop: Stop
    _: KW_ONLY
    run: Callable[[], Run]
    """Returns the run as history has it now."""
    last: int
    """Bytes to begin the first log with."""
    attempt: int | None = None
    """The attempt whose log the reader already has, or None."""
    offset: int = 0
    """Bytes of that log that the reader has."""
    refresh: Callable[[], object] = lambda: None
    """Queries the site about the run; does nothing if others keep the history up to date."""
    pause: float = 1.0
    """Seconds between two refreshes."""
    waits: bool = False
    """Whether to wait without limit for a link, even one that only a user can restore, and for a
    job that is currently unknown. Such a reader begins the log of a later attempt near its end;
    others read all of it."""
    silence: Callable[[], float] = lambda: 0.0
    """Returns the seconds since the site was heard last, infinity without a connection."""

    def __post_init__(self) -> None:
        """No request so far."""
        self._attended = True  # a user opened the log; what comes later is the clock's
        self._waits_for = ""
        self._cuts = 0
        self._answered = False  # the site, to this reader
        self._lost: LogLost | None = None
        self._heard = time.time()
        self._next_refresh = 0.0
        self._quiet_since: float | None = None  # silence counts once the attempt is over

    def events(self) -> Iterator[LogEvent]:
        """Yield the log's events until the run has ended, or until `stop()`.

        A cut link is resumed at its byte, with back-off. A requeued run continues with the log of
        its next attempt.

        Raises:
            AnswerNeeded: the link was lost, a new one needs a user, and the reader does not wait.
            LinkError: the site cannot be reached, or the link was cut again and again, and the
                reader does not wait.
        """
        while not self.stop():
            run = self.run()
            if ended := _never_logged(run):
                yield ended
                return
            try:
                if run.attempt != self.attempt:
                    yield from self._begin(run)
                over = yield from self._stream(run)
            except LinkError as error:
                yield from self._cut(error)
                continue
            now = self.run()
            if over and now.attempt == self.attempt:
                yield LogEnded(f"ended: {now.state}")
                return

    def _begin(self, run: Run) -> Iterator[LogEvent]:
        """Begin the log of the attempt that `run` is at."""
        last = self.last if self.attempt is None or self.waits else None
        start, data = 0, b""
        if last is not None:
            with attendance(self._attended and is_attended()):
                end = run_log.read_end(self.transport, log_path(run), last)
            start, data = end or (0, b"")  # no log yet: the stream waits for it
        self.attempt, self.offset = run.attempt, start + len(data)
        self._quiet_since, self._waits_for, self._answered = None, "", True
        yield LogBegan(run.attempt, start)
        if data:
            yield LogGrew(data, self.offset)

    def _stream(self, run: Run) -> Generator[LogEvent, None, bool]:
        """Yield events; return whether the attempt is over and its log complete."""
        chunks = run_log.stream(self.transport, log_path(run, self.attempt), self.offset, self.stop)
        # A connection that the first chunk needs is made now.
        with attendance(self._attended and is_attended()):
            chunk = next(chunks, None)
        first = True  # of a stream: silence counts from its answer on
        while chunk is not None:
            self._attended, self._cuts = False, 0
            silent = self.silence()
            if not chunk and silent > SILENCE:
                yield from self._lose(time.time() - silent, "")
            elif chunk or self._waits_for or self._lost or not self._answered:
                self._waits_for, self._lost, self._heard = "", None, time.time()
                self._answered = True
                self.offset += len(chunk)
                yield LogGrew(chunk, self.offset)
            elif silent and time.time() - silent - self._heard > 1.0:
                self._heard = time.time() - silent
                yield LogHeard(self._heard)
            if self._is_whole(time.monotonic(), silent=not (chunk or first)):
                return True
            chunk, first = next(chunks, None), False
        sleep_unless(1.0, self.stop)  # it ended by itself: not again at once
        return False

    def _is_whole(self, now: float, *, silent: bool) -> bool:
        """Return whether the attempt is over and the log has been silent since."""
        if self._quiet_since is None:
            if now >= self._next_refresh:
                self._next_refresh = now + self.pause
                self.refresh()
                run = self.run()
                # A job that has left the queue writes no more, however it ended; but a later poll
                # may find it there again, with another attempt.
                lost = nobody_knows(run) and not self.waits
                if run.state.is_final or lost or run.attempt != self.attempt:
                    self._quiet_since = now
        elif not silent:
            self._quiet_since = now
        return self._quiet_since is not None and now - self._quiet_since > LAST_WORDS

    def _cut(self, error: LinkError) -> Iterator[LogEvent]:
        """Pause after a cut link as long as retrying makes sense; else raise `error`."""
        self._attended = False
        if isinstance(error, AnswerNeeded):
            if not self.waits:
                raise error
            if str(error) != self._waits_for:
                self._waits_for = str(error)
                yield LogWaits(self._waits_for)
            sleep_unless(1.0, self.stop)
            return
        self._cuts += 1
        if not self.waits:
            if self._cuts > TRIES or self.attempt is None:
                raise error
            sleep_unless(min(2.0**self._cuts, 60.0), self.stop)
            return
        yield from self._lose(self._heard, error.message)
        away = math.isinf(self.silence())

        def stop() -> bool:
            """Return whether to stop pausing because another request restored the connection."""
            return self.stop() or (away and not math.isinf(self.silence()))

        sleep_unless(min(2.0 ** min(self._cuts, 6), 60.0), stop)

    def _lose(self, since: float, words: str) -> Iterator[LogEvent]:
        """Report that the site does not answer, once for each reason."""
        lost = LogLost(self._lost.since if self._lost else since, words)
        if self._lost is None or lost.words not in ("", self._lost.words):
            self._lost = lost
            yield lost


LAST_BYTES = 4 * LOG_BLOCK
"""Read of the end of a log that is not followed."""


@dataclass(frozen=True)
class LogMatches:
    """The result of a search, and the part of the log without further matches."""

    matches: Sequence[Match]
    first: int
    last: int | None
    """Offset after its last byte; None means the end of the log."""


class LogPages:
    """The logs of all runs, page by page. Threads may share it."""

    def __init__(self, watcher: Watcher) -> None:
        """Read from the sites of `watcher`."""
        self._watcher = watcher

    def page(
        self, run_id: str, attempt: int | None, start: int, length: int = LOG_BLOCK
    ) -> LogPage:
        """Return at most `length` bytes of an attempt's log from `start`; None is the newest.

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
        """Return the last bytes of an attempt's log, at most `last`; None means the newest attempt.

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
