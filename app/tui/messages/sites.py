"""Refreshes of the sites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message
from textual.message_pump import MessagePump

from lumitui.app.tui.messages.common import Answer

if TYPE_CHECKING:
    from lumitui.app.follow.refresh import Refreshed
    from lumitui.app.follow.sites.cluster_overviews import RunGpus
    from lumitui.remote.site.errors import LumiError


@dataclass(eq=False, repr=False)
class ClusterWanted(Message):
    """Open the screen Cluster at a site."""

    site: str


@dataclass(eq=False, repr=False)
class GpusWanted(Message):
    """Read the GPUs of a running job."""

    reply_to: MessagePump
    run_id: str


@dataclass(eq=False, repr=False)
class GpusRead(Answer, bubble=False):
    """What the GPUs of a job do, or why they could not be read; neither: nobody is there."""

    found: RunGpus | None
    error: LumiError | None = None


@dataclass(eq=False, repr=False)
class ClusterAsked(Message):
    """Ask a site for its nodes, queue, reservations and budget."""

    reply_to: MessagePump
    site: str
    attended: bool
    """Whether the person asked for it, so that a login may ask them."""


@dataclass(eq=False, repr=False)
class ClusterAnswered(Answer, bubble=False):
    """A site was asked for its overview; `error` says why there is none."""

    site: str
    error: LumiError | None = None


@dataclass(eq=False, repr=False)
class RefreshWanted(Message):
    """Refresh the sites now."""


@dataclass(eq=False, repr=False)
class SiteRefreshed(Answer, bubble=False):
    """A refresh of a site is over."""

    site: str
    refreshed: Refreshed | None
    """None: it failed, and the error is shown."""
    pause: float
    """Seconds until the next refresh."""
