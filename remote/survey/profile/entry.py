"""The lines of a proposed profile: a value with its source, a guess, or what is missing."""

from dataclasses import dataclass

Value = str | int | float | bool | tuple[str, ...]
"""What a line of a profile holds."""


@dataclass(frozen=True)
class ProfileLine:
    """One line of a profile."""

    place: tuple[str, ...]
    value: Value
    why: str = ""
    """Where it comes from, or why it is guessed."""
    guess: bool = False


@dataclass(frozen=True)
class MissingFact:
    """A key that nothing could be said about."""

    place: tuple[str, ...]
    what: str
    """What it would be good for, and who knows it."""


@dataclass(frozen=True)
class Proposal:
    """A profile that is proposed, in the order of its lines."""

    name: str
    lines: tuple[ProfileLine | MissingFact, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def guessed(self) -> tuple[str, ...]:
        """The keys that nobody has said, like `work_root`."""
        return tuple(
            ".".join(one.place) for one in self.lines if isinstance(one, ProfileLine) and one.guess
        )
