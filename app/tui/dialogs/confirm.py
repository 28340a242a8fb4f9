"""The question before anything is sent or cancelled: yes or no."""

from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from lumitui.app.tui.widgets.bars import footer
from lumitui.app.tui.widgets.styled import labelled, plain


class Confirm(ModalScreen[bool]):
    """Yes or no; No has the focus, and everything but a clear yes is No."""

    AUTO_FOCUS = "#no"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes", id="confirm.yes", tooltip="Yes, do it"),
        Binding("n,escape", "answer(False)", "No", id="confirm.no", tooltip="No, do nothing"),
        Binding("left,right", "app.focus_next", show=False, id="confirm.other",
                tooltip="Go to the other button"),
    ]  # fmt: skip

    def __init__(self, title: str, lines: list[tuple[str, str]], yes: str) -> None:
        """Ask `title` with `lines` of (label, value); `yes` is the label of the Yes button."""
        super().__init__()
        self._title, self._lines, self._yes = title, lines, yes

    def compose(self) -> ComposeResult:
        """Yield the question, its facts and two buttons."""
        yield footer()
        with Vertical(classes="dialog") as box:
            box.border_title = plain(self._title)
            yield Static(labelled(self._lines), markup=False)
            with Horizontal(classes="buttons"):
                yield Button(Text("No (n)"), id="no", compact=True)
                yield Button(Text(f"{self._yes} (y)"), id="yes", compact=True, variant="error")

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, answer: bool) -> None:
        """Close the dialog with the answer."""
        self.dismiss(answer)
