"""The yes-or-no dialog before lumitui sends or cancels anything, or trusts a host."""

import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Button, Static

from lumitui.app.runs import LumiError
from lumitui.app.tui import messages
from lumitui.app.tui.dialogs.dialog_box import DialogBox, buttons
from lumitui.app.tui.widgets.styled import labelled, plain

Lines = Sequence[tuple[str, str]]
"""The (label, value) of each fact."""
PAUSE = 0.7
"""Seconds that a fast typist needs to notice a question."""
LEAST, MOST = 44, 72
"""Minimum width of the box, in cells, and its maximum for facts that fit a line."""
AROUND = 6
"""Cells that the border takes beside its title."""


class Confirm(DialogBox[bool]):
    """Yes or no; No has the focus, and anything except a clear yes is No."""

    KIND = "confirm"
    AUTO_FOCUS = "#no"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "yes", "Yes", id="confirm.yes", tooltip="Yes, do it"),
        Binding("n,escape", "close", "No", key_display="n", id="confirm.no",
                tooltip="No, do nothing"),
        Binding("down,pagedown", "scroll_facts(1)", "Down", show=False, id="confirm.down",
                tooltip="Scroll the facts down"),
        Binding("up,pageup", "scroll_facts(-1)", "Up", show=False, id="confirm.up",
                tooltip="Scroll the facts up"),
    ]  # fmt: skip

    def __init__(
        self,
        title: str,
        lines: Lines,
        yes: str,
        *,
        no: str = "",
        now: Callable[[], Lines | None] | None = None,
        patient: bool = False,
    ) -> None:
        """Ask `title` above `lines` of (label, value); `yes` is the label of the Yes button.

        A no shows the toast `no`, such as "Nothing was sent.".

        `now` returns the current lines, once a second; if it returns None, the question is obsolete
        and closes with a no. With `patient`, a yes within `PAUSE` is ignored: the letter was meant
        for the previous field.
        """
        super().__init__()
        self.heading, self._lines, self._yes, self._no, self._now = title, lines, yes, no, now
        self._heard_from = time.monotonic() + (PAUSE if patient else 0.0)

    def content(self) -> ComposeResult:
        """Yield the facts and two buttons."""
        yield Static(labelled(list(self._lines)), id="facts", markup=False)
        yield buttons(no="No (n)", yes=f"{self._yes} (y)")

    def on_mount(self) -> None:
        """Fit the box to its title and facts, such as a key; update them until the answer."""
        widths = [max(map(cell_len, column)) for column in zip(*self._lines, strict=True)]
        wide = min(MOST, sum(widths) + 2 + AROUND, self.app.size.width * 9 // 10)
        for box in self.query(".dialog"):
            box.styles.min_width = max(LEAST, wide, plain(self.heading).cell_len + AROUND)
        for yes in self.query("#yes").results(Button):
            yes.variant = "error"
        if self._now is not None:
            self.set_interval(1.0, self._look)

    def action_scroll_facts(self, lines: int) -> None:
        self.query_one(".dialog").scroll_relative(y=lines, animate=False)

    @on(messages.HistoryChanged)
    def _look(self) -> None:
        """Show the current facts; close an obsolete question once it is on top."""
        if self._now is None or not self.is_active:
            return
        try:
            lines = self._now()
        except LumiError:
            return  # the previous facts are still the best available
        if lines is None:
            self._now = None
            self.dismiss(False)
        elif lines != self._lines:
            self._lines = lines
            self.query_one("#facts", Static).update(labelled(list(lines)))

    @on(events.DescendantFocus)
    def _name_focus(self) -> None:
        """Name the button that enter presses."""
        label = {"no": "No", "yes": self._yes}.get(getattr(self.focused, "id", None) or "", "")
        self.query_one(".dialog").border_subtitle = plain(f"enter: {label}" if label else "")

    @on(Button.Pressed, "#yes")
    def _agree(self) -> None:
        self.dismiss(True)

    def action_yes(self) -> None:
        if time.monotonic() >= self._heard_from:
            self._agree()

    def action_close(self) -> None:
        self.dismiss(False)
        if self._no:
            self.app.notify(self._no, markup=False)
