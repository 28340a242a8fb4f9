"""Previews, sends, resubmissions and cancels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen

from lumitui.app.tui.messages.common import Answer

if TYPE_CHECKING:
    from lumitui.app.history.run import Run
    from lumitui.app.launch.send.preview import Preview
    from lumitui.app.scale.resubmission import CodeNews, Resubmission
    from lumitui.app.scale.run_plan import Start
    from lumitui.remote.site.errors import LumiError


@dataclass(eq=False, repr=False)
class ResubmitWanted(Message):
    """Open the dialog that sends a run again on `factor` times its nodes."""

    run_id: str
    factor: int
    settings: tuple[str, ...] = ()
    """What the dialog begins with, as `key=value`."""


@dataclass(eq=False, repr=False)
class PlanWanted(Message):
    """Plan a resubmission; nothing is sent."""

    reply_to: MessagePump
    number: int
    """Of the request: the answer to an earlier one is dropped."""
    run_id: str
    nodes: int
    settings: tuple[str, ...]
    code: Literal["same", "current"]
    start: Start | None


@dataclass(eq=False, repr=False)
class Planned(Answer, bubble=False):
    """The plan of a resubmission, or why there is none."""

    number: int
    nodes: int
    outcome: Resubmission | LumiError


@dataclass(eq=False, repr=False)
class CodeNewsWanted(Message):
    """Compare the project of a run with the code that it was sent with; no site is asked."""

    reply_to: MessagePump
    run_id: str


@dataclass(eq=False, repr=False)
class CodeNewsFound(Answer, bubble=False):
    """What has changed in the project of a run."""

    news: CodeNews


@dataclass(eq=False, repr=False)
class SendWanted(Message):
    """Send what the person has confirmed."""

    preview: Preview
    resubmission: Resubmission | None = None


@dataclass(eq=False, repr=False)
class StepReported(Answer, bubble=False):
    """A send has reached a step."""

    step: str
    words: str


@dataclass(eq=False, repr=False)
class SendEnded(Answer, bubble=False):
    """A send is over; without a run the error is shown."""

    dialog: Screen[None]
    run: Run | None


@dataclass(eq=False, repr=False)
class CancelWanted(Message):
    """Cancel a run, after asking."""

    run_id: str


@dataclass(eq=False, repr=False)
class RunCancelled(Answer, bubble=False):
    """A cancel is over; without a run it failed."""

    run_id: str
    run: Run | None
    error: LumiError | None = None
    warnings: tuple[str, ...] = ()
