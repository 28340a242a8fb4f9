"""A job script as it is sent, with its submit command."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import ScrollableContainer
from textual.highlight import highlight
from textual.widgets import Static

from lumitui.app.explain.safe_text import log_line


class Scroll(ScrollableContainer):
    """A container that scrolls by the same keys as the tables and the log."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Down", show=False, id="pane.down", tooltip="One line down"),
        Binding("k", "scroll_up", "Up", show=False, id="pane.up", tooltip="One line up"),
        Binding("g", "scroll_home", "Top", show=False, id="pane.top", tooltip="Go to the top"),
        Binding("G", "scroll_end", "End", show=False, id="pane.end", tooltip="Go to the end"),
    ]


class ScriptView(Scroll):
    """Command and script, not wrapped: the site gets exactly these bytes."""

    def compose(self) -> ComposeResult:
        """Yield the command, then the script."""
        yield Static(id="command", markup=False)
        yield Static(id="text", markup=False)

    def show(self, command: str, script: str) -> None:
        """Show a script and the command that submits it."""
        self.query_one("#command", Static).update(Text(f"$ {log_line(command)}\n", style="bold"))
        text = "\n".join(log_line(line) for line in script.split("\n"))
        self.query_one("#text", Static).update(highlight(text, language="bash"))
