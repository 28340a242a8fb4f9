"""A dialog that asks for one line: a note, a tag, a folder, the answer to a login's question."""

from collections.abc import Callable

from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Button, Input, Static

from lumitui.app.runs import InputError
from lumitui.app.tui.dialogs.dialog_box import DialogBox, buttons
from lumitui.app.tui.widgets.input import LineInput
from lumitui.app.tui.widgets.styled import plain


class LineDialog(DialogBox[str | None]):
    """One line; None if the user closed the dialog."""

    AUTO_FOCUS = "#line"
    KIND = "line"

    def __init__(
        self, title: str, words: str, value: str = "", *, check: Callable[[str], object] = str,
        secret: bool = False,
    ) -> None:  # fmt: skip
        """Ask for a line, initially `value`; `check` raises InputError for an invalid line.

        With `secret`, the line is hidden and returned with its blanks.
        """
        super().__init__()
        self.heading, self._words, self._value, self._check = title, words, value, check
        self._secret = secret

    def content(self) -> ComposeResult:
        """Yield the question, the line, its error, and two buttons."""
        with VerticalScroll():
            yield Static(plain(self._words), markup=False)
        # The text is not selected, or the first letter typed would replace a note with its tags.
        yield LineInput(
            self._value, password=self._secret, compact=True, id="line", select_on_focus=False
        )
        yield Static(id="wrong", markup=False)
        yield buttons(no="Close", yes="OK")

    @on(Button.Pressed, "#yes")
    @on(Input.Submitted)
    def _submit(self) -> None:
        line = self.query_one("#line", Input).value
        line = line if self._secret else line.strip()
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
