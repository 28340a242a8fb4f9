"""The base of the facade: history, profiles, connections."""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Self

from lumitui.app.history.history import History
from lumitui.remote.site.sites import Sites

if TYPE_CHECKING:
    from lumitui.app.follow.left_secrets import LeftSecrets
    from lumitui.app.follow.refresh import Watcher
    from lumitui.app.history.run import Run
    from lumitui.app.job.settings import Settings
    from lumitui.app.survey.inquiry.kept_budgets import KeptBudgets
    from lumitui.remote.connect import Connect, Connections
    from lumitui.remote.ssh.prompts import Ask
    from lumitui.remote.transport.transport import Transport


class RunsCore:
    """The history, profiles and connections of one user."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        ask: Ask = lambda question: None,
        connect: Connect | None = None,
    ) -> None:
        """Open the history; use no network until something needs it.

        Args:
            settings: the folders of history and profiles; None: those of the command line.
            ask: asks the user a login's question and returns the answer; None: they declined.
            connect: opens a connection to a site; None: over SSH, as its profile describes.

        Raises:
            HistoryError: the history cannot be opened.
        """
        if settings is None:
            from lumitui.app.job.settings import settings as own

            settings = own()
        self._settings = settings
        self.sites = Sites(settings.profiles)
        self.history = History(settings.history)
        self._locks, self._hashes = settings.data / "sending", settings.data / "hashes"
        self._ask, self._connect = ask, connect
        self._made: Connections | None = None
        self._making = Lock()
        self._data = settings.data

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close connections and history."""
        self.close()

    def close(self) -> None:
        """Close connections and history; jobs continue."""
        if self._made is not None:
            self._made.close()
        self.history.close()

    @property
    def _connections(self) -> Connections:
        from lumitui.remote.connect import Connections, connect

        with self._making:  # two threads must not log in twice
            if self._made is None:
                self._made = Connections(self._ask, self._connect or connect)
            return self._made

    @cached_property
    def _left_secrets(self) -> LeftSecrets:
        from lumitui.app.follow.left_secrets import LeftSecrets

        return LeftSecrets(self._data / "secrets-left")

    @cached_property
    def _watcher(self) -> Watcher:
        from lumitui.app.follow.refresh import Watcher

        return Watcher(self.history, self._locks, self.sites, self._connections, self._left_secrets)

    @cached_property
    def _budgets(self) -> KeptBudgets:
        from lumitui.app.survey.inquiry.kept_budgets import KeptBudgets

        return KeptBudgets(self._data / "budgets.json")

    def _transport(self, run: Run) -> Transport:
        return self._watcher.connection(run.site).transport
