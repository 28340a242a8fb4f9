"""Refreshes of the sites, while a person is there."""

import time

from textual import events, on, work

from lumitui.app.runs import Refreshed
from lumitui.app.tui import messages
from lumitui.app.tui.workers.core import CoreApp
from lumitui.remote.errors import InputError, LumiError

TICK = 1.0
"""Seconds between two checks whether a site is due."""


class RefreshWorkers(CoreApp):
    """An app that refreshes a site while it has unfinished runs."""

    async def on_event(self, event: events.Event) -> None:
        """Record that a person is there."""
        if isinstance(event, events.Key | events.MouseDown | events.AppFocus):
            self.schedule.last_input = time.monotonic()
        if isinstance(event, events.AppFocus | events.AppBlur):
            self.schedule.focused = isinstance(event, events.AppFocus)
        await super().on_event(event)

    @on(messages.RefreshWanted)
    def tick(self, event: messages.RefreshWanted | None = None) -> None:
        """Start a refresh of every site that is due; with an `event`, the person asked for it."""
        try:
            sites = {run.site for run in self.runs.history.unfinished()}
        except LumiError as error:
            self.post_message(messages.Failed(error, repeats=True))
            return
        self.schedule.drop_warnings(sites)
        if event is not None:
            self.schedule.hurry(sites)
        for site in self.schedule.due(sites, time.monotonic()):
            self._refresh_site(site, self.schedule.began(site))

    @work(thread=True, group="refresh", exit_on_error=False)
    def _refresh_site(self, site: str, attended: bool) -> None:
        refreshed: Refreshed | None = None
        pause = 60.0
        try:
            refreshed = self.runs.refresh(site, attended=attended)
            pause = self.runs.sites.load(site).poll_seconds
        except InputError:
            pass  # the profile is gone: the warning of the refresh says so
        finally:
            self.post_message(messages.SiteRefreshed(site, refreshed, pause))

    @on(messages.SiteRefreshed)
    def _site_refreshed(self, event: messages.SiteRefreshed) -> None:
        found = event.refreshed or Refreshed((), (f"{event.site}: the refresh failed.",), 0)
        now = time.monotonic()
        self.schedule.ended(
            event.site, now, pause=event.pause, requests=found.requests, warnings=found.warnings
        )
        self.history_changed()
