"""The guide: a site that is checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message
from textual.message_pump import MessagePump

from lumitui.app.tui.messages.common import Answer

if TYPE_CHECKING:
    from lumitui.remote.site.errors import LumiError
    from lumitui.remote.survey.doctor.check_result import Check


@dataclass(eq=False, repr=False)
class SiteCheckWanted(Message):
    """Compare a site's profile with the live cluster."""

    reply_to: MessagePump
    site: str
    account: str


@dataclass(eq=False, repr=False)
class JobWanted(Message):
    """Open a job file on the screen New; of the demo, open how it scales when it has."""

    job: Path
    demo: bool = False


@dataclass(eq=False, repr=False)
class SiteChecked(Answer, bubble=False):
    """What was found, or why the site could not be asked."""

    outcome: list[Check] | LumiError
