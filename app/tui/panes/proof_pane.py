"""The pane with the proof of binding: the cores and GPUs measured for each rank."""

from functools import cache

from rich.text import Text

from lumitui.app.explain import run_facts
from lumitui.app.explain.proof.binding_proof import Verdict
from lumitui.app.runs import Run, Runs, log_line
from lumitui.app.tui.widgets.styled import plain
from lumitui.app.tui.widgets.tables.row_list import ListRow, RowList, TitledRows

COLOURS = {
    "proved": "bold green",
    "differs": "bold red",
    "unbound": "yellow",
    "not measured": "yellow",
    "pending": "cyan",
}
"""Of the kinds of verdict."""


class ProofPane(RowList):
    """The verdict, and a row for each rank."""

    def __init__(self, runs: Runs) -> None:
        """Show the proof of a run of `runs`."""
        super().__init__(id="proof")
        self._runs = runs
        self._shown: Verdict | None = None

    def draw(self, run: Run) -> None:
        """Show what the probe of `run` has measured so far; nothing is done twice for it."""
        found = self._runs.proof(run)
        if found is not self._shown:
            self._shown = found
            self.show(proof_lines(found), rank_table(found))


def verdict_line(found: Verdict) -> Text:
    """Return the verdict in one line, its kind in colour."""
    return Text.assemble((found.kind, COLOURS[found.kind]), plain(f"  {found.sentence}"))


def proof_lines(found: Verdict) -> list[Text]:
    """Return the verdict, what differs, and what the preflight found, a line each."""
    different = run_facts.differences(found)
    style = "bold red" if found.preflight and found.preflight.state == "bad" else ""
    measured = [plain(line, style) for line in run_facts.preflight(found)]
    return [verdict_line(found), *(plain(line, "bold red") for line in different), *measured]


def rank_table(found: Verdict) -> TitledRows | None:
    """Return a row for each rank that reported; None where none did."""
    if not found.rows:
        return None
    table = run_facts.proof_table(found)
    wrong = ((table.titles.index("found"), "bold red"),)
    safe = cache(log_line)  # thousands of ranks have few different cells
    rows = [ListRow(tuple(map(safe, row.cells)), () if row.ok else wrong) for row in table.rows]
    right = frozenset(at for at, title in enumerate(table.titles) if title in ("rank", "local"))
    return TitledRows(table.titles, rows, right)
