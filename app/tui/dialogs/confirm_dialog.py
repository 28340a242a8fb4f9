"""The question before anything is sent or cancelled: yes or no."""

import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Button, Static

from lumitui.app.runs import LumiError
from lumitui.app.tui import messages
from lumitui.app.tui.dialogs.dialog_box import DialogBox, buttons
from lumitui.app.tui.widgets.styled import labelled, plain

Lines = Sequence[tuple[str, str]]
"""(label, value) of each fact."""

PAUSE = 0.7
"""Seconds that a fast typist needs to notice a question."""
LEAST = 44
"""Cells of the narrowest box."""
AROUND = 6
"""Cells of the border beside its title."""


class Confirm(DialogBox[bool]):
    """Yes or no; No has the focus, and anything except a clear yes is No."""

    AUTO_FOCUS = "#no"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "yes", "Yes", id="confirm.yes", tooltip="Yes, do it"),
        Binding("n,escape", "close", "No", key_display="n", id="confirm.no",
                tooltip="No, do nothing"),
        Binding("left,right", "app.focus_next", show=False, id="confirm.other",
                tooltip="Go to the other button"),
    ]  # fmt: skip

    def __init__(
        self,
        title: str,
        lines: Lines,
        yes: str,
        *,
        now: Callable[[], Lines | None] | None = None,
        patient: bool = False,
        id: str | None = None,  # noqa: A002 - Textual's name
    ) -> None:
        """Ask `title` with `lines` of (label, value); `yes` is the label of the Yes button.

        `now`: what the lines are now, asked each second; None when there is nothing left to ask,
        which closes the question with a no. `patient`: a yes within `PAUSE` is not one, but a
        letter that was meant for the field before.
        """
        super().__init__(id=id)
        self.heading, self._lines, self._yes, self._now = title, lines, yes, now
        self._heard_from = time.monotonic() + (PAUSE if patient else 0.0)

    def content(self) -> ComposeResult:
        """Yield the question's facts and two buttons."""
        yield Static(labelled(list(self._lines)), id="facts", markup=False)
        yield buttons(no="No (n)", yes=f"{self._yes} (y)")

    def on_mount(self) -> None:
        """Make room for the title, which names the run; update the facts until the answer."""
        for box in self.query(".dialog"):
            box.styles.min_width = max(LEAST, plain(self.heading).cell_len + AROUND)
        for yes in self.query("#yes").results(Button):
            yes.variant = "error"
        if self._now is not None:
            self.set_interval(1.0, self._look)

    @on(messages.HistoryChanged)
    def _look(self) -> None:
        """Show the current facts; close a question whose object is gone, once it is on top."""
        if self._now is None or not self.is_active:
            return
        try:
            lines = self._now()
        except LumiError:
            return  # what was read before is still the best that is known
        if lines is None:
            self._now = None
            self.action_close()
        elif lines != self._lines:
            self._lines = lines
            self.query_one("#facts", Static).update(labelled(list(lines)))

    @on(Button.Pressed, "#yes")
    def _agree(self) -> None:
        self.dismiss(True)

    def action_yes(self) -> None:
        """Answer with a yes."""
        if time.monotonic() >= self._heard_from:
            self._agree()

    def action_close(self) -> None:
        """Answer with a no."""
        self.dismiss(False)
