"""The pane with what is known about a run and, on demand, why it failed."""

import time
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.message import Message
from textual.widgets import Static

from lumitui.app.explain import run_facts, words
from lumitui.app.explain.diagnose import Diagnosis
from lumitui.app.explain.proof.binding_proof import Verdict
from lumitui.app.explain.waiting import no_failure
from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.app.tui import messages
from lumitui.app.tui.panes.proof import verdict_line
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import COLOURS, labelled, plain


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
        facts = facts_table(run, family, self._runs.proof(run), now)
        self.query_one("#facts", Static).update(facts)
        if self.query_one("#why").display:
            self.query_one("#why", Static).update(self._why(run, now))

    def _why(self, run: Run, now: float) -> RenderableType:
        if reassurance := no_failure(run, now):
            return plain(f"{reassurance}\n")
        if self._searching:
            return Text("Searching the end of the log …\n", "dim")
        return Text() if self._diagnoses is None else causes(run, self._diagnoses)

    def ask_why(self, run: Run) -> None:
        """Show why `run` failed; the end of its log is searched only if it can have failed."""
        self.query_one("#why").display = True
        self._diagnoses, self._searching = None, not no_failure(run, time.time())
        if self._searching:
            self.app.post_message(messages.WhyWanted(self, run.id))

    @on(messages.WhyFound)
    def _why_found(self, event: messages.WhyFound) -> None:
        self._diagnoses, self._searching = event.diagnoses, False
        self.post_message(self.Changed())


def facts_table(run: Run, family: Sequence[Run], proof: Verdict, now: float) -> RenderableType:
    """Return what is known about a run; `family` has its relatives, the root first."""
    lineage = run_facts.lineage(run, family)
    return labelled(
        [
            ("state", plain(run_facts.state(run), COLOURS[run.state])),
            ("proof", verdict_line(proof)),
            *run_facts.facts(run, now),
            *([("lineage", "\n".join(lineage))] if lineage else []),
        ]
    )


def causes(run: Run, diagnoses: Sequence[Diagnosis]) -> RenderableType:
    """Return why a run failed, the likeliest cause first, each with its line of the log."""
    if not diagnoses:
        return Text(f"{words.no_cause(run)}\n", "dim")
    parts = []
    for found in diagnoses:
        parts.append(Text.assemble(plain(words.cause(found), "bold yellow"), f"\n  {found.do}"))
        if found.line:
            parts.append(plain(f"  {found.line}", "dim"))
    return Group(*parts, Text())
