"""A dialog that asks for one line: a note, a tag, a folder."""

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from lumitui.app.runs import InputError
from lumitui.app.tui.widgets.bars import footer
from lumitui.app.tui.widgets.input import LineInput
from lumitui.app.tui.widgets.styled import plain


class LineDialog(ModalScreen[str | None]):
    """One line; None: the user did not want to."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Leave", id="line.leave", tooltip="Change nothing"),
    ]

    def __init__(
        self, title: str, words: str, value: str = "", *, check: Callable[[str], object] = str
    ) -> None:
        """Ask for a line, `value` at first; `check` raises InputError for one that is wrong."""
        super().__init__()
        self._title, self._words, self._value, self._check = title, words, value, check

    def compose(self) -> ComposeResult:
        """Yield what is asked, the line, what is wrong with it, and two buttons."""
        yield footer()
        with Vertical(classes="dialog line") as box:
            box.border_title = plain(self._title)
            yield Static(plain(self._words), markup=False)
            # Not selected: the first letter would replace a note with its tags.
            yield LineInput(self._value, compact=True, id="line", select_on_focus=False)
            yield Static(id="wrong", markup=False)
            with Horizontal(classes="buttons"):
                yield Button(Text("Leave"), id="no", compact=True)
                yield Button(Text("OK"), id="yes", compact=True)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "no":
            self.dismiss(None)
        else:
            self._submit()

    @on(Input.Submitted)
    def _submit(self) -> None:
        line = self.query_one("#line", Input).value.strip()
        try:
            self._check(line)
        except InputError as error:
            self.query_one("#wrong", Static).update(plain(str(error), "bold yellow"))
        else:
            self.dismiss(line)

    def action_leave(self) -> None:
        """Close the dialog; nothing changes."""
        self.dismiss(None)


def folder_line(line: str) -> None:
    """Check the line that names a folder.

    Raises:
        InputError: it names none.
    """
    if not line or "\0" in line:
        raise InputError("There is no folder.", "Type where the files should go.")
