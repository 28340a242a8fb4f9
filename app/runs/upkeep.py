"""Maintains sites."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

from lumitui.app.runs.watching import Watching

if TYPE_CHECKING:
    from pathlib import Path

    from lumitui.app.follow.recover import RecoveredRuns
    from lumitui.app.follow.refresh import Warn
    from lumitui.app.follow.sites.inventory import Stocks
    from lumitui.app.history.run_exchange import ExportedRuns, ImportedRuns
    from lumitui.remote.site.finding import Finding
    from lumitui.remote.transfer.snapshots.snapshot_store import Pruned
    from lumitui.remote.transport.request_log import SiteRequest


class Upkeep(Watching):
    """Prune, recover and check a site."""

    def prune(
        self, site_name: str, *, dry: bool = False, warn: Warn = lambda words: None
    ) -> dict[str, Pruned]:
        """Remove snapshots that no unfinished run on a site uses; return what was freed, by root.

        The newest snapshot of each project stays, since the next send builds on it. `dry` only
        counts.

        Raises:
            InputError: there is no such site.
            LinkError: the site cannot be reached.
        """
        from lumitui.remote.transfer.snapshots.snapshot_store import prune

        transport = self._watcher.connection(site_name).transport
        for words in self.refresh(site_name).warnings:
            warn(words)
        for words in self._left_secrets.sweep(self.history, site_name, transport).warnings:
            warn(words)
        return {
            root: prune(transport, f"{root}/code", keep, dry=dry)
            for root, keep in self.history.snapshots.in_use(site_name).items()
        }

    def recover(self, site_name: str, account: str = "") -> RecoveredRuns:
        """Rebuild runs that the history lacks from their folders on a site.

        Runs in the history stay unchanged. By default, this searches all accounts of the user.

        Raises:
            InputError: there is no such site, or it needs an account and none is known.
            LinkError: the site cannot be reached.
        """
        from lumitui.app.follow.recover import recover

        return recover(self._watcher, site_name, account)

    def export_history(self, target: Path) -> ExportedRuns:
        """Write every run of the history, with its metrics, to the new file `target` (0600).

        It has no value of a secret. A run that is being sent stays out.

        Raises:
            InputError: there is something at `target`, or it cannot be written.
            HistoryError: the history cannot be read.
        """
        return self.history.exchange.export(target)

    def import_history(self, source: Path) -> ImportedRuns:
        """Merge a file of `export_history` into the history, by the runs' ids: all, or nothing.

        A final state replaces an unfinished one; otherwise the site's later answer counts. No
        note is replaced. Importing a file again changes nothing.

        Raises:
            InputError: the file is damaged, or not an exported history.
            HistoryError: the history cannot be written.
        """
        return self.history.exchange.merge(source)

    def doctor(self, site_name: str, account: str = "") -> list[Finding]:
        """Check a site's profile against its live cluster.

        Raises:
            InputError: there is no such site.
            LinkError: the site cannot be reached.
        """
        from lumitui.remote.survey.doctor.examine import examine

        site = self.sites.load(site_name)
        connection = self._watcher.connection(site_name)
        work_root = partial(connection.work_root, site)
        return examine(connection.transport, site, account, work_root, connection.notes)

    @cached_property
    def stocks(self) -> Stocks:
        """The staged data on sites."""
        from lumitui.app.follow.sites.inventory import Stocks

        return Stocks(self.history, self.sites, self._watcher.connection)

    def requests(self) -> dict[str, list[SiteRequest]]:
        """Return the recent requests to each site, the newest first."""
        return self._connections.requests()
