"""The questions of a login, and whether a user is waiting to answer them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from lumitui.remote.site.errors import AnswerNeeded


@dataclass(frozen=True)
class LoginQuestion:
    """A question that only the user can answer during a login."""

    text: str
    secret: bool
    """Whether to hide the answer while the user types it."""
    kind: Literal["passphrase", "password", "otp", "host-key"]
    """For `host-key`, `yes` accepts; any other answer declines."""
    site: str = ""
    """The site of the connection; "" if unknown."""


Ask = Callable[[LoginQuestion], str | None]
"""Asks the user a question and returns the answer; None if declined. Thread-safe."""

_attended: ContextVar[bool] = ContextVar("attended", default=True)


def is_attended() -> bool:
    """Return whether a user is waiting for the current request, so that a login may ask them."""
    return _attended.get()


@contextmanager
def attendance(attended: bool) -> Iterator[None]:
    """Declare whether a user is waiting for the requests of this block.

    A login asks only a waiting user. Otherwise a refresh by a timer would repeat its question each
    time the connection is lost.
    """
    token = _attended.set(attended)
    try:
        yield
    finally:
        _attended.reset(token)


def answer_needed(what: str) -> AnswerNeeded:
    """Return the error for a login that needs the user's `what`."""
    return AnswerNeeded(
        f"Needs your {what}.", "Press r in the list of runs, or run `lumitui status`."
    )
