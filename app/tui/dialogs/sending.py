"""The dialog with the progress of a send."""

import time
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from lumitui.app.explain.words import length
from lumitui.app.runs import SEND_STEPS
from lumitui.app.tui.dialogs.dialog_box import DialogBox
from lumitui.app.tui.widgets.styled import plain

_DEEDS = {
    "begin": "record the run in the history",
    "sync": "send the code",
    "prepare": "create the run's folder",
    "submit": "submit the job",
    "record": "record the job's id in the history",
}
"""What each step of a send does."""
UNANSWERED_SECONDS = 3.0
"""Seconds of silence in a step before the dialog reports it."""


class SendingDialog(DialogBox[None]):
    """The steps of a send. The send continues if the user hides the dialog."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Hide", id="sending.hide",
                tooltip="Hide this; sending continues"),
        Binding("q", "app.quit", "Quit", id="app.quit", tooltip="Quit, after any unfinished send"),
    ]  # fmt: skip
    is_question: ClassVar[bool] = False

    def __init__(self, name: str, silence: Callable[[], float] = lambda: 0.0) -> None:
        """Show the send of the job `name`; `silence` returns the seconds without an answer."""
        super().__init__()
        self._silence, self._began = silence, time.monotonic()
        self.heading, self._step, self._words = f"Sending {name}", "", ""
        self._over = self._hidden = False

    def content(self) -> ComposeResult:
        """Yield one line for each step."""
        yield Static(self._steps(), id="steps", markup=False)
        yield Static("Press esc to hide this; the send continues.", classes="dim", markup=False)

    def on_mount(self) -> None:
        """Update each second whether the site answers."""
        self.set_interval(1.0, self._draw)

    def _draw(self) -> None:
        for steps in self.query("#steps").results(Static):
            steps.update(self._steps())

    def _steps(self) -> Text:
        text, at = Text(), SEND_STEPS.index(self._step) if self._step in SEND_STEPS else 0
        for index, step in enumerate(SEND_STEPS):
            sign = "done" if index < at else "now " if index == at else "    "
            words = self._words if index == at and step == self._step else ""
            words = plain(words or _DEEDS[step]).plain
            text.append(f"{sign}  {words}", "" if index <= at else "dim")
            now = min(self._silence(), time.monotonic() - self._began)
            silence = now if index == at and self._step else 0.0
            if silence > UNANSWERED_SECONDS:
                text.append(f"  no answer for {length(silence)}", "bold yellow")
            text.append("\n")
        return text

    def report(self, step: str, words: str) -> None:
        """Show that the send has reached a step."""
        # A transfer reports its own progress, possibly over a connection that `silence` does not
        # watch.
        if (step, words) != (self._step, self._words):
            self._began = time.monotonic()
        self._step, self._words = step, words
        self._draw()

    def finish(self) -> bool:
        """Close the dialog, now or once it is on top; return whether it is on top now."""
        self._over = True
        seen = self.is_active
        self.on_screen_resume()
        return seen

    def on_screen_resume(self) -> None:
        """Close the dialog if the send ended while another one was on top."""
        if self._over:
            self.action_close()

    def action_close(self) -> None:
        """Hide the dialog, once and only on top: to Textual, a screen below it is also current."""
        if self.is_active and not self._hidden:
            self._hidden = True
            self.dismiss()
