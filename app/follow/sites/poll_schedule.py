"""The schedule of refreshes, and the state of the link to each site.

Pure: callers pass the time.
"""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from lumitui.app.explain.words import short_length
from lumitui.app.history.run import NEWS_SECONDS

IDLE_SECONDS = 600.0
"""Seconds without a key press or focus after which polling pauses."""
LONGEST_PAUSE = 600.0
SLOW_SECONDS = 8.0
"""A refresh or a send that hears nothing for longer than this waits for a link that stalls, as far
as one can see."""
RETRY_SECONDS = 5.0
"""Pause after the first failed connection, short because a waking laptop gets its network a little
later. It doubles like every pause, so a site that is down is not tried more often."""
SOON = (2.0, 5.0, 10.0, 20.0, 45.0)
"""Seconds after a send or start at which lumitui polls the site, because the user is watching."""
END_SECONDS = 5.0
"""Seconds after a log shows the end of a step at which lumitui polls the site: Slurm needs some to
end the job."""
AGAIN_SECONDS = 20.0
"""Seconds after a send or start before another one begins the times in SOON anew."""
SLEPT_SECONDS = 20.0
"""Seconds the clock must gain on the monotonic clock to show that the machine slept."""
_MOST_DOUBLINGS = 20
"""Maximum number of doublings: 2.0**1024 overflows, and a week of maintenance has that many
failures. 20 turn 1 ms into 17 min."""


@dataclass(frozen=True)
class RefreshEnding:
    """How a refresh of a site ended."""

    requests: int
    warnings: tuple[str, ...] = ()
    answered: bool = True
    """Whether the site answered at all, even if its scheduler did not."""
    needs_person: bool = False
    """Whether a login needs a user; nothing was sent."""
    asked: bool = True
    """Whether there was a request; without one, the link's state is unknown."""
    held: bool = False
    """Whether the refresh waits for a send that is using the connection."""


@dataclass
class Watched:
    """The state of one site. Times are seconds of the schedule's clock."""

    due: float = -math.inf  # immediately: a monotonic clock may begin anywhere
    busy_since: float | None = None
    """When the current refresh began; None if there is none."""
    earliest: float = -math.inf
    """When the profile allows a poll because of a log: of its end, or a lost connection."""
    wanted: bool = False
    failures: int = 0
    warning: str = ""
    answered_at: float | None = None
    """When the site last answered."""
    failing_since: float | None = None
    """When the first unanswered refresh began; None if the last one was answered."""
    needs_person: bool = False
    failed_at: float | None = None
    """When the last unanswered refresh ended; None if the last one was answered."""
    heard_since: bool = False
    """Whether it has answered another request since it failed, which caused an extra poll."""
    never_ended: bool = True
    """Whether no refresh has ended yet."""
    stale: bool = False
    """Whether the machine slept since the last answer."""
    held: bool = False
    """Whether a send is using the connection, so that refreshes send nothing."""
    moved_at: float | None = None
    """When a job was sent or started there; the times in SOON count from it."""
    silent_since: float | None = None
    """When it last answered during that send; None if no send uses the connection."""


