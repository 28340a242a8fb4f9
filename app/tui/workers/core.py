"""What all workers share: the core, the schedule of refreshes, and what is under way."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from textual.reactive import var

from lumitui.app.follow.sites.link_words import Link
from lumitui.app.follow.sites.schedule import Schedule
from lumitui.app.job.settings import Settings
from lumitui.app.runs import Runs
from lumitui.app.tui import messages
from lumitui.app.tui.terminal import TerminalApp

if TYPE_CHECKING:
    from lumitui.app.tui.widgets.log.log_ranks import LogPlace
    from lumitui.remote.connect import Connect


class CoreApp(TerminalApp):
    """An app over one history and its connections."""

    links: var[tuple[Link, ...]] = var(())
    """The sites with unfinished runs, and whether they answer; every title bar shows them."""

    def __init__(
        self, settings: Settings, connect: Connect | None, runs: Runs | None = None
    ) -> None:
        """Open the history; a site is refreshed only while it has unfinished runs.

        `runs`: a core that several apps share, and none of them closes.
        """
        super().__init__()
        self._shares_runs = runs is not None
        self.runs: Runs = runs or Runs(settings, ask=self.ask, connect=connect)
        self.schedule = Schedule(last_input=time.monotonic())
        self.own_cancels: set[str] = set()
        """Runs that the person cancels here, who needs no notice of their end."""
        self.log_places: dict[str, LogPlace] = {}
        """Where the logs of runs were left, by the run's id."""
        self.under_way: list[str] = []
        """Each send and cancel under way, in words; the app ends only after them."""

    def on_unmount(self) -> None:
        """Let the threads end: they check `leaving`, and a closed connection answers nothing."""
        self.leaving.set()
        if not self.under_way and not self._shares_runs:
            self.runs.close()

    def history_changed(self) -> None:
        """Let every screen that is seen read history again; the others do when they are shown.

        A screen below a full one is not told: with each message to it Textual draws all of the
        one above again.
        """
        for screen in reversed(self.screen_stack):
            screen.post_message(messages.HistoryChanged())
            if not screen.is_modal:
                break
