"""The dialogs of a job file that is not saved: whether it is, and where."""

from typing import ClassVar, Literal

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

Answer = Literal["save", "discard", "stay"]


class LeaveDialog(ModalScreen[Answer | None]):
    """Save, discard, or stay; anything unclear stays."""

    AUTO_FOCUS = "#stay"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s,w", "answer('save')", "Save", id="leave.save", tooltip="Save, then leave"),
        Binding("d", "answer('discard')", "Discard", id="leave.discard",
                tooltip="Leave and lose the edits"),
        Binding("escape,n", "answer('stay')", "Stay", id="leave.stay", tooltip="Keep editing"),
        Binding("left,right", "app.focus_next", show=False, id="leave.other",
                tooltip="Go to the other button"),
    ]  # fmt: skip

    def __init__(self, name: str) -> None:
        """Ask about the job file `name`."""
        super().__init__()
        self._name = name

    def compose(self) -> ComposeResult:
        """Yield the question and three buttons."""
        yield footer()
        with Vertical(classes="dialog") as box:
            box.border_title = "Save the edits?"
            yield Static(plain(f"{self._name} was changed and is not saved."), markup=False)
            with Horizontal(classes="buttons"):
                yield Button(Text("Stay (n)"), id="stay", compact=True)
                yield Button(Text("Discard (d)"), id="discard", compact=True, variant="error")
                yield Button(Text("Save (s)"), id="save", compact=True)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        answers: dict[str | None, Answer] = {"save": "save", "discard": "discard"}
        self.dismiss(answers.get(event.button.id, "stay"))

    def action_answer(self, answer: Answer) -> None:
        """Close the dialog with the answer."""
        self.dismiss(answer)


class SaveDialog(ModalScreen[str | None]):
    """The path that a job file is saved to; None: it is not."""

    AUTO_FOCUS = "#save-path"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close", id="save.close", tooltip="Save nothing"),
    ]

    def __init__(self, path: str) -> None:
        """Suggest `path`."""
        super().__init__()
        self._path = path

    def compose(self) -> ComposeResult:
        """Yield the line for the path."""
        yield footer()
        with Vertical(classes="dialog save") as box:
            box.border_title = "Save the job file as"
            yield LineInput(self._path, id="save-path", compact=True, select_on_focus=False)

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)

    def action_close(self) -> None:
        """Save nothing."""
        self.dismiss(None)
