"""A run's log: any part of it, its end, or its events until the run ends."""

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass

from lumitui.app.follow import transitions
from lumitui.app.follow.refresh import Warn, Watcher, refresh
from lumitui.app.follow.sites.poll_schedule import AGAIN_SECONDS, SOON
from lumitui.app.follow.transitions import nobody_knows
from lumitui.app.history.run import Run
from lumitui.remote.scheduler import log_search, run_log
from lumitui.remote.scheduler.log_search import Match, Sought
from lumitui.remote.scheduler.run_log import LOG_BLOCK, LogPage
from lumitui.remote.site.errors import AnswerNeeded, InputError, LinkError, LumiError, RefusedError
from lumitui.remote.site.run_folder import attempt_log
from lumitui.remote.ssh.prompts import attendance, is_attended
from lumitui.remote.transport.transport import Transport

Stop = Callable[[], bool]
"""Called at least every 0.5 s; returns True to end the current operation."""


def wait(
    watcher: Watcher, run: Run, *, timeout: float | None, stop: Stop, warn: Warn,
    moved_to: Callable[[Run], None] = lambda run: None,
) -> Run:  # fmt: skip
    """Return the run once it has ended, or its state after `timeout` seconds or `stop()`.

    A queued run that can never start is returned immediately. After a send, and when the job
    starts, the site is polled at the times in SOON, besides every `poll_seconds`.

    The state is `unknown` if neither the queue nor accounting has listed the job for
    ACCOUNTING_SECONDS and at a final refresh. If a site does not answer, the wait continues; `warn`
    is called when the reason changes, and `moved_to` when the run's state does.

    Raises:
        AnswerNeeded: the link was lost, and a new login needs a user; the job continues.
    """
    pause = watcher.sites.load(run.site).poll_seconds
    deadline = None if timeout is None else time.monotonic() + timeout
    attended = True
    warned: tuple[str, ...] = ()
    lost: float | None = None
    moved = time.monotonic() - max(0.0, time.time() - (run.submitted or run.created))
    while True:
        before = run
        news = refresh(watcher, run.site, attended=attended)
        if news.unanswered:
            raise news.unanswered[0]
        for words in news.warnings:
            if words not in warned:
                warn(words)
        warned = news.warnings
        run = watcher.history.get(run.id)
        if run.state is not before.state:
            moved_to(run)
        now = time.monotonic()
        lost = (lost or now) if transitions.nobody_knows(run) else None
        if run.started is not None and before.started is None and now - moved >= AGAIN_SECONDS:
            moved = now
        given_up = lost is not None and now - lost > transitions.ACCOUNTING_SECONDS
        rest = None if deadline is None else deadline - now
        over = run.state.is_final or run.never_starts
        if over or stop() or (rest is not None and rest <= 0):
            return run
        if given_up and attended:
            return run
        # A final query of accounting before the run counts as unknown, as for a user's request.
        attended = given_up
        # A site that does not answer is not polled more often.
        soon = () if news.warnings else (moved + after - now for after in SOON)
        sleep_unless(min(pause, rest or pause, *(each for each in soon if each > 0)), stop)


def sleep_unless(seconds: float, stop: Stop) -> None:
    """Sleep, but wake when `stop()` is true."""
    deadline = time.monotonic() + seconds
    while not stop() and (rest := deadline - time.monotonic()) > 0:
        time.sleep(min(rest, 0.2))


FIRST_BYTES = 262_144
"""Bytes to read from the end when a screen opens a log."""
TRIES = 8
"""Maximum number of consecutive cut links without an answer before following stops."""
SILENCE = 8.0
"""Seconds of silence after which the reader is told; the site is queried after 5."""
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
    """More bytes of the log.

    Empty `data` shows that the log is being followed: as the first answer, and after LogWaits or
    LogLost.
    """

    data: bytes
    end: int
    """Offset after `data`."""


@dataclass(frozen=True)
class LogWaits:
    """The link was lost, and a new login needs a user; lumitui sends nothing meanwhile."""

    words: str


@dataclass(frozen=True)
class LogHeard:
    """The site answered, but the log has not grown. Only for links that can be lost."""

    at: float
    """Epoch seconds."""


@dataclass(frozen=True)
class LogLost:
    """The site does not answer; lumitui retries and keeps the lines it has read."""

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
    """Return at most the `last` bytes of a log, with their offset.

    Raises:
        RefusedError: there is no such log.
    """
    if _never_logged(run):
        raise RefusedError(f"{run.id} has no log: it is {run.state}.", "It never had a job.")
    end = run_log.read_end(transport, log_path(run, attempt), last)
    if end is None:
        raise _no_log(run, attempt)
    return end


def follow(watcher: Watcher, run: Run, *, last: int, stop: Stop) -> Iterator[LogEvent]:
    """Yield a run's log from its `last` bytes on; refreshes the run's state at intervals.

    The log of each later attempt is yielded from its first byte.

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
    """Yield a run's log for a screen that already has `offset` bytes of an attempt's log.

    It takes one stream: the run's state comes from the history, which the app's refreshes update.
    While the screen is open, a lost link is retried; if only a user can restore it, lumitui waits
    without traffic.
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
    """Return the final event of a run that never had a job, without querying the site."""
    if run.job_id is None and run.state.is_final:
        return LogEnded(f"{run.state}: there is no log")
    return None


