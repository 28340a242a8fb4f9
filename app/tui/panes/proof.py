"""The pane with the proof of binding: the cores and GPUs measured for each rank."""

from textual.app import ComposeResult
from textual.widgets import Static

from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.app.tui.widgets import run_details
from lumitui.app.tui.widgets.script_view import Scroll


class ProofPane(Scroll):
    """The verdict, and a row for each rank."""

    def __init__(self, runs: Runs) -> None:
        """Show the proof of a run of `runs`."""
        super().__init__(id="proof")
        self._runs = runs

    def compose(self) -> ComposeResult:
        """Yield one text."""
        yield Static(id="verdict", markup=False)

    def draw(self, run: Run) -> None:
        """Show what the probe of `run` has measured so far."""
        self.query_one("#verdict", Static).update(run_details.verdict(self._runs.proof(run)))
