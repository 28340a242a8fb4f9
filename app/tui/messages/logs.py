"""The log that is followed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message
from textual.message_pump import MessagePump

from lumitui.app.tui.messages.common import Answer

if TYPE_CHECKING:
    from pathlib import Path

    from lumitui.app.follow.log.log_follower import LogEvent
    from lumitui.app.follow.log.log_pages import Found
    from lumitui.remote.scheduler.log_search import Sought
    from lumitui.remote.scheduler.run_log import Page
    from lumitui.remote.site.errors import LumiError


@dataclass(eq=False, repr=False)
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


@dataclass(eq=False, repr=False)
class UnfollowWanted(Message):
    """Stop following: the log is no longer on the screen."""


@dataclass(eq=False, repr=False)
class LogNews(Answer, bubble=False):
    """What happened to the log that is followed."""

    number: int
    """Of the request; what still comes for an earlier one is dropped."""
    event: LogEvent


@dataclass(eq=False, repr=False)
class PageWanted(Message):
    """Read a part of a run's log that is not on the screen."""

    reply_to: MessagePump
    number: int
    """Of the log on the screen; what comes for an earlier one is dropped."""
    run_id: str
    attempt: int | None
    where: str
    """`before` or `after` what is on the screen, `start` or `end` of the log."""
    start: int = 0
    """Offset of the first byte; the end has none."""
    length: int = 0


@dataclass(eq=False, repr=False)
class PageFound(Answer, bubble=False):
    """A part of a log, or why it cannot be read."""

    wanted: PageWanted
    page: Page | None
    error: LumiError | None = None


@dataclass(eq=False, repr=False)
class SearchWanted(Message):
    """Search a run's log behind or before a byte."""

    reply_to: MessagePump
    run_id: str
    attempt: int | None
    sought: Sought
    at: int
    forward: bool


@dataclass(eq=False, repr=False)
class SearchFound(Answer, bubble=False):
    """Where it is, or why the log cannot be searched."""

    wanted: SearchWanted
    found: Found | None
    error: LumiError | None = None


@dataclass(eq=False, repr=False)
class PagerWanted(Message):
    """Write what is kept of a log to a file that a pager can show."""

    reply_to: MessagePump
    run_id: str
    attempt: int | None


@dataclass(eq=False, repr=False)
class PagerReady(Answer, bubble=False):
    """The file is there; who opens it removes it."""

    path: Path
