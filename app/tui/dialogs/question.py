"""The dialog for login prompts: a code, a passphrase."""

from textual import on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Button, Input, Static

from lumitui.app.runs import LoginQuestion
from lumitui.app.tui.dialogs.dialog_box import DialogBox, buttons
from lumitui.app.tui.widgets.input import LineInput
from lumitui.app.tui.widgets.styled import plain


class QuestionDialog(DialogBox[str | None]):
    """A prompt during a login; returns None if the user declines."""

    AUTO_FOCUS = "#answer"

    def __init__(self, question: LoginQuestion) -> None:
        """Ask `question`."""
        super().__init__()
        self._question = question
        self.heading = f"Question from {question.site or 'the site'}"

    def content(self) -> ComposeResult:
        """Yield the question, a field and two buttons."""
        with VerticalScroll():
            yield Static(plain(self._question.text), markup=False)
        yield LineInput(password=self._question.secret, compact=True, id="answer")
        yield buttons(no="Decline", yes="Answer")

    @on(Button.Pressed, "#yes")
    @on(Input.Submitted)
    def _answer(self) -> None:
        self.dismiss(self.query_one("#answer", Input).value)
