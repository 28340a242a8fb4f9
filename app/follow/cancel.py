"""Cancelling a run's job, also one whose job id is not known yet or no longer valid."""

import copy

from lumitui.app.follow.refresh import Warn, Watcher, refresh, settle_run
from lumitui.app.follow.transitions import watch_of
from lumitui.app.history.run import Run
from lumitui.remote.site.errors import (
    InputError,
    LinkError,
    LinkLost,
    LumiError,
    OutcomeUnknown,
    RefusedError,
)
from lumitui.remote.site.states import BY_YOU


def cancel(watcher: Watcher, run: Run, warn: Warn) -> Run:
    """Cancel a run's job, so that no attempt of it starts any more, and return the updated run.

    `warn` is called if the job has left the queue, so that nothing is cancelled, and if the site
    cannot be polled afterwards.

    Raises:
        InputError: the run has ended or is still being sent.
        OutcomeUnknown: the job may continue or restart, or its end is unknown.
        RefusedError: the scheduler refused. LinkError: the site cannot be reached.
    """
    if run.state.is_final:
        raise InputError(f"{run.id} has ended: {run.state}.", "There is nothing to cancel.")
    open_end, absent = None, ""
    try:
        connection = watcher.connection(run.site)
        if run.job_id is None:
            settle_run(watcher, run, connection)
            run = watcher.history.get(run.id)
            if run.state.is_final:
                return run
            if run.submitted is None:
                raise InputError(
                    f"lumitui is still sending {run.id}, which has no job yet, so nothing was "
                    "cancelled.",
                    "Stop the lumitui that is sending it, or cancel again in a minute.",
                )
        # The id may belong to another job by now; the request itself checks that.
        absent = connection.scheduler.cancel([watch_of(run)]).get(run.id, "")
    except OutcomeUnknown as error:
        open_end = _named(error, run)
    except (LinkError, RefusedError) as error:
        raise _named(error, run) from error
    if absent:
        warn(absent)
    else:
        watcher.history.update(run.id, reason=BY_YOU)
    for words in refresh(watcher, run.site).warnings:
        warn(words)
    run = watcher.history.get(run.id)
    if open_end is not None and not run.state.is_final:
        raise open_end
    if absent and not run.state.is_final:
        why = f" ({run.reason})" if run.reason else ""
        raise OutcomeUnknown(f"It is unknown how {run.id} ended{why}.", absent)
    return run


def _named(error: LumiError, run: Run) -> LumiError:
    """Return an error of the same class that names the cancel and the job's state."""
    named = copy.copy(error)
    again = ": cancel it again later"
    if isinstance(error, OutcomeUnknown):
        fate, again = f"The cancellation of {run.id} is not yet confirmed", ""
    elif isinstance(error, LinkLost):
        fate = f"It is unknown whether {run.id} was cancelled"
    else:
        fate = f"{run.id} is not cancelled"
    named.message = f"{fate}: {error.message}"
    named.hint = f"Its job may still be running{again}. {error.hint}".strip()
    named.args = (named.message,)
    return named
