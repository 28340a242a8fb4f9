"""What screens tell the app whatever they show, and what all of them hear."""

from dataclasses import dataclass

from textual.message import Message

from lumitui.remote.site.errors import LumiError


@dataclass(eq=False, repr=False)
class RunWanted(Message):
    """Open a run at one of its panes."""

    run_id: str
    pane: str = "overview"


@dataclass(eq=False, repr=False)
class Failed(Message):
    """Show an error."""

    error: LumiError
    repeats: bool = False
    """It may happen again every second: the same error is shown once."""


@dataclass(eq=False, repr=False)
class Answer(Message, bubble=False):
    """Something for the receiver alone."""


@dataclass(eq=False, repr=False)
class HistoryChanged(Answer, bubble=False):
    """Something in history changed: read it again."""
