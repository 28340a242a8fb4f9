"""The pane with a run's relatives, their sizes and results; enter opens one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from lumitui.app.explain import run_overview
from lumitui.app.runs import Run
from lumitui.app.tui.asking import ask
from lumitui.app.tui.widgets.styled import COLOURS, plain
from lumitui.app.tui.widgets.tables.opening_table import OpeningTable

if TYPE_CHECKING:
    from lumitui.app.runs import RunOverview


class LineagePane(OpeningTable):
    """A row for each relative, also the other sizes of a ladder; the cursor starts at the run."""

    def __init__(self) -> None:
        super().__init__(id="lineage")
        self._asked: tuple[object, ...] = ()
        self._drawn: list[tuple[str, ...]] = []

    def draw(self, run: Run) -> None:
        """Request the relatives of `run` if they may have changed."""
        wanted = (run.id, run.state, run.updated, run.metrics_offset)
        if wanted != self._asked:
            self._asked = wanted
            ask(self, lambda runs: runs.overviews.of(run.id), self._fill, key="overview")

    def _fill(self, found: RunOverview) -> None:
        rows = [
            run_overview.relative(item.run, item.depth, item.summary, item.beside_parent)
            for item in found.relatives
        ]
        if rows == self._drawn:
            return
        first = not self._drawn
        chosen = self.cursor_row
        self._drawn = rows
        self.clear(columns=True)
        for at, title in enumerate(run_overview.RELATIVE_TITLES):
            self.add_column(Text(title, justify="right" if at > 1 else "left"))
        for row, item in zip(rows, found.relatives, strict=True):
            state = COLOURS[item.run.state]
            cells = [plain(cell, state if at == 1 else "") for at, cell in enumerate(row)]
            for at, cell in enumerate(cells):
                cell.justify = "right" if at > 1 else "left"
            self.add_row(*cells, key=item.run.id)
        if first:
            chosen = self.get_row_index(found.run.id)
        self.move_cursor(row=chosen, animate=False)
