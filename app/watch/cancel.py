"""Cancelling the job of a run, which may not be known yet, or not any more."""

import copy

from lumitui.app.history.run import Run
from lumitui.app.watch.refresh import Warn, Watcher, refresh, settle_run
from lumitui.app.watch.transitions import watch_of
from lumitui.remote.errors import (
    InputError,
    LinkError,
    LinkLost,
    LumiError,
    OutcomeUnknown,
    RefusedError,
)


def cancel(watcher: Watcher, run: Run, warn: Warn) -> Run:
    """Cancel a run's job and return the run as it is then.

    `warn` is called where the queue does not have the job any more, so that nothing is cancelled,
    and where the site cannot be polled afterwards.

    Raises:
        InputError: it has ended.
        OutcomeUnknown: whether it has a job is not known yet.
        RefusedError, LinkError: the scheduler would not, or cannot be reached.
    """
    if run.state.is_final:
        raise InputError(f"{run.id} has ended: {run.state}.", "There is nothing to cancel.")
    try:
        cancelled = _cancelled(watcher, run, warn)
    except (LinkError, RefusedError) as error:
        raise _named(error, run) from error
    if cancelled:
        for words in refresh(watcher, run.site).warnings:
            warn(words)
    return watcher.history.get(run.id)


def _named(error: LumiError, run: Run) -> LumiError:
    """Return an error of the same kind that says which cancel it is, and what became of the job."""
    named = copy.copy(error)
    unsure = isinstance(error, LinkLost)
    fate = f"Whether {run.id} is cancelled is not known" if unsure else f"{run.id} is not cancelled"
    named.message = f"{fate}: {error.message}"
    named.hint = f"Its job may still run: cancel it again later. {error.hint}".strip()
    named.args = (named.message,)
    return named


def _cancelled(watcher: Watcher, run: Run, warn: Warn) -> bool:
    """Cancel the job; return false when it turns out that there never was one."""
    connection = watcher.connection(run.site)
    if run.job_id is None:
        settle_run(watcher, run, connection)
        run = watcher.history.get(run.id)
    if run.job_id is None:
        if run.state.is_final:
            return False
        raise OutcomeUnknown(
            f"{run.id} has no known job yet ({run.reason}).", "Try again in two minutes."
        )
    # Its id may be another job's by now; the request itself checks that.
    if connection.scheduler.cancel([watch_of(run)]):
        warn("The queue does not have its job any more, so nothing was cancelled.")
    return True
