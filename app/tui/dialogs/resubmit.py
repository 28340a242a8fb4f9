"""The dialog that sends a run again, on as many nodes or more, after it shows what changes."""

from typing import ClassVar, Literal

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Static

from lumitui.app.explain import words
from lumitui.app.history.run import Run
from lumitui.app.scale.resubmission import Resubmission
from lumitui.app.scale.start import Start
from lumitui.app.tui import messages
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.bars import footer
from lumitui.app.tui.widgets.choice import Choice
from lumitui.app.tui.widgets.input import LineInput
from lumitui.app.tui.widgets.launch_text import findings_text
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.remote.errors import LumiError

Code = Literal["same", "current"]


class ResubmitDialog(ModalScreen[Resubmission | None]):
    """What changes, before and after; every change of a field makes a new plan."""

    AUTO_FOCUS = "#nodes"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close", id="resubmit.close", tooltip="Close; send nothing"),
        Binding("ctrl+s", "send", "Send", id="resubmit.send", tooltip="Send the run"),
    ]

    def __init__(self, parent: Run, nodes: int) -> None:
        """Send `parent` again on `nodes` nodes."""
        super().__init__()
        self._parent_run, self._asked = parent, nodes
        self._number = 0
        self._start: Start | None = None
        self._plan: Resubmission | None = None

    def compose(self) -> ComposeResult:
        """Yield the fields, the table and two buttons."""
        yield footer()
        with Vertical(classes="dialog resubmit") as box:
            box.border_title = Text(f"Resubmit {self._parent_run.id}")
            with Horizontal(classes="fields"):
                yield Label("nodes ")
                yield LineInput(str(self._asked), type="integer", id="nodes", compact=True)
                yield Label("time ")
                yield LineInput(self._parent_run.spec.time, id="time", compact=True)
                yield Choice[Start](
                    [("scratch", "from scratch"), ("checkpoint", "from checkpoint")], id="start"
                )
                yield Choice[Code]([("same", "same code"), ("current", "current code")], id="code")
            with Scroll(id="plan"):
                yield Static("Planning …", id="changes", markup=False)
            with Horizontal(classes="buttons"):
                yield Button(Text("Close"), id="no", compact=True)
                yield Button(Text("Send"), id="yes", compact=True, variant="primary")

    def on_mount(self) -> None:
        """Make the first plan, with the run's own settings."""
        if self.query("#nodes"):
            self._request_plan()

    def _request_plan(self) -> None:
        self._number += 1
        self._plan = None
        self.query_one("#yes", Button).disabled = True
        nodes = self.query_one("#nodes", Input).value
        time = self.query_one("#time", Input).value.strip()
        if not nodes.isdigit():
            self._refuse("The number of nodes is missing.", "Type one.")
            return
        settings = () if time == self._parent_run.spec.time else (f"time={time}",)
        code: Code = self.query_one("#code", Choice).value
        self.post_message(
            messages.PlanWanted(
                self, self._number, self._parent_run.id, int(nodes), settings, code, self._start
            )
        )

    @on(Input.Changed)
    def _edited(self) -> None:
        self._request_plan()

    @on(Button.Pressed, ".choice")
    def _chosen(self, event: Button.Pressed) -> None:
        event.stop()
        assert isinstance(event.button, Choice)
        event.button.turn()
        if event.button.id == "start":
            self._start = event.button.value
        self._request_plan()

    @on(messages.Planned)
    def _planned(self, event: messages.Planned) -> None:
        if event.number != self._number:
            return
        if isinstance(event.outcome, LumiError):
            self._refuse(event.outcome.message, event.outcome.hint)
            return
        self._show(event.outcome)

    def _show(self, plan: Resubmission) -> None:
        self._plan = plan
        self.query_one("#start", Choice).choose(plan.start)
        self.query_one("#changes", Static).update(described(plan))
        button = self.query_one("#yes", Button)
        button.label = Text(f"Send on {words.count(plan.preview.launch.layout.nodes, 'node')}")
        button.disabled = bool(plan.preview.errors)
        button.refresh(layout=True)

    def _refuse(self, message: str, hint: str) -> None:
        refusal = Text.assemble(styled.plain(message, "bold red"), "\n", styled.plain(hint))
        self.query_one("#changes", Static).update(refusal)

    @on(Input.Submitted)
    def _ready(self) -> None:
        self.query_one("#yes").focus()

    @on(Button.Pressed, "#yes")
    def action_send(self) -> None:
        """Send the plan, if it can be sent."""
        if self._plan is not None and not self._plan.preview.errors:
            self.dismiss(self._plan)

    @on(Button.Pressed, "#no")
    def action_close(self) -> None:
        """Close the dialog; send nothing."""
        self.dismiss(None)


def described(plan: Resubmission) -> RenderableType:
    """Return the before/after table, the notes on it, and the findings of the adviser."""
    table = Table.grid(padding=(0, 2), expand=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    table.add_row(*(Text(words, style="dim") for words in ("", "before", "after")))
    for change in plan.changes:
        style = "bold yellow" if change.differs else ""
        after = change.after if change.differs else "same"
        table.add_row(
            Text(change.what, style="dim"),
            styled.plain(change.before),
            styled.plain(after, style or "dim"),
        )
    code = "the snapshot of this run" if plan.code == "same" else "the project as it is now"
    table.add_row(Text("code", style="dim"), Text(""), Text(code))
    table.add_row(Text("starts", style="dim"), Text(""), Text(f"from {plan.start}"))
    notes = [styled.plain(f"note  {note}", "cyan") for note in plan.notes]
    findings = findings_text(plan.preview) if plan.preview.findings else []
    return Group(table, Text(), *notes, *findings)
