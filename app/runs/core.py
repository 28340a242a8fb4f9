"""What all parts of the facade stand on: history, profiles, connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lumitui.app.history.history import History
from lumitui.app.watch.left_secrets import LeftSecrets
from lumitui.app.watch.refresh import Watcher
from lumitui.remote.connect import Connections, connect
from lumitui.remote.site.sites import Sites

if TYPE_CHECKING:
    from lumitui.app.history.file.sqlite_file import Tell
    from lumitui.app.history.run import Run
    from lumitui.app.settings import Settings
    from lumitui.remote.connect import Connect
    from lumitui.remote.ssh.prompts import Ask
    from lumitui.remote.transport.protocol import Transport


class Core:
    """The history, the profiles and the connections of one person."""

    def __init__(
        self,
        settings: Settings,
        *,
        ask: Ask = lambda question: None,
        connect: Connect = connect,
        tell: Tell = lambda words: None,
    ) -> None:
        """Open the history; no network before something needs it.

        `tell` receives what the person should read while an older version's history is converted.
        """
        self.sites = Sites(settings.profiles)
        self.history = History(settings.history, tell)
        self._locks, self._hashes = settings.data / "sending", settings.data / "hashes"
        self._kept_logs = settings.data / "logs"
        self._connections = Connections(ask, connect)
        self._left_secrets = LeftSecrets(settings.data / "secrets-left")
        self._watcher = Watcher(
            self.history, self._locks, self.sites, self._connections, self._left_secrets
        )

    def close(self) -> None:
        """Close connections and history."""
        self._connections.close()
        self.history.close()

    def _transport(self, run: Run) -> Transport:
        return self._watcher.connection(run.site).transport
