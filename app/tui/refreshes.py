"""Refreshes of the sites while the user is present."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from lumitui.app.runs import InputError, LumiError, RefreshEnding, State, site_links
from lumitui.app.tui.asking import ask

if TYPE_CHECKING:
    from lumitui.app.runs import Refreshed, Runs
    from lumitui.app.tui.app import LumiApp
    from lumitui.app.tui.notices import Notices

TICK = 1.0
"""Seconds between two checks for due sites."""
_PAUSE = 60.0  # seconds until a site's next refresh if its profile does not set it


class Refreshes:
    """The refreshes of an app: of each site while it has unfinished runs."""

    def __init__(self, app: LumiApp, notices: Notices) -> None:
        """Refresh the sites of `app`; `notices` reports the runs' events."""
        self._app, self._notices = app, notices
        self._states: dict[str, tuple[str, State]] | None = None
        """The site and state of each unfinished run; None before they are read."""
        self._watched: frozenset[str] = frozenset()  # the sites with unfinished runs
        self._seen: tuple[int, ...] = ()  # the history's stamp when the unfinished runs were read

    def tick(self, *, asked: bool) -> None:
        """Start a refresh of every due site; `asked` is True if the user requested it."""
        app, history, schedule = self._app, self._app.runs.history, self._app.schedule
        try:
            # If nothing was written, which is usual, the runs are not read again.
            stamp = history.stamp()
            if stamp != self._seen:
                unfinished = history.unfinished_states()
                self._quicken(unfinished)
                self._watched = frozenset(site for site, _ in unfinished.values())
                self._seen = stamp
                states = {run_id: state for run_id, (_, state) in unfinished.items()}
                self._notices.tell_news(states)
        except LumiError as error:
            app.show_error(error, repeats=True)
            return
        sites, now = self._watched, time.monotonic()
        schedule.drop_warnings(sites)
        schedule.wake(now, time.time())
        if asked:
            schedule.hurry(sites)
        for site in schedule.due(sites, now):
            self._refresh_site(site, schedule.began(site, now))
        self._show_links()
        try:
            self._notices.catch_up()
        except LumiError as error:
            app.show_error(error, repeats=True)

    def _quicken(self, unfinished: dict[str, tuple[str, State]]) -> None:
        """Poll a site soon if a job was sent or started there since the last call."""
        known, self._states = self._states, unfinished
        for run_id, (site, state) in unfinished.items():
            moved = known is not None and known.get(run_id) != (site, state)
            if moved and state in (State.QUEUED, State.RUNNING):
                self._app.schedule.quicken(site, time.monotonic())

    def _show_links(self) -> None:
        """Show in the title bars whether the sites answer."""
        app, schedule, now = self._app, self._app.schedule, time.monotonic()
        for site in self._watched:
            if schedule.site(site).failed_at is not None:
                schedule.hear(site, now, app.runs.silence(site))
            if schedule.site(site).held:
                silence = app.runs.silence(site) if app.under_way else None
                schedule.listen(site, now, silence)
        app.links = tuple(site_links(schedule, self._watched, now, time.time()))

    def _refresh_site(self, site: str, attended: bool) -> None:
        def refresh(runs: Runs) -> tuple[Refreshed | None, float, float]:
            refreshed = None
            try:
                refreshed = runs.refresh(site, attended=attended)
                pause = runs.sites.load(site).poll_seconds
                return refreshed, pause, runs.sites.least_pause(site)
            except InputError:  # the profile is missing: the refresh's warning says so
                return refreshed, _PAUSE, _PAUSE

        over = partial(self._refreshed, site)
        lost = partial(over, None, _PAUSE, _PAUSE)
        ask(self._app, refresh, lambda found: over(*found), failed=lambda _: lost())

    def _refreshed(
        self, site: str, refreshed: Refreshed | None, pause: float, least: float
    ) -> None:
        """Record the end of a refresh, and draw its result; None if it failed."""
        from lumitui.app.runs import Refreshed

        found = refreshed or Refreshed((), (f"{site}: the refresh failed.",), 0)
        ending = RefreshEnding(
            found.requests,
            found.warnings,
            answered=site in found.heard,
            needs_person=bool(found.unanswered),
            asked=refreshed is None or site in {*found.heard, *found.failed},
            held=site in found.held,
        )
        self._app.schedule.ended(site, time.monotonic(), ending, pause=pause, least=least)
        self._show_links()
        self._app.history_changed()
