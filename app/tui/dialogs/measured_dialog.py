"""The dialog with a measured node's report and the profile change to save."""

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Button, Static

from lumitui.app.tui.dialogs.dialog_box import DialogBox, buttons
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import plain

if TYPE_CHECKING:
    from lumitui.app.runs import Looked


class MeasuredDialog(DialogBox[str | None]):
    """A node's report and the profile change; returns "save", "again" or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "answer('save')", "Save", id="measured.save",
                tooltip="Write the measured values to your own profile"),
        Binding("f5", "answer('again')", "Measure", id="measured.again",
                tooltip="Measure a node again; shows the price first"),
    ]  # fmt: skip
    AUTO_FOCUS = "Scroll"
    KIND = "help"

    def __init__(self, looked: "Looked") -> None:
        super().__init__()
        self._looked = looked
        self.heading = f"{looked.measured.host}, measured"

    def content(self) -> ComposeResult:
        """Yield the notes and the change, and three buttons."""
        measured, edited = self._looked.measured, self._looked.edited
        change = edited.diff or "The profile already contains all of this."
        with Scroll():
            yield Static(plain("\n".join([*measured.notes, "", change])), markup=False)
        yield buttons(no="Close", again="Measure again (f5)", save="Save (s)")

    def on_mount(self) -> None:
        """Disable saving if nothing changes."""
        for save in self.query("#save"):
            save.disabled = not self._looked.edited.diff

    @on(Button.Pressed, "#save, #again")
    def _pressed(self, event: Button.Pressed) -> None:
        self.action_answer(event.button.id or "")

    def action_answer(self, word: str) -> None:
        """Close with an answer, if its button is enabled."""
        if word != "save" or self._looked.edited.diff:
            self.dismiss(word)
