"""What screens ask of the app, and what its workers tell them: all the traffic on one page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen

from lumitui.app.explain.diagnose import Diagnosis
from lumitui.app.history.run import Run
from lumitui.app.results.log_patterns import LogFigures
from lumitui.app.results.summary import Figures
from lumitui.app.runs import Preview, Refreshed, Resubmission, Start
from lumitui.app.watch.follow_log import LogEvent
from lumitui.remote.errors import LumiError

# -- wanted: from a screen up to the app


@dataclass
class RefreshWanted(Message):
    """Refresh the sites now."""


@dataclass
class RunWanted(Message):
    """Open a run at one of its panes."""

    run_id: str
    pane: str = "state"


@dataclass
class ResubmitWanted(Message):
    """Open the dialog that sends a run again on `factor` times its nodes."""

    run_id: str
    factor: int


@dataclass
class PlanWanted(Message):
    """Work out a resubmission; nothing is sent."""

    reply_to: MessagePump
    number: int
    """Of the plan: an answer to an earlier one is too late."""
    run_id: str
    nodes: int
    settings: tuple[str, ...]
    code: Literal["same", "current"]
    start: Start | None


@dataclass
class PreviewWanted(Message):
    """Read a job file and make its launch; nothing is sent."""

    reply_to: MessagePump
    number: int
    """Of the question: an answer to an older one is not shown."""
    path: Path


@dataclass
class SendWanted(Message):
    """Send what the person has confirmed."""

    preview: Preview
    resubmission: Resubmission | None = None


@dataclass
class CancelWanted(Message):
    """Cancel a run, after asking."""

    run_id: str


@dataclass
class WhyWanted(Message):
    """Find out why a run failed."""

    reply_to: MessagePump
    run_id: str


@dataclass
class FiguresWanted(Message):
    """Work out what a run's metrics come to."""

    reply_to: MessagePump
    run_id: str
    offset: int
    """Bytes of metrics.jsonl that history has: an answer to an earlier question is too late."""
    with_log: bool
    """Whether its log is searched too, for the job file's `metrics:`; that asks the site."""


@dataclass
class FollowWanted(Message):
    """Bring a run's log as it grows; ends whatever was followed before."""

    reply_to: MessagePump
    number: int
    """Of this request: what still comes of an earlier one is not for the screen."""
    run_id: str
    attempt: int | None = None
    """What is on the screen already; None: nothing."""
    offset: int = 0
    """Bytes of it."""


@dataclass
class UnfollowWanted(Message):
    """The log is not on the screen any more."""


@dataclass
class Failed(Message):
    """Something a person must be told went wrong."""

    error: LumiError
    repeats: bool = False
    """It may happen again every second: the same words are shown once."""


# -- told: from a worker to the app or to the screen that asked


@dataclass
class Told(Message, bubble=False):
    """An answer; it is for the receiver alone."""


@dataclass
class HistoryChanged(Told, bubble=False):
    """Runs may read otherwise now."""


@dataclass
class SiteRefreshed(Told, bubble=False):
    """A refresh of a site is over."""

    site: str
    refreshed: Refreshed | None
    """None: it failed, and the error is presented."""
    pause: float


@dataclass
class PreviewMade(Told, bubble=False):
    """The launch of a job file; None: it cannot be made, and the error is presented."""

    number: int
    path: Path
    preview: Preview | None


@dataclass
class Planned(Told, bubble=False):
    """A resubmission worked out, or why it cannot be."""

    number: int
    outcome: Resubmission | LumiError


@dataclass
class StepReported(Told, bubble=False):
    """A send has come to a step."""

    step: str
    words: str


@dataclass
class SendEnded(Told, bubble=False):
    """A send is over; without a run the error is presented."""

    dialog: Screen[None]
    run: Run | None


@dataclass
class RunCancelled(Told, bubble=False):
    """A cancel is over; without a run the error is presented."""

    run: Run | None
    warnings: tuple[str, ...] = ()


@dataclass
class WhyFound(Told, bubble=False):
    """Why a run failed, the likeliest first; None: it could not be found out."""

    diagnoses: Sequence[Diagnosis] | None


@dataclass
class FiguresFound(Told, bubble=False):
    """What a run's metrics come to."""

    offset: int
    figures: Figures


@dataclass
class LogFiguresFound(Told, bubble=False):
    """What the job file's `metrics:` found in the log."""

    found: LogFigures


@dataclass
class LogNews(Told, bubble=False):
    """What happened to the log that a screen follows."""

    number: int
    event: LogEvent
