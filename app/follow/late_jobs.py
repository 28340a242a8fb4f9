"""Jobs that go on after their run was given up or cancelled: each is cancelled again.

A wrapper or a controller may make a job after its sbatch has failed; it ends at its claim. The
listing of a poll shows such a job, and settling its run once more cancels it; see
`remote/scheduler/evidence`. A cancel that did not reach the controller left its mark in the run's
folder: a poll shows that, too.
"""

import contextlib
import re
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lumitui.app.history.history import History
from lumitui.app.history.run import Run
from lumitui.remote.site.errors import OutcomeUnknown, RefusedError
from lumitui.remote.site.states import State

if TYPE_CHECKING:
    from lumitui.remote.scheduler.scheduler_protocol import Scheduler

RECENT_SECONDS = 3600.0
"""How long the queue is inspected for a run that was given up, where no other run is polled."""
_MOST = 50
"""Runs of each state that are compared with the queue."""
_OURS = re.compile(r"lumitui:[0-9a-f]|(?:^|\|)[a-z0-9-]+-[0-9a-f]{6}\|")
"""What the signs of a job have that lumitui submitted; see `shipment.new_id`."""


def late_runs(history: History, site: str, others: Iterable[str]) -> list[Run]:
    """Return the given-up and cancelled runs that have a job at a site.

    `others` are the signs of the jobs there that no watched run has.
    """
    signs = [text for text in others if _OURS.search(text)]
    if not signs:
        return []
    return [
        run
        for run in (*_given_up(history, site), *_cancelled(history, site))
        if any(f"|{run.id}|" in f"|{text}|" or f"lumitui:{run.token}" in text for text in signs)
    ]


def recent_runs(history: History, site: str | None) -> list[Run]:
    """Return the runs that were given up a short while ago, three at the most.

    The laptop's clock may be wrong: then a job waits until it ends at its claim.
    """
    now = time.time()
    recent = [run for run in _given_up(history, site) if abs(now - run.updated) < RECENT_SECONDS]
    return recent[:3]


def _given_up(history: History, site: str | None) -> list[Run]:
    states = (State.REFUSED, State.NOT_SENT)
    runs = [run for state in states for run in history.page(_MOST, site=site, state=state)]
    # `submitted` is written before the submit step: without it there can be no job.
    return [run for run in runs if run.submitted is not None and run.job_id is None]


def _cancelled(history: History, site: str) -> list[Run]:
    """Return cancelled runs: a wrapper may submit one again; its claim is void or taken by then."""
    return history.page(_MOST, site=site, state=State.CANCELLED)


def cancel_late(run: Run, scheduler: "Scheduler") -> None:
    """Cancel the late job of a run that was given up or cancelled; its name and token find it.

    What is not confirmed then is tried again at the next poll.

    Raises:
        LinkError: the site could not be asked.
    """
    from lumitui.app.follow.transitions import watch_of
    from lumitui.app.launch.send.settle import GRACE_SECONDS, submission_of

    if run.job_id is not None:
        with contextlib.suppress(RefusedError, OutcomeUnknown):
            scheduler.cancel([watch_of(run)])
        return
    scheduler.settle(submission_of(run), deep=False, void=True, grace=GRACE_SECONDS)
