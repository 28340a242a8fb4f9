"""The base of all dialogs: a titled box that can be closed, and the footer with its keys."""

from typing import ClassVar, TypeVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button

from lumitui.app.tui.widgets.bars import footer
from lumitui.app.tui.widgets.styled import plain

Answer = TypeVar("Answer")
WIDE = 100
"""Minimum cells of a terminal in which a wide box is inset, and the help shows names of keys."""


class DialogBox(ModalScreen[Answer]):
    """A box above a screen."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - as Textual types it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close", id="dialog.close", tooltip="Close; change nothing"),
        Binding("right", "app.focus_next", show=False, id="dialog.next",
                tooltip="Go to the next button"),
        Binding("left", "app.focus_previous", show=False, id="dialog.previous",
                tooltip="Go to the previous button"),
    ]  # fmt: skip
    KIND: ClassVar[str] = ""
    heading = ""
    subtitle = ""

    def compose(self) -> ComposeResult:
        """Yield the keys and the box."""
        yield footer()
        with Vertical(classes=f"dialog {self.KIND}") as box:
            box.border_title, box.border_subtitle = plain(self.heading), self.subtitle
            yield from self.content()

    def content(self) -> ComposeResult:
        """Yield the widgets in the box."""
        raise NotImplementedError

    @on(Button.Pressed, "#no")
    def _declined(self) -> None:
        self.action_close()

    def action_close(self) -> None:
        self.dismiss(None)


def buttons(**labels: str) -> Horizontal:
    """Return a row of buttons with a label for each id. The button `no` closes the dialog."""
    made = (Button(Text(label), id=name, compact=True) for name, label in labels.items())
    return Horizontal(*made, classes="buttons")
