"""The dialog for login prompts: a code, a passphrase, a host key."""

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

    # A host key has no field: the user must trust it explicitly.
    AUTO_FOCUS = "#answer, #no"

    def __init__(self, question: LoginQuestion) -> None:
        """Ask `question`."""
        super().__init__()
        self._question, self._is_key = question, question.kind == "host-key"
        of_site = f" for {question.site}" if question.site else ""
        asks = f"Question from {question.site or 'the site'}"
        self.heading = f"Is this the right host{of_site}?" if self._is_key else asks

    def content(self) -> ComposeResult:
        """Yield the question and a field, or two buttons for a host key."""
        with VerticalScroll():
            yield Static(plain(self._question.text), markup=False)
        if not self._is_key:
            yield LineInput(password=self._question.secret, compact=True, id="answer")
        yield buttons(no="Decline", yes="Yes, trust it" if self._is_key else "Answer")

    @on(Button.Pressed, "#yes")
    @on(Input.Submitted)
    def _answer(self) -> None:
        self.dismiss("yes" if self._is_key else self.query_one("#answer", Input).value)
