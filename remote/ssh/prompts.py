"""Questions that only a user can answer while a connection is made, and whether one waits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from lumitui.remote.site.errors import AnswerNeeded


@dataclass(frozen=True)
class LoginQuestion:
    """Something only the user can answer while a connection is made."""

    text: str
    secret: bool
    """Whether the answer is hidden while it is typed."""
    kind: Literal["passphrase", "password", "otp", "host-key"]
    """`host-key` is accepted with `yes`; any other answer declines."""
    site: str = ""
    """The site that the connection is for; "": nobody said."""


Ask = Callable[[LoginQuestion], str | None]
"""Puts a question to the user; None: they declined. Called from any thread."""

_attended: ContextVar[bool] = ContextVar("attended", default=True)


def is_attended() -> bool:
    """Whether a user waits for the present request, so that a login may ask them."""
    return _attended.get()


@contextmanager
def attendance(person: bool) -> Iterator[None]:
    """Declare whether a `person` waits for the requests of this block.

    A login asks only a user who waits. A refresh that a timer started would otherwise repeat
    its question after every cut of the connection.
    """
    token = _attended.set(person)
    try:
        yield
    finally:
        _attended.reset(token)


def answer_needed(what: str) -> AnswerNeeded:
    """Return the error of a login that waits for a user; `what` is what only they have."""
    return AnswerNeeded(
        f"Needs your {what}.", "Press r in the list of runs, or run `lumitui status`."
    )
