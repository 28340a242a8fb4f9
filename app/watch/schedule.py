"""When each site is refreshed next, and what the refreshes have cost. Pure: time is handed in."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

IDLE_SECONDS = 600.0
"""Seconds without a key and without focus after which no site is polled."""
LONGEST_PAUSE = 600.0
_MOST_DOUBLINGS = 20
"""2.0**1024 overflows: a week of maintenance has that many failures. 20 double 1 ms to 17 min."""


@dataclass
class _Site:
    due: float = -math.inf  # at once: a monotonic clock may begin anywhere
    busy: bool = False
    wanted: bool = False
    failures: int = 0
    warning: str = ""


@dataclass
class Schedule:
    """The refreshes of all sites. Times are seconds of one monotonic clock."""

    last_input: float
    """When the person last did something."""
    focused: bool | None = None
    """Whether the terminal is in front; None where it never said so."""
    requests: int = 0
    """Made since the program began."""
    last_refresh: float | None = None
    """When a site last answered."""
    began_at: float = field(init=False)
    """When the program began."""
    _sites: dict[str, _Site] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """A person starts the program: the first input is its beginning."""
        self.began_at = self.last_input

    def is_idle(self, now: float) -> bool:
        """Whether nobody is there to see the answer."""
        return not self.focused and now - self.last_input > IDLE_SECONDS

    def due(self, names: Iterable[str], now: float) -> list[str]:
        """Return which of the sites to refresh now; none is refreshed twice at the same time."""
        if self.is_idle(now):
            return []
        sites = {name: self._site(name) for name in names}
        return [name for name, site in sites.items() if not site.busy and site.due <= now]

    def began(self, name: str) -> bool:
        """Note that a refresh of a site is under way; return whether the person asked for it."""
        site = self._site(name)
        wanted, site.wanted, site.busy = site.wanted, False, True
        return wanted

    def ended(
        self, name: str, now: float, *, pause: float, requests: int, warnings: Iterable[str]
    ) -> None:
        """Note that a refresh is over; the next is due after `pause`, doubled by each failure.

        What the person asked for meanwhile is due at once.
        """
        site = self._site(name)
        site.busy, site.warning = False, " ".join(warnings)
        site.failures = site.failures + 1 if site.warning else 0
        wait = min(pause * 2.0 ** min(site.failures, _MOST_DOUBLINGS), max(LONGEST_PAUSE, pause))
        site.due = now if site.wanted else now + wait
        self.requests += requests
        if not site.warning:
            self.last_refresh = now

    def next_refresh(self, name: str, now: float) -> float | None:
        """Return in how many seconds a site is refreshed; None when it never was, or idle."""
        site = self._sites.get(name)
        if site is None or self.is_idle(now):
            return None
        return max(0.0, site.due - now)

    def hurry(self, names: Iterable[str]) -> None:
        """Make every one of the sites due at once: the person asked for it, and may be asked."""
        for name in names:
            site = self._site(name)
            site.due, site.wanted = -math.inf, True

    def drop_warnings(self, names: Iterable[str]) -> None:
        """Forget the warnings of all sites but `names`, those with unfinished runs.

        At the others nothing can be stale.
        """
        kept = set(names)
        for name, site in self._sites.items():
            if name not in kept:
                site.warning, site.failures = "", 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """Why sites could not be asked."""
        return tuple(site.warning for site in self._sites.values() if site.warning)

    def _site(self, name: str) -> _Site:
        return self._sites.setdefault(name, _Site())
