"""What lumitui does with one option of the ssh configuration."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["honoured", "harmless", "refused"]


@dataclass(frozen=True)
class Row:
    """One option. Text is a sentence or the part of one that says it."""

    verdict: Verdict
    why: str
    """What honours it, why it has no effect, or why it cannot be honoured."""
    unless: tuple[str, ...] = ()
    """Values (patterns, in lower case) with which it is neither refused nor worth a note."""
    fix: str = ""
    """What to do where it is refused."""
    note: str = ""
    """What a person should know when it has another value than those of `unless`."""
    default: str = ""
    """The value of OpenSSH 10 where nothing is set; used on machines without OpenSSH."""
    also: tuple[str, ...] = ()
    """Older names of the option."""


def honoured(how: str, *, default: str = "", also: tuple[str, ...] = ()) -> Row:
    """Return the row of an option that has the effect which ssh_config(5) describes."""
    return Row("honoured", how, default=default, also=also)


def harmless(why: str, *, unless: tuple[str, ...] = (), note: str = "") -> Row:
    """Return the row of an option without which lumitui is no less strict than OpenSSH."""
    return Row("harmless", why, unless=unless, note=note)
