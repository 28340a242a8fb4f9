"""Small dialogs: yes or no, an error, a question of the connection, a send under way, help."""

from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Button, Input, Static

from lumitui.app.send.submit import SEND_STEPS
from lumitui.app.tui import messages
from lumitui.app.tui.screens.page import footer
from lumitui.app.tui.widgets.input import Line
from lumitui.app.tui.widgets.wording import plain
from lumitui.remote.errors import LumiError
from lumitui.remote.ssh.prompts import Question


class Confirm(ModalScreen[bool]):
    """Yes or no; No has the focus, and everything but a clear yes is No."""

    AUTO_FOCUS = "#no"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes", id="confirm.yes", tooltip="Do it"),
        Binding("n,escape", "answer(False)", "No", id="confirm.no", tooltip="Leave it"),
        Binding("left,right", "app.focus_next", show=False, id="confirm.other",
                tooltip="The other button"),
    ]  # fmt: skip

    def __init__(self, title: str, lines: list[tuple[str, str]], yes: str) -> None:
        """Ask `title` with `lines` of (what, value); `yes` names what is done."""
        super().__init__()
        self._title, self._lines, self._yes = title, lines, yes

    def compose(self) -> ComposeResult:
        """The question, its facts, two buttons."""
        yield footer()
        with Vertical(classes="dialog") as box:
            box.border_title = plain(self._title)
            yield Static(facts(self._lines), markup=False)
            with Horizontal(classes="buttons"):
                yield Button(Text("No (n)"), id="no", compact=True)
                yield Button(Text(f"{self._yes} (y)"), id="yes", compact=True, variant="error")

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, answer: bool) -> None:
        """Answer."""
        self.dismiss(answer)


class ErrorDialog(ModalScreen[None]):
    """What happened, and what to try."""

    AUTO_FOCUS = "Button"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "close", "Close", id="error.close", tooltip="Close the message"),
    ]

    def __init__(self, error: LumiError) -> None:
        """Show `error`."""
        super().__init__()
        self._error = error

    def compose(self) -> ComposeResult:
        """Message, hint, one button."""
        yield footer()
        with Vertical(classes="dialog error") as box:
            box.border_title = "That did not work"
            with VerticalScroll():
                yield Static(plain(self._error.message), id="message", markup=False)
                yield Static(plain(self._error.hint), id="hint", markup=False)
            with Horizontal(classes="buttons"):
                yield Button(Text("Close"), action="screen.close", compact=True)

    def action_close(self) -> None:
        """Close it."""
        self.dismiss()


class AskDialog(ModalScreen[str | None]):
    """A question while a connection is made; None: declined."""

    # A host's key has no field to answer in: it is trusted only on purpose.
    AUTO_FOCUS = "#answer, #no"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "decline", "Decline", id="ask.decline", tooltip="Do not answer"),
    ]

    def __init__(self, question: Question) -> None:
        """Ask `question`."""
        super().__init__()
        self._question = question

    @property
    def _is_key(self) -> bool:
        return self._question.kind == "host-key"

    def compose(self) -> ComposeResult:
        """The question and a field, or two buttons for a host's key."""
        yield footer()
        with Vertical(classes="dialog") as box:
            box.border_title = "Is this the right host?" if self._is_key else "The site asks"
            with VerticalScroll():
                yield Static(plain(self._question.text), markup=False)
            if not self._is_key:
                yield Line(password=self._question.secret, compact=True, id="answer")
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
        """Do not answer."""
        self.dismiss(None)


class SendingDialog(ModalScreen[None]):
    """The steps of a send. It can be hidden; the send goes on."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "hide", "Hide", id="sending.hide", tooltip="Hide this; it goes on"),
    ]

    def __init__(self, name: str) -> None:
        """Show the send of the job `name`."""
        super().__init__()
        self._job, self._step, self._words = name, "", ""
        self._over = self._hidden = False

    def compose(self) -> ComposeResult:
        """One line a step."""
        yield footer()
        with Vertical(classes="dialog") as box:
            box.border_title = plain(f"Sending {self._job}")
            yield Static(self._steps(), id="steps", markup=False)
            yield Static("esc hides this; the send goes on.", classes="dim", markup=False)

    def _steps(self) -> Text:
        text, at = Text(), SEND_STEPS.index(self._step) if self._step in SEND_STEPS else 0
        for index, step in enumerate(SEND_STEPS):
            sign = "done" if index < at else "now " if index == at else "    "
            words = plain(f"  {self._words}").plain if index == at else ""
            text.append(f"{sign}  {step}{words}\n", "" if index <= at else "dim")
        return text

    @on(messages.StepReported)
    def _reported(self, event: messages.StepReported) -> None:
        self._step, self._words = event.step, event.words
        for steps in self.query("#steps").results(Static):
            steps.update(self._steps())

    def finish(self) -> bool:
        """Close it, now or as soon as it is on top; returns whether the person still sees it."""
        self._over = True
        seen = self.is_active
        self.on_screen_resume()
        return seen

    def on_screen_resume(self) -> None:
        """A question that lay on top has been answered."""
        if self._over:
            self.action_hide()

    def action_hide(self) -> None:
        """Hide it, once, when it is on top; below a dialog it is current too, for Textual."""
        if self.is_active and not self._hidden:
            self._hidden = True
            self.dismiss()


class HelpDialog(ModalScreen[None]):
    """The keys of the screen below, from its bindings."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "close", "Close", id="help.close",
                tooltip="Close the help"),
    ]  # fmt: skip

    def __init__(self, keys: list[tuple[str, str]]) -> None:
        """Show `keys` with what each does."""
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        """One line a key."""
        yield footer()
        with Vertical(classes="dialog help") as box:
            box.border_title = "Keys here"
            with VerticalScroll():
                yield Static(facts(self._keys), markup=False)

    def action_close(self) -> None:
        """Close it."""
        self.dismiss()


def keys_of(screen: Screen[object]) -> list[tuple[str, str]]:
    """Return the keys that work on `screen`, with what they do; one line a binding."""
    lines: dict[str, tuple[list[str], str]] = {}
    for active in screen.active_bindings.values():
        binding = active.binding
        if binding.id:
            keys, _ = lines.setdefault(binding.id, ([], active.tooltip or binding.description))
            shown = screen.app.get_key_display(binding)
            if shown not in keys:
                keys.append(shown)
    return [(" ".join(keys), words) for keys, words in lines.values()]


def facts(lines: list[tuple[str, str]]) -> Table:
    """Return lines of (what, value) as a table without lines; neither is markup."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for what, value in lines:
        table.add_row(Text(what, style="dim"), plain(value))
    return table
