"""Refreshes of the sites."""

from dataclasses import dataclass

from textual.message import Message

from lumitui.app.runs import Refreshed
from lumitui.app.tui.messages.common import Answer


@dataclass
class RefreshWanted(Message):
    """Refresh the sites now."""


@dataclass
class SiteRefreshed(Answer, bubble=False):
    """A refresh of a site is over."""

    site: str
    refreshed: Refreshed | None
    """None: it failed, and the error is shown."""
    pause: float
    """Seconds until the next refresh."""
