"""A colleague's runs, read from their folders on a site without changing anything there."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lumitui.app.follow.recover import PassedOver, fetch_metrics, folder_run, work_roots
from lumitui.app.follow.transitions import transition, watch_of
from lumitui.app.history.history import History
from lumitui.app.history.run import Run
from lumitui.remote.connect import Connection
from lumitui.remote.scheduler.run_folders import read_newest
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site

MOST_RUNS = 50
"""Maximum number of runs to read, newest first: their records take about 3 MB in total."""
OPENING = (
    "chmod g+rx . .. ../.. ../../..",
    "find . -maxdepth 1 ! -type l \\( -name '*.json*' -o -name '*.sh' -o -name 'attempt-*' \\) "
    "-exec chmod g+r {} +",
    "chmod g+x ../../../..",
)
"""Commands that open a run to its owner's group, up to the owner's folder above the work root.

Not `chmod -R`: the values of `secrets:` are in a file in the folder while its job may run. Runs
differ in their files, and the claim is a dangling link. The folder above the work root comes last,
because it may belong to somebody else."""
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True)
class ColleagueRuns:
    """A colleague's runs, as far as they are readable."""

    runs: tuple[Run, ...]
    """The newest first."""
    passed: tuple[PassedOver, ...]
    """Hidden folders."""
    warnings: tuple[str, ...]


def read_colleague(
    connection: Connection,
    site: Site,
    user: str,
    accounts: Sequence[str],
    history: History,
    *,
    run_id: str = "",
) -> ColleagueRuns:
    """Read the runs of `user` into `history`, which must not be the current user's history.

    Takes two requests: one for the folders, one for the queue, accounting and the files. `run_id`
    limits it to one run, with all of its metrics. Without `accounts`, the site lists the current
    user's.

    Raises:
        InputError: the folders are unknown or unreadable, or do not contain the run.
    """
    if not _USER.fullmatch(user):
        raise InputError(f"{user!r} is not a user name.", "Give their login name.")
    if "{user}" not in site.work_root:
        raise InputError(
            f"Cannot locate {user}'s runs: the `work_root:` of {site.name} does not contain "
            "{user}.",
            "Add {user} to the path in your own profile of the site.",
        )
    transport, roots = connection.transport, work_roots(connection, site, accounts, user=user)
    found = read_newest(transport, roots, run_id, MOST_RUNS)
    if not found.roots:
        raise InputError(
            f"You cannot list the folder {' or '.join(roots)}.",
            f"Ask {user} to run `chmod g+rx` on the folder and `chmod g+x` on each of {user}'s "
            "folders above it. For another project, pass --account NAME.",
        )
    runs: dict[str, Run] = {}
    opens, how = f"you cannot read it. {user} can open it with: cd", " && ".join(OPENING)
    passed = [PassedOver(path, f"{opens} {path} && {how}") for path in found.closed]
    for folder in found.folders:
        try:
            if folder.linked:
                raise ValueError("one of its files is a link that may point outside the folder")
            run = folder_run(folder, None)
            runs.setdefault(run.id, replace(run, site=site.name))
        except ValueError as error:
            passed.append(PassedOver(folder.path, str(error)))
    if run_id and not runs:
        why = f": {passed[0].why}" if passed else ""
        raise InputError(
            f"{user} has no readable run {run_id} at {site.name}{why}.",
            f"`lumitui history --of {user} --site {site.name}` lists the readable ones.",
        )
    history.adopt(list(runs.values()))
    warnings = _observe(connection, list(runs.values()), user, history)
    if run_id:
        fetch_metrics(transport, list(runs.values()), history)
    shown = sorted(map(history.get, runs), key=lambda run: run.created, reverse=True)
    return ColleagueRuns(tuple(shown), tuple(passed), warnings)


def _observe(
    connection: Connection, runs: Sequence[Run], user: str, history: History
) -> tuple[str, ...]:
    """Write the job states of `runs` to `history`; cancels no job and settles no submission."""
    sent = [run for run in runs if run.job_id is not None]
    if not sent:
        return ()
    poll = connection.scheduler.poll([replace(watch_of(run), owner=user) for run in sent])
    now = time.time()
    history.observe([(run, changes) for run in sent if (changes := transition(run, poll, now))])
    return tuple(words for words in (poll.warning, poll.silent) if words)
