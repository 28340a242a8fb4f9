"""A dialog that asks for one line: a note, a tag, a folder."""

from collections.abc import Callable

from textual import on
from textual.app import ComposeResult
from textual.widgets import Button, Input, Static

from lumitui.app.runs import InputError
from lumitui.app.tui.dialogs.dialog_box import DialogBox, buttons
from lumitui.app.tui.widgets.input import LineInput
from lumitui.app.tui.widgets.styled import plain


class LineDialog(DialogBox[str | None]):
    """One line; None if the user closed the dialog."""

    KIND = "line"

    def __init__(
        self, title: str, words: str, value: str = "", *, check: Callable[[str], object] = str
    ) -> None:
        """Ask for a line, initially `value`; `check` raises InputError for an invalid line."""
        super().__init__()
        self.heading, self._words, self._value, self._check = title, words, value, check

    def content(self) -> ComposeResult:
        """Yield the question, the line, its error, and two buttons."""
        yield Static(plain(self._words), markup=False)
        # The text is not selected, or the first letter typed would replace a note with its tags.
        yield LineInput(self._value, compact=True, id="line", select_on_focus=False)
        yield Static(id="wrong", markup=False)
        yield buttons(no="Close", yes="OK")

    @on(Button.Pressed, "#yes")
    @on(Input.Submitted)
    def _submit(self) -> None:
        line = self.query_one("#line", Input).value.strip()
        try:
            self._check(line)
        except InputError as error:
            self.query_one("#wrong", Static).update(plain(str(error), "bold yellow"))
        else:
            self.dismiss(line)


def folder_line(line: str) -> None:
    """Check the line for a folder.

    Raises:
        InputError: the line is empty, or has a null byte.
    """
    if not line or "\0" in line:
        raise InputError("Type a folder.", "The results are copied there.")