@dataclass
class Schedule:
    """The refreshes of all sites. Times are seconds of one monotonic clock."""

    last_input: float
    """Time of the user's last input; the start of the program counts as the first."""
    focused: bool | None = None
    """Whether the terminal has the focus; None if it never reported that."""
    requests: int = 0
    """Since the program began."""
    _sites: dict[str, Watched] = field(default_factory=dict)
    _ahead: float | None = None
    """Seconds by which the clock was ahead of the monotonic clock."""

    def is_idle(self, now: float) -> bool:
        """Whether the user is away."""
        return not self.focused and now - self.last_input > IDLE_SECONDS

    def due(self, names: Iterable[str], now: float) -> list[str]:
        """Return the sites to refresh now, except those whose refresh is still running."""
        if self.is_idle(now):
            return []
        sites = {name: self.site(name) for name in names}
        return [name for name, site in sites.items() if site.busy_since is None and site.due <= now]

    def began(self, name: str, now: float = 0.0) -> bool:
        """Record that a refresh of a site has begun; return whether a user requested it."""
        site = self.site(name)
        by_user, site.wanted, site.busy_since = site.wanted, False, now
        return by_user

    def ended(
        self, name: str, now: float, ending: RefreshEnding, *, pause: float, least: float = 0.0
    ) -> None:
        """Record the end of a refresh; the next is due after `pause`, doubled by each failure.

        `least` is the pause that `hasten` and `lose` keep.
        A site that did not answer is retried sooner at first. If the user has requested a refresh
        meanwhile, it is due immediately.
        """
        site = self.site(name)
        began, site.busy_since, site.never_ended = site.busy_since, None, False
        site.warning = " ".join(ending.warnings)
        site.failures = site.failures + 1 if site.warning else 0
        site.needs_person = ending.needs_person
        longest = max(LONGEST_PAUSE, pause)
        silent, site.held = site.silent_since, ending.held
        site.silent_since = silent if ending.held else None
        if not ending.asked:
            pass  # neither an answer nor a failure
        elif ending.answered:
            site.answered_at, site.failing_since, site.stale = now, None, False
            site.failed_at, site.heard_since = None, False
        else:
            site.failed_at = now
            pause = min(pause, RETRY_SECONDS) if not ending.needs_person else pause
            if site.failing_since is None:
                since = silent if silent is not None else began
                site.failing_since = now if since is None else since
        wait = min(pause * 2.0 ** min(site.failures, _MOST_DOUBLINGS), longest)
        soon = (site.moved_at + after for after in SOON if site.moved_at is not None)
        if not site.warning:
            wait = min(wait, next((moment - now for moment in soon if moment > now), wait))
        site.due = now if site.wanted else now + wait
        site.earliest = now + least
        self.requests += ending.requests

    def listen(self, name: str, now: float, silence: float | None) -> None:
        """Record a sign of a site `silence` seconds ago, if a send is using its connection.

        Infinity: there is no connection. None: no send is running. A site that was silent when the
        send ended is polled immediately, and stays silent until then.
        """
        site = self.site(name)
        if not site.held:
            return
        if silence is None:
            site.held = False
            if site.silent_since is not None and now - site.silent_since > SLOW_SECONDS:
                site.due = -math.inf
            else:
                site.silent_since = None
        elif silence < math.inf:
            heard = now - silence
            site.silent_since = heard
            site.answered_at = heard if site.answered_at is None else max(site.answered_at, heard)
        elif site.silent_since is None:
            site.silent_since = now

    def hear(self, name: str, now: float, silence: float) -> None:
        """Record that a site answered any request `silence` seconds ago.

        A failed site becomes live and due immediately, but only once until a refresh succeeds: a
        hung scheduler behind a live link must not be queried without pauses. 0.0 and infinity are
        ignored: the link cannot be lost, or there is none.
        """
        site, heard = self.site(name), now - silence
        failed = None if site.heard_since or site.busy_since is not None else site.failed_at
        if failed is None or silence == 0.0 or heard <= failed:
            return
        site.answered_at, site.failing_since, site.warning = heard, None, ""
        site.heard_since, site.due = True, -math.inf

    def wake(self, now: float, clock: float) -> bool:
        """Make every site due if the machine slept since the last call; return whether it did.

        `clock` is the time in epoch seconds, which advances while the monotonic clock stands still.
        """
        before, self._ahead = self._ahead, clock - now
        slept = before is not None and self._ahead - before > SLEPT_SECONDS
        for site in self._sites.values() if slept else ():
            site.due, site.stale = -math.inf, True
            if site.answered_at is not None and before is not None:
                site.answered_at -= self._ahead - before
        return slept

    def next_refresh(self, name: str, now: float) -> float | None:
        """Return the seconds until a site's next refresh; None if it has none or is idle."""
        site = self._sites.get(name)
        if site is None or self.is_idle(now):
            return None
        return max(0.0, site.due - now)

    def hurry(self, names: Iterable[str]) -> None:
        """Make these sites due now at the user's request; logins may prompt."""
        for name in names:
            site = self.site(name)
            site.due, site.wanted = -math.inf, True

    def quicken(self, name: str, now: float) -> None:
        """Poll a site at the times in SOON, because a job was sent or has started."""
        site = self.site(name)
        if site.failures or (site.moved_at is not None and now - site.moved_at < AGAIN_SECONDS):
            return
        site.moved_at, site.due = now, min(site.due, now + SOON[0])

    def hasten(self, name: str, now: float) -> None:
        """Poll a site once soon, because the log shows that a run's step may have ended there."""
        site = self.site(name)
        if not site.failures:
            site.due = min(site.due, max(now + END_SECONDS, site.earliest))

    def lose(self, name: str, now: float) -> None:
        """Record that another request lost the connection; the next poll shows if it is back."""
        site = self.site(name)
        if site.failing_since is None:
            site.failing_since, site.due = now, min(site.due, site.earliest)

    def drop_warnings(self, names: Iterable[str]) -> None:
        """Clear the warnings of all sites except `names`, those with unfinished runs.

        Nothing else can be stale.
        """
        kept = set(names)
        for name, site in self._sites.items():
            if name not in kept:
                site.warning, site.failures = "", 0
                site.failing_since, site.failed_at, site.needs_person = None, None, False

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why sites could not be queried, by site."""
        return tuple(site.warning for site in self._sites.values() if site.warning)

    def site(self, name: str) -> Watched:
        """Return the state of a site."""
        return self._sites.setdefault(name, Watched())


OFFLINE_SECONDS = NEWS_SECONDS
"""Seconds without an answer after which a site counts as offline and its runs show their age."""


class LinkState(StrEnum):
    """The state of the link after the last refreshes; the value is the displayed word."""

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
"""A sign for each state, always shown with its word."""


@dataclass(frozen=True)
class SiteLink:
    """The current state of the link to one site."""

    site: str
    state: LinkState
    detail: str = ""
    """How long the state has lasted, or when the site last answered."""

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
    moment = time.localtime(clock - (now - (seen or 0.0)))
    last = "never seen" if seen is None else time.strftime("last %H:%M", moment)
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


def link_titles(links: Sequence[SiteLink], width: int) -> list[tuple[LinkState, str]]:
    """Return the title bar's text for the links, each with its state, in at most `width` cells.

    If room is short, the times are dropped first, then the names, and the last links are only
    counted. Links that are not live come first.
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
