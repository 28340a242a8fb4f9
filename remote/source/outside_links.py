"""Links that lead out of what is sent: where they lead, and which of them a user wants followed.

A link in a folder that somebody unpacked may lead to any file of this machine. So nobody follows it
unless a pattern of `follow_links:` names it, and then what it leads to is searched for secrets.
"""

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lumitui.remote.source.guard import covering

_MOST_HOPS = 40  # as Linux has it (path_resolution(7))


@dataclass(frozen=True)
class Follow:
    """Which links out are followed, and those that were."""

    words: Sequence[str] = ()
    """Patterns as `ship_secrets:` has them."""
    taken: dict[str, Path] = field(default_factory=dict)
    """Each file behind such a link: the path that it gets, and its real path on this machine."""

    def names(self, *paths: str) -> bool:
        """Whether a pattern names one of the forms of a link's path, or a folder above it."""
        return any(covering(self.words, path) is not None for path in paths)


def hops(place: Path) -> list[Path]:
    """Return the paths that a link leads to, one after the other; the last one is not a link.

    Raises:
        OSError: it cannot be read, or leads round in a circle.
    """
    paths: list[Path] = []
    at = place
    while os.path.islink(at):
        if len(paths) == _MOST_HOPS:
            raise OSError(errno.ELOOP, "it leads round in a circle")
        target = os.path.join(os.path.realpath(at.parent), os.readlink(at))
        above, name = os.path.split(target)
        plain = name in ("", ".", "..")
        at = Path(
            os.path.realpath(target) if plain else os.path.join(os.path.realpath(above), name)
        )
        paths.append(at)
    return paths


def names_of(place: Path) -> list[str]:
    """Return the ends of the paths that a link leads to, as the rules about names read them."""
    return ["/".join(hop.parts[-3:]) for hop in hops(place)]


def way(target: str, place: Path) -> str:
    """Return the words for where the link at `place` leads, whose text is `target`."""
    real = os.path.realpath(place)
    return repr(target) if real == target else f"{target!r} ({real})"
