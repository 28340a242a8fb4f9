"""The dialog that asks for a folder on this machine."""

from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from lumitui.app.tui.widgets.bars import footer
from lumitui.app.tui.widgets.input import LineInput
from lumitui.app.tui.widgets.styled import plain


class FolderDialog(ModalScreen[Path | None]):
    """Where to put something; None: nowhere."""

    AUTO_FOCUS = "#folder-path"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close", id="folder.close", tooltip="Fetch nothing"),
    ]

    def __init__(self, what: str, folder: Path) -> None:
        """Ask where `what` goes, `folder` is proposed."""
        super().__init__()
        self._what, self._folder = what, folder

    def compose(self) -> ComposeResult:
        """Yield what is fetched, the field and the buttons."""
        yield footer()
        with Vertical(classes="dialog") as box:
            box.border_title = "Fetch into which folder?"
            yield Static(plain(self._what), markup=False)
            yield LineInput(str(self._folder), compact=True, id="folder-path")
            with Horizontal(classes="buttons"):
                yield Button(Text("Close"), id="no", compact=True)
                yield Button(Text("Fetch"), id="yes", compact=True)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "no":
            self.dismiss(None)
        else:
            self._answer()

    @on(Input.Submitted)
    def _answer(self) -> None:
        typed = self.query_one("#folder-path", Input).value.strip()
        if typed:
            self.dismiss(Path(typed).expanduser())

    def action_close(self) -> None:
        """Close the dialog; nothing is fetched."""
        self.dismiss(None)
