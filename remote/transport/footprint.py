"""What this program has cost a login node so far: counted, not estimated."""

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


def footprint(link: CountedLink, scheduler: CountedScheduler) -> Footprint:
    """Return the present counts."""
    return Footprint(
        logins=link.connections,
        requests=link.requests,
        commands=scheduler.commands,
        bytes_up=link.bytes_up,
        bytes_down=link.bytes_down,
    )
