"""Which runs have not ended among those whose folders a site has, whichever computer sent them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lumitui.app.history.history import History
from lumitui.remote.scheduler.run_files import MOST_ATTEMPT
from lumitui.remote.scheduler.scheduler_protocol import Watch
from lumitui.remote.transfer.run_users import RunUser

if TYPE_CHECKING:
    from lumitui.remote.connect import Connection

_ALL = 1 << 60  # bytes


def unfinished_of(
    history: History, site_name: str, connection: "Connection", users: Sequence[RunUser]
) -> set[str]:
    """Return the ids of those that have not ended; the site is asked for those sent elsewhere.

    Raises:
        LinkError: the site cannot be reached.
    """
    own = history.states([one.run for one in users])
    unfinished = {run.id for run in history.unfinished(site_name)} & set(own)
    others = [one for one in users if one.run not in own]
    if not others:
        return unfinished
    # Nothing of their files is needed.
    watches = [
        Watch(one.run, one.folder, one.job_id, "", _ALL, False, True, 1, MOST_ATTEMPT, _ALL)
        for one in others
        if one.job_id
    ]
    poll = connection.scheduler.poll(watches)
    named = {signs.partition("|")[0] for signs in poll.others}
    for one in others:
        job = poll.jobs.get(one.run)
        making = one.young and not one.job_id
        if poll.warning or making or one.run in named or (job and not job.state.is_final):
            unfinished.add(one.run)
    return unfinished