@dataclass
class LogFollower:
    """One reader of a run's log, with its position."""

    transport: Transport
    stop: Stop
    _: KW_ONLY
    run: Callable[[], Run]
    last: int
    """Bytes to read from the end of the first log."""
    attempt: int | None = None
    """The attempt whose log the reader already shows, or None."""
    offset: int = 0
    """Number of bytes of that log that the reader has."""
    refresh: Callable[[], object] = lambda: None
    """Queries the site about the run; does nothing if something else updates the history."""
    pause: float = 1.0
    """Seconds between two refreshes."""
    waits: bool = False
    """Whether to wait without a limit for a link, and for a job that is unknown or never starts.
    Such a reader begins a later attempt's log near its end; others read it from the start."""
    silence: Callable[[], float] = lambda: 0.0
    """Returns the seconds since the last sign of the site, or infinity without a connection."""

    def __post_init__(self) -> None:
        self._attended = True  # a user opened the log; later requests are automatic
        self._waits_for = ""
        self._cuts = 0
        self._answered = False  # by the site, to this reader
        self._lost: LogLost | None = None
        self._heard = time.time()
        self._next_refresh = 0.0
        self._quiet_since: float | None = None  # silence counts only after the attempt is over

    def events(self) -> Iterator[LogEvent]:
        """Yield the log's events until the run has ended, or until `stop()`.

        After a cut link, reading resumes at the same byte, with back-off. If the run is requeued,
        the log of its next attempt follows.

        Raises:
            AnswerNeeded: the link was lost, a new login needs a user, and the reader does not wait.
            LinkError: the site cannot be reached, or the link keeps being cut, and the reader does
                not wait.
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
        # The first chunk may need a new connection: open it now.
        with attendance(self._attended and is_attended()):
            chunk = next(chunks, None)
        first = True  # of a stream: silence counts from its first answer
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
        sleep_unless(1.0, self.stop)  # it ended by itself: do not retry immediately
        return False

    def _is_whole(self, now: float, *, silent: bool) -> bool:
        """Return whether the attempt is over and the log has been silent since."""
        if self._quiet_since is None:
            if now >= self._next_refresh:
                self._next_refresh = now + self.pause
                self.refresh()
                run = self.run()
                # A job that has left the queue writes no more; but a later poll may find it
                # requeued, with another attempt.
                lost = not self.waits and (nobody_knows(run) or run.never_starts)
                if run.state.is_final or lost or run.attempt != self.attempt:
                    self._quiet_since = now
        elif not silent:
            self._quiet_since = now
        return self._quiet_since is not None and now - self._quiet_since > LAST_WORDS

    def _cut(self, error: LinkError) -> Iterator[LogEvent]:
        """Pause after a cut link; raise `error` if retrying is pointless."""
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
            """Return whether to end the pause: another request has restored the connection."""
            return self.stop() or (away and not math.isinf(self.silence()))

        sleep_unless(min(2.0 ** min(self._cuts, 6), 60.0), stop)

    def _lose(self, since: float, words: str) -> Iterator[LogEvent]:
        """Report that the site does not answer, once for each reason."""
        lost = LogLost(self._lost.since if self._lost else since, words)
        if self._lost is None or lost.words not in ("", self._lost.words):
            self._lost = lost
            yield lost


LAST_BYTES = 4 * LOG_BLOCK
"""Bytes to read from the end of a log that is not followed."""


@dataclass(frozen=True)
class LogMatches:
    """The matches of a search, and the searched part of the log."""

    matches: Sequence[Match]
    first: int
    last: int | None
    """Offset after the last byte of that part; None means the end of the log."""


class LogPages:
    """The logs of all runs, by page. Thread-safe."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def page(
        self, run_id: str, attempt: int | None, start: int, length: int = LOG_BLOCK
    ) -> LogPage:
        """Return at most `length` bytes of an attempt's log from `start`; None is the newest.

        It takes one request; bytes after the end of the log are omitted.

        Raises:
            InputError: no such run.
            RefusedError: there is no such log, or it cannot be read.
        """
        run = self._watcher.history.get(run_id)
        transport = self._watcher.connection(run.site).transport
        piece = run_log.read_page(transport, log_path(run, attempt), start, length)
        if piece is None:
            raise _no_log(run, attempt)
        data = piece.data[start - piece.start :][:length]
        return LogPage(start, data, piece.size)

    def end(self, run_id: str, attempt: int | None, last: int = LAST_BYTES) -> LogPage:
        """Return the last bytes of an attempt's log, at most `last`; None means the newest attempt.

        Raises:
            InputError: no such run.
            RefusedError: there is no such log, or it cannot be read.
        """
        run = self._watcher.history.get(run_id)
        transport = self._watcher.connection(run.site).transport
        start, data = read_end(transport, run, attempt, last)
        return LogPage(start, data, start + len(data))

    def find(
        self, run_id: str, attempt: int | None, sought: Sought, at: int, *, forward: bool
    ) -> LogMatches:
        """Return the places of `sought` in an attempt's log nearest to `at`, before or after it.

        Raises:
            InputError: no such run.
            RefusedError: there is no such log, or it cannot be searched.
        """
        run = self._watcher.history.get(run_id)
        transport = self._watcher.connection(run.site).transport
        path = log_path(run, attempt)
        matches = log_search.find(transport, path, sought, at, forward=forward)
        if matches is None:
            raise _no_log(run, attempt)
        whole = len(matches) < log_search.MOST_MATCHES  # further matches are dropped
        if forward:
            return LogMatches(matches, at, None if whole else matches[-1].offset + 1)
        return LogMatches(matches, 0 if whole else matches[0].offset, at)


def _no_log(run: Run, attempt: int | None) -> LumiError:
    if attempt is not None and attempt > run.attempt and run.state.is_final:
        last = "only attempt 1" if run.attempt == 1 else f"{run.attempt} attempts"
        return InputError(f"{run.id} has no attempt {attempt}: it has {last}.", "Omit --attempt.")
    if run.state.is_final:
        return RefusedError(f"{run.id} has no log.", "Its job may have ended before it wrote one.")
    return RefusedError(f"{run.id} has no log yet.", "It appears when the job starts.")
