"""Job files that are being written: opened, checked, and sent as several runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from textual.message import Message

from lumitui.app.tui.messages.common import Answer

if TYPE_CHECKING:
    from textual.message_pump import MessagePump

    from lumitui.app.explain.phrases.price_words import Outlook
    from lumitui.app.launch.send.drafts.draft import Draft
    from lumitui.app.launch.send.drafts.drafts import Checked
    from lumitui.app.launch.send.preview import Preview
    from lumitui.app.survey.inquiry.inquiries import Inquired

Beginning = Literal["file", "example", "run"]
"""What a draft can begin with."""


@dataclass(eq=False, repr=False)
class DraftWanted(Message):
    """Open a draft: a file by its path, an example by its name, or the job file of a run."""

    reply_to: MessagePump
    number: int
    """Of the request: the answer to an earlier one is dropped."""
    kind: Beginning
    value: str


@dataclass(eq=False, repr=False)
class DraftOpened(Answer, bubble=False):
    """The draft; None: there is none, and the error is shown."""

    number: int
    draft: Draft | None


@dataclass(eq=False, repr=False)
class CheckWanted(Message):
    """Check a draft and make its previews; nothing is sent."""

    reply_to: MessagePump
    number: int
    draft: Draft


@dataclass(eq=False, repr=False)
class DraftChecked(Answer, bubble=False):
    """What there is to say about a draft; None: the check failed, and the error is shown."""

    number: int
    checked: Checked | None
    price: Outlook | None = None
    """The price of the first run, with what it probably is and what is left; None: no preview."""


@dataclass(eq=False, repr=False)
class InquiryWanted(Message):
    """Ask the cluster about the first run of a draft; nothing is sent."""

    reply_to: MessagePump
    preview: Preview


@dataclass(eq=False, repr=False)
class InquiryAnswered(Answer, bubble=False):
    """What the cluster says; None: the question failed, and the error is shown."""

    inquired: Inquired | None


@dataclass(eq=False, repr=False)
class SeriesWanted(Message):
    """Send the runs of a grid, which the person has confirmed."""

    previews: tuple[Preview, ...]
