"""What this program has cost a login node so far: counted, not estimated."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Footprint:
    """Counts since the program began, for one site."""

    logins: int = 0
    """TCP connections made."""
    requests: int = 0
    """Scripts and streams run there, each in a channel of the one connection."""
    commands: int = 0
    """Slurm commands that the requests ran."""
    bytes_up: int = 0
    """Sent to the site, with the overhead of encryption."""
    bytes_down: int = 0


class CountedLink(Protocol):
    """A transport that counts what it does."""

    connections: int
    requests: int
    bytes_up: int
    bytes_down: int


class CountedScheduler(Protocol):
    """A scheduler that counts the commands it has run."""

    commands: int


def footprint(links: Sequence[CountedLink], scheduler: CountedScheduler) -> Footprint:
    """Return the present counts of all connections to a site, those for files too."""
    return Footprint(
        logins=sum(link.connections for link in links),
        requests=sum(link.requests for link in links),
        commands=scheduler.commands,
        bytes_up=sum(link.bytes_up for link in links),
        bytes_down=sum(link.bytes_down for link in links),
    )
