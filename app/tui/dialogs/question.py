"""The dialog for what a connection needs to know: a code, a passphrase, whether a key is right."""

from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from lumitui.app.runs import LoginQuestion
from lumitui.app.tui.widgets.bars import footer
from lumitui.app.tui.widgets.input import LineInput
from lumitui.app.tui.widgets.styled import plain


class QuestionDialog(ModalScreen[str | None]):
    """A question while a connection is made; None: declined."""

    # There is no field for a host key: it is trusted only on purpose.
    AUTO_FOCUS = "#answer, #no"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "decline", "Decline", id="ask.decline", tooltip="Do not answer"),
    ]

    def __init__(self, question: LoginQuestion) -> None:
        """Ask `question`."""
        super().__init__()
        self._question = question

    @property
    def _is_key(self) -> bool:
        return self._question.kind == "host-key"

    def compose(self) -> ComposeResult:
        """Yield the question and a field, or two buttons for a host key."""
        yield footer()
        with Vertical(classes="dialog") as box:
            site = self._question.site
            title = f"Is this the right host{f' for {site}' if site else ''}?"
            box.border_title = plain(title if self._is_key else f"{site or 'The site'} asks")
            with VerticalScroll():
                yield Static(plain(self._question.text), markup=False)
            if not self._is_key:
                yield LineInput(password=self._question.secret, compact=True, id="answer")
            with Horizontal(classes="buttons"):
                yield Button(Text("Decline"), id="no", compact=True)
                label = "Yes, trust it" if self._is_key else "Answer"
                yield Button(Text(label), id="yes", compact=True)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "no":
            self.dismiss(None)
        else:
            self._answer()

    @on(Input.Submitted)
    def _answer(self) -> None:
        self.dismiss("yes" if self._is_key else self.query_one("#answer", Input).value)

    def action_decline(self) -> None:
        """Close the dialog without an answer."""
        self.dismiss(None)
