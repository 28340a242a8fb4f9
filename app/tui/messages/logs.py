"""The log that is followed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message
from textual.message_pump import MessagePump

from lumitui.app.tui.messages.common import Answer

if TYPE_CHECKING:
    from lumitui.app.watch.follow_log import LogEvent


@dataclass
class FollowWanted(Message):
    """Follow a run's log; the log followed before is dropped."""

    reply_to: MessagePump
    number: int
    """Of the request: what still comes for an earlier one is dropped."""
    run_id: str
    attempt: int | None = None
    """The attempt on the screen; None: no log is shown yet."""
    offset: int = 0
    """Bytes of its log that the screen has."""


@dataclass
class UnfollowWanted(Message):
    """Stop following: the log is no longer on the screen."""


@dataclass
class LogNews(Answer, bubble=False):
    """What happened to the log that is followed."""

    number: int
    """Of the request; what still comes for an earlier one is dropped."""
    event: LogEvent
