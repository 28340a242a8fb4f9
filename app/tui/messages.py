"""What screens want from the app, and what its workers answer: all messages on one page."""

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
    """Plan a resubmission; nothing is sent."""

    reply_to: MessagePump
    number: int
    """Of the request: the answer to an earlier one is dropped."""
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
    """Of the request: the answer to an earlier one is dropped."""
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
    """Summarise a run's metrics."""

    reply_to: MessagePump
    run_id: str
    offset: int
    """Bytes of metrics.jsonl in history; the answer for fewer bytes is dropped."""
    with_log: bool
    """Whether to search the log too, for the job file's `metrics:`; that asks the site."""


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
class Failed(Message):
    """Show an error."""

    error: LumiError
    repeats: bool = False
    """It may happen again every second: the same error is shown once."""


# -- answers: from a worker to the app or to the screen or pane that asked


@dataclass
class Answer(Message, bubble=False):
    """Something for the receiver alone."""


@dataclass
class HistoryChanged(Answer, bubble=False):
    """Something in history changed: read it again."""


@dataclass
class SiteRefreshed(Answer, bubble=False):
    """A refresh of a site is over."""

    site: str
    refreshed: Refreshed | None
    """None: it failed, and the error is shown."""
    pause: float
    """Seconds until the next refresh."""


@dataclass
class PreviewMade(Answer, bubble=False):
    """The launch of a job file; None: there is none, and the error is shown."""

    number: int
    path: Path
    preview: Preview | None


@dataclass
class Planned(Answer, bubble=False):
    """The plan of a resubmission, or why there is none."""

    number: int
    outcome: Resubmission | LumiError


@dataclass
class StepReported(Answer, bubble=False):
    """A send has reached a step."""

    step: str
    words: str


@dataclass
class SendEnded(Answer, bubble=False):
    """A send is over; without a run the error is shown."""

    dialog: Screen[None]
    run: Run | None


@dataclass
class RunCancelled(Answer, bubble=False):
    """A cancel is over; without a run the error is shown."""

    run: Run | None
    warnings: tuple[str, ...] = ()


@dataclass
class WhyFound(Answer, bubble=False):
    """Why a run failed, the likeliest cause first; None: the search failed."""

    diagnoses: Sequence[Diagnosis] | None


@dataclass
class FiguresFound(Answer, bubble=False):
    """The summary of a run's metrics."""

    offset: int
    figures: Figures


@dataclass
class LogFiguresFound(Answer, bubble=False):
    """What the job file's `metrics:` found in the log."""

    found: LogFigures


@dataclass
class LogNews(Answer, bubble=False):
    """What happened to the log that is followed."""

    number: int
    """Of the request; what still comes for an earlier one is dropped."""
    event: LogEvent
