"""Whether each watched site answers, in words for every title bar. Pure: time is handed in."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lumitui.app.explain.words import short_length
from lumitui.app.follow.sites.poll_schedule import SLOW_SECONDS, Schedule, Watched
from lumitui.app.history.run import NEWS_SECONDS

OFFLINE_SECONDS = NEWS_SECONDS
"""Without an answer for longer than this, a site is called offline, and its runs are dated."""


class LinkState(StrEnum):
    """What the last refreshes of a site say about the way there; the value is its word."""

    LIVE = "live"
    INCOMPLETE = "incomplete"
    CONNECTING = "connecting"
    RECONNECTING = "reconnecting"
    OFFLINE = "offline"
    LOGIN = "login needed"
    PAUSED = "paused"


GLYPHS = {
    LinkState.LIVE: "●",
    LinkState.INCOMPLETE: "◐",
    LinkState.CONNECTING: "◌",
    LinkState.RECONNECTING: "◌",
    LinkState.OFFLINE: "○",
    LinkState.LOGIN: "◍",
    LinkState.PAUSED: "○",
}
"""A sign for each state; its word is always beside it."""


@dataclass(frozen=True)
class SiteLink:
    """The way to one site as it is now."""

    site: str
    state: LinkState
    detail: str = ""
    """How long it is so, or when the site last answered."""

    @property
    def words(self) -> str:
        """The state with its detail: `live 2s`, `offline, last 01:39`."""
        comma = "," if self.detail.startswith(("last", "never", "press")) else ""
        return f"{self.state}{comma} {self.detail}".strip()


def site_links(
    schedule: Schedule, sites: Iterable[str], now: float, clock: float
) -> list[SiteLink]:
    """Return the links to `sites`; `now` is the schedule's clock, `clock` in epoch seconds."""
    idle = schedule.is_idle(now)
    return [_link(name, schedule.site(name), (now, clock), idle=idle) for name in sorted(sites)]


def _link(name: str, site: Watched, times: tuple[float, float], *, idle: bool) -> SiteLink:
    now, clock = times
    seen = site.answered_at
    last = "never seen" if seen is None else f"last {_of_day(clock - (now - seen))}"
    slow = site.busy_since is not None and now - site.busy_since > SLOW_SECONDS
    since = site.failing_since
    if since is None and slow:
        since = site.busy_since
    silent = site.silent_since
    if since is None and silent is not None and now - silent > SLOW_SECONDS:
        since = silent
    if site.needs_person:
        return SiteLink(name, LinkState.LOGIN, "press r")
    if idle:
        return SiteLink(name, LinkState.PAUSED, last)
    if since is not None and now - (since if seen is None else seen) > OFFLINE_SECONDS:
        return SiteLink(name, LinkState.OFFLINE, last)
    if since is not None or site.stale:
        began = since if since is not None else site.busy_since or now
        word = LinkState.CONNECTING if seen is None else LinkState.RECONNECTING
        return SiteLink(name, word, short_length(now - began))
    if seen is None:
        return SiteLink(name, LinkState.CONNECTING)
    word = LinkState.INCOMPLETE if site.warning else LinkState.LIVE
    return SiteLink(name, word, short_length(now - seen))


def _of_day(moment: float) -> str:
    return time.strftime("%H:%M", time.localtime(moment))


def link_titles(links: Sequence[SiteLink], width: int) -> list[tuple[LinkState, str]]:
    """Return what a title bar says of the links, each with its state, in at most `width` cells.

    With less room first the times go, then the names, and of the last ones only their number is
    left: the first is one that is not live, if there is any.
    """
    ranked = sorted(links, key=lambda link: link.state is LinkState.LIVE)
    steps = (
        [(link.state, f"{GLYPHS[link.state]} {link.site} {link.words}") for link in links],
        [(link.state, f"{GLYPHS[link.state]} {link.site} {link.state}") for link in links],
        [(link.state, f"{GLYPHS[link.state]} {link.site[:6]} {link.state}") for link in links],
    )
    for step in steps:
        if sum(len(text) + 2 for _, text in step) - 2 <= width:
            return step
    if not ranked:
        return []
    first = ranked[0]
    more = f" +{len(ranked) - 1}" if len(ranked) > 1 else ""
    words = f"{first.state}{more}"
    named = f"{first.site} {words}"
    return [(first.state, f"{GLYPHS[first.state]} {named if len(named) + 2 <= width else words}")]
