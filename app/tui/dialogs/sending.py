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

UNANSWERED_SECONDS = 3.0
"""Seconds of silence in a step before the box reports it: the user wants to know why."""


class SendingDialog(DialogBox[None]):
    """The steps of a send. The dialog can be hidden; the send continues."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Hide", id="sending.hide",
                tooltip="Hide this; sending continues"),
        Binding("q", "app.quit", "Quit", id="app.quit", tooltip="Quit, after any unfinished send"),
    ]  # fmt: skip
    is_question: ClassVar[bool] = False

    def __init__(self, name: str, silence: Callable[[], float] = lambda: 0.0) -> None:
        """Show the send of the job `name`; `silence`: seconds since its site last answered."""
        super().__init__()
        self._silence, self._began = silence, time.monotonic()
        self.heading, self._step, self._words = f"Sending {name}", "", ""
        self._over = self._hidden = False

    def content(self) -> ComposeResult:
        """Yield one line for each step."""
        yield Static(self._steps(), id="steps", markup=False)
        yield Static("Press esc to hide this; the send continues.", classes="dim", markup=False)

    def on_mount(self) -> None:
        """Say each second whether the site is heard."""
        self.set_interval(1.0, self._draw)

    def _draw(self) -> None:
        for steps in self.query("#steps").results(Static):
            steps.update(self._steps())

    def _steps(self) -> Text:
        text, at = Text(), SEND_STEPS.index(self._step) if self._step in SEND_STEPS else 0
        for index, step in enumerate(SEND_STEPS):
            sign = "done" if index < at else "now " if index == at else "    "
            words = plain(f"  {self._words}").plain if index == at else ""
            text.append(f"{sign}  {step}{words}", "" if index <= at else "dim")
            silence = self._unanswered() if index == at and self._step else 0.0
            if silence > UNANSWERED_SECONDS:
                text.append(f"  no answer for {length(silence)}", "bold yellow")
            text.append("\n")
        return text

    def _unanswered(self) -> float:
        """Return for how many seconds this step has heard nothing.

        The first step asks, too, where the rest of a series is sent; before it nothing is asked.
        """
        return min(self._silence(), time.monotonic() - self._began)

    def report(self, step: str, words: str) -> None:
        """Show that the send has reached a step."""
        # A transfer speaks of itself; it may use another connection than the one that is watched.
        if (step, words) != (self._step, self._words):
            self._began = time.monotonic()
        self._step, self._words = step, words
        self._draw()

    def finish(self) -> bool:
        """Close it, now or once it is on top; return whether it is on top now."""
        self._over = True
        seen = self.is_active
        self.on_screen_resume()
        return seen

    def on_screen_resume(self) -> None:
        """Close it if the send ended while another dialog was on top."""
        if self._over:
            self.action_close()

    def action_close(self) -> None:
        """Hide it, once and only on top: Textual also calls a screen below a dialog current."""
        if self.is_active and not self._hidden:
            self._hidden = True
            self.dismiss()
