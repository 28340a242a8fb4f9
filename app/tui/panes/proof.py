"""The pane with the proof of binding: the cores and GPUs measured for each rank."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Static

from lumitui.app.explain import run_facts
from lumitui.app.explain.binding_proof import Verdict
from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import plain

COLOURS = {
    "proved": "bold green",
    "differs": "bold red",
    "unbound": "yellow",
    "not measured": "yellow",
    "pending": "cyan",
}
"""Of the kinds of verdict."""


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
        self.query_one("#verdict", Static).update(proof_table(self._runs.proof(run)))


def verdict_line(found: Verdict) -> Text:
    """Return the verdict in one line, its kind in colour."""
    return Text.assemble((found.kind, COLOURS[found.kind]), plain(f"  {found.sentence}"))


def proof_table(found: Verdict) -> RenderableType:
    """Return the verdict, what differs, and a row for each rank that reported."""
    if not found.rows:
        return verdict_line(found)
    rows = run_facts.proof_table(found)
    table = Table.grid(padding=(0, 2))
    for title in rows.titles:
        table.add_column(justify="right" if title in ("rank", "local") else "left")
    table.add_row(*(Text(title, "dim") for title in rows.titles))
    for row in rows.rows:
        wrong = {} if row.ok else {rows.titles.index("found"): "bold red"}
        table.add_row(*(plain(cell, wrong.get(at, "")) for at, cell in enumerate(row.cells)))
    different = [plain(line, "bold red") for line in run_facts.differences(found)]
    return Group(verdict_line(found), *different, Text(), table)
