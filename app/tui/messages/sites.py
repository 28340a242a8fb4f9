"""Refreshes of the sites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from lumitui.app.tui.messages.common import Answer

if TYPE_CHECKING:
    from lumitui.app.watch.refresh import Refreshed


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
