"""A run's log for the screen that shows it: its end first, then every byte as it comes."""

import time
from collections.abc import Callable, Iterator

from lumitui.app.runs import Runs
from lumitui.app.tui import messages
from lumitui.app.watch.follow_log import rest
from lumitui.remote.errors import AnswerNeeded, RefusedError
from lumitui.remote.ssh.prompts import attendance

FIRST_BYTES = 262_144
"""Read of a log at once; what is before stays on the site."""
QUIET_SECONDS = 1.5
"""After the end of a run: what was written last may still be on its way."""
MOST_WAITING = 8
"""Chunks the screen has not taken yet; a log that is written faster than drawn is not stored."""


def feed(runs: Runs, wanted: messages.FollowWanted, stop: Callable[[], bool]) -> None:
    """Send the log to the screen that asked until `stop()`, or until the run has ended.

    Whether it has ended is read from history: the app's own looks at the site keep it fresh, so
    that a log on the screen costs no requests besides its one stream. A lost link that only the
    person can restore is waited for, without traffic.

    Raises:
        LumiError: the site cannot be reached, in spite of several tries.
    """
    attempt, offset = wanted.attempt, wanted.offset
    asking, waited = True, False  # the person opened the log; what comes later is the clock's
    while not stop():
        run = runs.history.get(wanted.run_id)
        if run.job_id is None and run.state.is_final:
            _tell(wanted, messages.LogEnded(wanted.number, f"{run.state}: there is no log"), stop)
            return
        try:
            with attendance(asking):
                if attempt != run.attempt:
                    attempt, offset = run.attempt, _begin(runs, wanted, run.attempt, stop)
                for end in _stream(runs, wanted, attempt, offset, stop):
                    if waited:
                        _tell(wanted, messages.LogGrew(wanted.number, b"", end), stop)
                    asking, waited, offset = False, False, end
        except AnswerNeeded as error:
            _tell(wanted, messages.LogEnded(wanted.number, f"waiting: {error}"), stop)
            waited = True
            rest(1.0, stop)
            continue
        run = runs.history.get(wanted.run_id)
        if run.state.is_final and run.attempt == attempt:
            _tell(wanted, messages.LogEnded(wanted.number, f"ended: {run.state}"), stop)
            return


def _begin(
    runs: Runs, wanted: messages.FollowWanted, attempt: int, stop: Callable[[], bool]
) -> int:
    try:
        start, data = runs.read_log(wanted.run_id, attempt=attempt, last=FIRST_BYTES)
    except RefusedError:
        start, data = 0, b""  # no log yet: the stream waits for it
    end = start + len(data)
    _tell(wanted, messages.LogBegan(wanted.number, attempt, start), stop)
    _tell(wanted, messages.LogGrew(wanted.number, data, end), stop)
    return end


def _stream(
    runs: Runs,
    wanted: messages.FollowWanted,
    attempt: int,
    offset: int,
    stop: Callable[[], bool],
) -> Iterator[int]:
    """Send what comes after `offset` until the attempt is over; yield how far it went."""
    news = time.monotonic()

    def over() -> bool:
        if stop():
            return True
        run = runs.history.get(wanted.run_id)
        quiet = time.monotonic() - news > QUIET_SECONDS
        return quiet and (run.state.is_final or run.attempt != attempt)

    for chunk in runs.follow(wanted.run_id, offset=offset, stop=over, refreshing=False):
        if chunk:
            news = time.monotonic()
            offset += len(chunk)
            _tell(wanted, messages.LogGrew(wanted.number, chunk, offset), stop)
        yield offset


def _tell(wanted: messages.FollowWanted, told: messages.Told, stop: Callable[[], bool]) -> None:
    while wanted.reply_to.message_queue_size > MOST_WAITING and not stop():
        time.sleep(0.05)
    if not stop():
        wanted.reply_to.post_message(told)
