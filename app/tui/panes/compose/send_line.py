"""The line above a draft: the verdict of its check, its price, and the Submit button."""

from typing import Literal

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Button, Static

from lumitui.app.explain.run_phrases import Outlook
from lumitui.app.explain.words import count
from lumitui.app.runs import CheckedDraft
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.check_wait import CheckWait
from lumitui.app.tui.widgets.launch_text import cost_line

_SUBMIT = Text.assemble("Submit ", ("^s", "not bold"))  # so the footer does not name it
_CHECKING = "Checking…"  # of the same width
_WORST_FIRST: tuple[Literal["error", "warning", "note"], ...] = ("error", "warning", "note")
"""What the label before the price counts."""


class SendLine(Horizontal):
    """The verdict and the price of a draft, the wait of a submit, and the Submit button."""

    def __init__(self) -> None:
        super().__init__(id="send")

    def compose(self) -> ComposeResult:
        """Yield the verdict, the price, the wait and the button."""
        yield Static(id="verdict")
        yield Static(id="cost", markup=False)
        yield CheckWait(classes="wait", markup=False)
        yield Button(_SUBMIT, action="screen.submit", compact=True, classes="action")

    def show(self, checked: CheckedDraft, price: Outlook | None) -> None:
        """Show the verdict of a check and the price, or the first error."""
        verdict, text = self.query_one("#verdict", Static), Text()
        found = [one.severity for one in checked.problems]
        worst = next((one for one in _WORST_FIRST if one in found), None)
        verdict.update(count(found.count(worst), worst) if worst else "valid")
        verdict.set_classes(worst or "success")
        if errors := checked.errors:
            text.append("Submit asks for confirmation: " * may_be_forced(checked), "bold")
            text.append_text(styled.plain(errors[0].words))
        elif checked.previews:
            width = self.screen.size.width - self.query_one(Button).outer_size.width
            width -= cell_len(str(verdict.content)) + 3  # of the label's padding and margin
            text.append_text(cost_line(checked.previews, price, width))
        self.query_one("#cost", Static).update(text)

    def enable(self, *, right: bool, valid: bool, waits: bool) -> None:
        """Enable Submit if the check is `right` for the text, and `valid`; else show its wait."""
        button = self.query_one(Button)
        button.disabled = not (right and valid)
        button.label = _CHECKING if waits and not right else _SUBMIT
        self.query_one("#verdict").set_class(not right, "-old")


def may_be_forced(checked: CheckedDraft) -> bool:
    """Return whether all errors are the adviser's: the user may send the job despite them.

    Not if the account is missing: sbatch would refuse the job or bill another account.
    """
    return bool(checked.previews) and not any(
        error.final or error.rule == "account" for one in checked.previews for error in one.errors
    )
