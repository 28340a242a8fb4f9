"""When to look at the sites again, and what the looks have cost. Pure: time is handed in."""

from collections.abc import Iterable
from dataclasses import dataclass, field

IDLE_SECONDS = 600.0
"""Without a key and without focus for so long nothing is asked any more."""
LONGEST_PAUSE = 600.0


@dataclass
class _Place:
    due: float = 0.0
    busy: bool = False
    wanted: bool = False
    failures: int = 0
    warning: str = ""


@dataclass
class Schedule:
    """The looks at all sites. Times are seconds of one monotonic clock."""

    last_input: float
    """When the person last did something."""
    focused: bool | None = None
    """Whether the terminal is in front; None where it never told."""
    requests: int = 0
    """Made since the program began."""
    last_look: float | None = None
    """When a site last answered."""
    began_at: float = field(init=False)
    """When the program began."""
    _places: dict[str, _Place] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """A person starts the program: the first input is its beginning."""
        self.began_at = self.last_input

    def is_idle(self, now: float) -> bool:
        """Whether nobody is there to see the answer."""
        return not self.focused and now - self.last_input > IDLE_SECONDS

    def due(self, sites: Iterable[str], now: float) -> list[str]:
        """Return which of `sites` to ask now; each is asked once at a time."""
        if self.is_idle(now):
            return []
        places = {site: self._places.setdefault(site, _Place()) for site in sites}
        return [site for site, place in places.items() if not place.busy and place.due <= now]

    def began(self, site: str) -> bool:
        """A look at `site` is under way; returns whether the person asked for it."""
        place = self._places.setdefault(site, _Place())
        wanted, place.wanted, place.busy = place.wanted, False, True
        return wanted

    def ended(
        self, site: str, now: float, *, pause: float, requests: int, warnings: Iterable[str]
    ) -> None:
        """A look at `site` is over; the next one after `pause`, twice as long a failure.

        What the person asked for meanwhile is due at once.
        """
        place = self._places.setdefault(site, _Place())
        place.busy, place.warning = False, " ".join(warnings)
        place.failures = place.failures + 1 if place.warning else 0
        wait = min(pause * 2.0**place.failures, max(LONGEST_PAUSE, pause))
        place.due = now if place.wanted else now + wait
        self.requests += requests
        if not place.warning:
            self.last_look = now

    def next_look(self, site: str, now: float) -> float | None:
        """Return in how many seconds `site` is asked again; None when it never was, or idle."""
        place = self._places.get(site)
        if place is None or self.is_idle(now):
            return None
        return max(0.0, place.due - now)

    def hurry(self, sites: Iterable[str]) -> None:
        """Make every one of `sites` due at once: the person asked for it, and may be asked."""
        for site in sites:
            place = self._places.setdefault(site, _Place())
            place.due, place.wanted = 0.0, True

    def drop_warnings(self, sites: Iterable[str]) -> None:
        """Forget the warnings of sites without unfinished runs: nothing there can be stale."""
        kept = set(sites)
        for site, place in self._places.items():
            if site not in kept:
                place.warning, place.failures = "", 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the sites that could not be asked."""
        return tuple(place.warning for place in self._places.values() if place.warning)
