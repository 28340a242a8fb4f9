"""Refreshes of the sites, while a person is there."""

import time
from typing import TYPE_CHECKING

from textual import events, on, work

from lumitui.app.follow.sites.link_words import links
from lumitui.app.follow.sites.schedule import Ending
from lumitui.app.tui import messages
from lumitui.app.tui.workers.notices import NoticeWorkers
from lumitui.remote.site.errors import InputError, LumiError

if TYPE_CHECKING:
    from lumitui.app.follow.refresh import Refreshed

TICK = 1.0
"""Seconds between two checks whether a site is due."""


class RefreshWorkers(NoticeWorkers):
    """An app that refreshes a site while it has unfinished runs."""

    _watched: frozenset[str] = frozenset()
    """The sites with unfinished runs."""
    _seen: tuple[int, ...] = ()
    """The history's stamp when they were read."""

    async def on_event(self, event: events.Event) -> None:
        """Record that a person is there."""
        if isinstance(event, events.Key | events.MouseDown | events.AppFocus):
            self.schedule.last_input = time.monotonic()
        if isinstance(event, events.Key):
            self.absence = ""  # the person has seen it
        if isinstance(event, events.AppFocus | events.AppBlur):
            self.schedule.focused = isinstance(event, events.AppFocus)
        await super().on_event(event)

    @on(messages.RefreshWanted)
    def tick(self, event: messages.RefreshWanted | None = None) -> None:
        """Start a refresh of every site that is due; with an `event`, the person asked for it."""
        try:
            # Most seconds nothing was written, and what each run has is not read again.
            stamp = self.runs.history.stamp()
            if stamp != self._seen:
                unfinished = self.runs.history.unfinished_states()
                self._watched = frozenset(site for site, _ in unfinished.values())
                self._seen = stamp
                self.tell_news({run_id: state for run_id, (_, state) in unfinished.items()})
        except LumiError as error:
            self.post_message(messages.Failed(error, repeats=True))
            return
        sites, now = self._watched, time.monotonic()
        self.schedule.drop_warnings(sites)
        self.schedule.wake(now, time.time())
        if event is not None:
            self.schedule.hurry(sites)
        for site in self.schedule.due(sites, now):
            self._refresh_site(site, self.schedule.began(site, now))
        self._show_links()
        self._catch_up()

    def _catch_up(self) -> None:
        try:
            self.catch_up()
        except LumiError as error:
            self.post_message(messages.Failed(error, repeats=True))

    def _show_links(self) -> None:
        """Let the title bars say whether the sites answer; they are drawn when that changes."""
        now = time.monotonic()
        for site in self._watched:
            if self.schedule.site(site).failed_at is not None:
                self.schedule.hear(site, now, self.runs.silence(site))
            if self.schedule.site(site).held:
                silence = self.runs.silence(site) if self.under_way else None
                self.schedule.listen(site, now, silence)
        self.links = tuple(links(self.schedule, self._watched, now, time.time()))

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
        from lumitui.app.follow.refresh import Refreshed

        found = event.refreshed or Refreshed((), (f"{event.site}: the refresh failed.",), 0)
        ending = Ending(
            found.requests,
            found.warnings,
            answered=event.site in found.heard,
            needs_person=bool(found.unanswered),
            asked=event.refreshed is None or event.site in {*found.heard, *found.failed},
            held=event.site in found.held,
        )
        self.schedule.ended(event.site, time.monotonic(), ending, pause=event.pause)
        self._show_links()
        self.history_changed()
