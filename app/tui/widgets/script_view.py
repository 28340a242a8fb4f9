"""A job script as it is sent, with its submit command."""

from rich.text import Text
from textual.app import ComposeResult
from textual.highlight import highlight
from textual.widgets import Static

from lumitui.app.explain.safe_text import log_line
from lumitui.app.tui.widgets.scroll import Scroll


class ScriptView(Scroll):
    """Command and script, not wrapped: the site gets exactly these lines."""

    def compose(self) -> ComposeResult:
        """Yield the command, then the script."""
        yield Static(id="command", markup=False)
        yield Static(id="text", markup=False)

    def show(self, command: str, script: str) -> None:
        """Show a script and the command that submits it."""
        self.query_one("#command", Static).update(Text(f"$ {log_line(command)}\n", style="bold"))
        text = "\n".join(log_line(line) for line in script.split("\n"))
        self.query_one("#text", Static).update(highlight(text, language="bash"))
