"""Waiting for a run's end."""

import time
from collections.abc import Callable

from lumitui.app.follow import transitions
from lumitui.app.follow.refresh import Warn, Watcher, refresh
from lumitui.app.history.run import Run

Stop = Callable[[], bool]
"""Called every 0.5 s or more often; true ends what is under way."""


def wait(watcher: Watcher, run: Run, *, timeout: float | None, stop: Stop, warn: Warn) -> Run:
    """Return the run when it has ended, or as it is after `timeout` seconds or `stop()`.

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
        if run.state.is_final or stop() or (rest is not None and rest <= 0):
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
