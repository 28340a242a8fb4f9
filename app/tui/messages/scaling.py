"""How runs scale: the screen, its study, and several runs sent at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen

from lumitui.app.tui.messages.common import Answer

if TYPE_CHECKING:
    from lumitui.app.history.listing.series_runs import Series
    from lumitui.app.launch.send.preview import Preview
    from lumitui.app.scale.scaling.studies import Question
    from lumitui.app.scale.scaling.study import Scaling
    from lumitui.app.scale.series_words import Outcome, Standing
    from lumitui.remote.site.errors import LumiError


@dataclass(eq=False, repr=False)
class ScalingWanted(Message):
    """Open the screen that says how a run scales."""

    run_id: str


@dataclass(eq=False, repr=False)
class StudyWanted(Message):
    """Study how a run scales; no site is asked."""

    reply_to: MessagePump
    number: int
    """Of the request: the answer to an earlier one is dropped."""
    run_id: str
    question: Question


@dataclass(eq=False, repr=False)
class StudyMade(Answer, bubble=False):
    """How a run scales, or why that cannot be said."""

    number: int
    outcome: Scaling | LumiError


@dataclass(eq=False, repr=False)
class SeriesEnded(Answer, bubble=False):
    """The sends of a grid, or of a run on several sizes, are over."""

    dialog: Screen[None]
    series: Series | None
    """None: nothing could be sent, and the error is shown."""
    outcomes: tuple[Outcome, ...]


@dataclass(eq=False, repr=False)
class UnsentFound(Answer, bubble=False):
    """The grids, and the runs on several sizes, of which not all was sent."""

    standings: tuple[Standing, ...]


@dataclass(eq=False, repr=False)
class RestReady(Answer, bubble=False):
    """What is left of one of them can be sent; the person asked for that."""

    standing: Standing
    previews: tuple[Preview, ...]
    """Of what is left."""
