"""Staged data on a site: listing it, and removing what no unfinished run needs.

A site's run folders may come from any computer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from lumitui.app.history.history import History
from lumitui.remote.scheduler.run_files import MOST_ATTEMPT
from lumitui.remote.scheduler.scheduler_protocol import Watch
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.run_folder import STAGE
from lumitui.remote.site.sites import Sites
from lumitui.remote.transfer.contents.staging_upkeep import (
    NOTHING_LOOSE,
    Loose,
    StagedItem,
    Stock,
    remove,
    stock,
)
from lumitui.remote.transfer.run_users import RunUser

if TYPE_CHECKING:
    from lumitui.remote.connect import Connection

_ALL = 1 << 60  # bytes


def unfinished_of(
    history: History, site_name: str, connection: "Connection", users: Sequence[RunUser]
) -> set[str]:
    """Return the ids of unfinished runs; queries the site about runs sent from elsewhere."""
    own = history.states([one.run for one in users])
    unfinished = {run.id for run in history.unfinished(site_name)} & set(own)
    others = [one for one in users if one.run not in own]
    if not others:
        return unfinished
    # Their files are not needed.
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


@dataclass(frozen=True)
class RemovedItems:
    """The result of a removal or a dry run."""

    folder: str
    ids: tuple[str, ...]
    bytes: int
    items: tuple[StagedItem, ...] = ()
    """Names by id."""
    kept: tuple[StagedItem, ...] = ()
    """Items that stay because unfinished runs need them."""
    loose: Loose = NOTHING_LOOSE
    """Removed remains of unfinished sends."""


class Stocks:
    """The staged files on sites."""

    def __init__(
        self, history: History, sites: Sites, connection: Callable[[str], "Connection"]
    ) -> None:
        self._history, self._sites, self._connection = history, sites, connection

    def list(self, site_name: str, account: str = "") -> tuple[Stock, ...]:
        """Return the staged data on a site, of all accounts that runs used there or of one.

        Raises:
            InputError: no such site, or the history has no run there and `account` is missing.
        """
        connection = self._connection(site_name)
        find_unfinished = partial(unfinished_of, self._history, site_name, connection)
        return tuple(
            stock(connection.transport, folder, find_unfinished)
            for folder in self._folders(site_name, connection, account)
        )

    def remove(
        self, site_name: str, keys: Sequence[str] | None, account: str = "", *, dry: bool = False
    ) -> tuple[RemovedItems, ...]:
        """Remove items by name or id; None removes all unused ones. `dry` only counts them.

        Raises:
            InputError: an item does not exist, or an unfinished run needs it.
            RefusedError: the site could not remove an item.
        """
        transport = self._connection(site_name).transport
        stocks = self.list(site_name, account)
        present = {key for each in stocks for item in each.items for key in (item.id, item.name)}
        for word in keys or ():
            if word not in present:
                raise InputError(
                    f"{site_name} has no staged data called {word}.",
                    f"`lumitui site data {site_name}` lists names and ids.",
                )
        done = []
        for each in stocks:
            chosen = [
                item for item in each.items if keys is None or {item.id, item.name} & set(keys)
            ]
            used = [item for item in chosen if item.in_use]
            if used and keys is not None:
                raise InputError(
                    f"An unfinished run needs {used[0].name} ({used[0].id}): "
                    f"{', '.join(used[0].used_by)}.",
                    "Wait until it has ended, or cancel it; `lumitui status` queries the site "
                    "again.",
                )
            free = [item for item in chosen if not item.in_use]
            ids = tuple(item.id for item in free)
            ids, loose = remove(transport, each.folder, ids, sweep=keys is None, dry=dry)
            gone = tuple(item for item in free if item.id in ids)
            total = sum(item.bytes for item in gone)
            done.append(RemovedItems(each.folder, ids, total, gone, tuple(used), loose))
        return tuple(done)

    def _folders(self, site_name: str, connection: "Connection", account: str) -> Iterator[str]:
        site = self._sites.load(site_name)
        if account or "{account}" not in site.work_root:
            yield f"{connection.work_root(site, account)}/{STAGE}"
            return
        roots = self._history.snapshots.in_use(site_name)
        works = dict.fromkeys(root.rpartition("/")[0] for root in roots)
        if not works:
            raise InputError(
                f"{site_name} keeps staged data by account, but the history has no run at that "
                "site.",
                "Pass one: --account PROJECT.",
            )
        yield from (f"{work}/{STAGE}" for work in works)
