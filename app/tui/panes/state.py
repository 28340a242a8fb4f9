"""The pane with what is known about a run and, on demand, why it failed."""

import time
from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.message import Message
from textual.widgets import Static

from lumitui.app.explain.diagnose import Diagnosis
from lumitui.app.explain.waiting import no_failure
from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.app.tui import messages
from lumitui.app.tui.widgets import run_details
from lumitui.app.tui.widgets.script_view import Scroll


class StatePane(Scroll):
    """The facts of a run; above them why it failed, once that was asked for."""

    class Changed(Message):
        """The search for a cause has ended: draw the pane again."""

    def __init__(self, runs: Runs) -> None:
        """Show the facts of a run of `runs`."""
        super().__init__(id="state")
        self._runs = runs
        self._diagnoses: Sequence[Diagnosis] | None = None
        self._searching = False
        """Whether the end of the log is being searched for a cause."""

    def compose(self) -> ComposeResult:
        """Yield the reasons, then the facts."""
        yield Static(id="why", markup=False)
        yield Static(id="facts", markup=False)

    def draw(self, run: Run) -> None:
        """Show what history says about `run` now."""
        now, family = time.time(), self._runs.history.lineage(run.id)
        facts = run_details.facts_of(run, family, self._runs.proof(run), now)
        self.query_one("#facts", Static).update(facts)
        if self.query_one("#why").display:
            why = run_details.why(run, self._diagnoses, now, searching=self._searching)
            self.query_one("#why", Static).update(why)

    def ask_why(self, run: Run) -> None:
        """Show why `run` failed; the end of its log is searched only if it can have failed."""
        self.query_one("#why").display = True
        self._diagnoses, self._searching = None, not no_failure(run, time.time())
        if self._searching:
            self.post_message(messages.WhyWanted(self, run.id))

    @on(messages.WhyFound)
    def _why_found(self, event: messages.WhyFound) -> None:
        self._diagnoses, self._searching = event.diagnoses, False
        self.post_message(self.Changed())
