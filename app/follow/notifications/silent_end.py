"""The notification for a job that was killed before it could send its own."""

import os
from collections.abc import Mapping

from lumitui.app.explain import words
from lumitui.app.follow.notifications import outside
from lumitui.app.history.run import Run
from lumitui.remote.site.states import State
from lumitui.remote.site.webhook_address import check_webhook


def ended_silently(run: Run) -> bool:
    """Return whether the run's job was killed before it could send its notification.

    A job script that runs to its end, or gets SIGTERM first, sends it. It cannot if its node failed
    or SIGKILL ended it, which leaves no exit code.
    """
    killed = run.state in (State.FAILED, State.OUT_OF_MEMORY) and run.rc is None
    if not (killed or run.state is State.NODE_FAILED) or run.started is None:
        return False
    notify = run.spec.notify
    return notify is not None and notify.webhook is not None


def tell_silent_end(run: Run, environ: Mapping[str, str] = os.environ) -> str:
    """Send the notification and return a warning for the user."""
    assert run.spec.notify is not None
    name, how = run.spec.notify.webhook or "", run.spec.notify.format
    head = f"{run.id} was killed before it could send its notification"
    address = environ.get(name, "")
    if not address:
        return f"{head}, and ${name} is not set on this machine. To be notified next time, set it."
    try:
        check_webhook(address)
    except ValueError as error:
        return f"{head}, and ${name} cannot be used: {error}"
    ran = run.ran(run.ended or run.updated)
    text = f"{run.id} at {run.site}: {run.state} after {words.length(ran)}; its job was killed."
    trouble = outside.post_line(address, text, as_json=how == "json")
    return f"{head}. {trouble}" if trouble else f"{head}; lumitui sent it from this machine."
