"""The pane with the sent job script of a run."""

from lumitui.app.runs import Run
from lumitui.app.tui.widgets.script_view import ScriptView


class ScriptPane(ScriptView):
    """A script never changes after it is sent: it is drawn once."""

    def __init__(self) -> None:
        """Show no script yet."""
        super().__init__(id="script")
        self._drawn = False

    def draw(self, run: Run) -> None:
        """Show the script of `run` and the command that submitted it."""
        if not self._drawn:
            self._drawn = True
            self.show(run.command, run.files)
