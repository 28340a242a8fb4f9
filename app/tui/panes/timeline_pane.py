"""The pane with what happened to a run and when."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.text import Text

from lumitui.app.explain import timeline
from lumitui.app.runs import Run, log_line
from lumitui.app.tui.asking import ask
from lumitui.app.tui.widgets.tables.row_list import ListRow, RowList, TitledRows

if TYPE_CHECKING:
    from lumitui.app.runs import RunOverview

TITLES = ("time", "since", "what")


class TimelinePane(RowList):
    """A line for each thing that happened; what the metrics tell comes from a worker."""

    def __init__(self) -> None:
        """Show nothing yet."""
        super().__init__(id="timeline")
        self._asked: tuple[object, ...] = ()
        self._found: RunOverview | None = None
        self._run: Run | None = None
        self._drawn: list[tuple[str, str, str]] = []

    def draw(self, run: Run) -> None:
        """Show what history says of `run` now."""
        self._run = run
        wanted = (run.id, run.state, run.updated, run.metrics_offset)
        if wanted != self._asked:
            self._asked = wanted
            ask(self, lambda runs: runs.overviews.of(run.id), self._overview_found, key="overview")
        found = self._found
        attempts, proof = (found.attempts, found.proof) if found else ((), None)
        told = timeline.happenings(run, attempts, proof)
        rows = timeline.rows(told, time.time())
        if rows != self._drawn:
            self._drawn = rows
            ahead = tuple((column, "dim") for column in range(len(TITLES)))
            table = [
                ListRow(tuple(map(log_line, row)), ahead if item.ahead else ())
                for row, item in zip(rows, told, strict=True)
            ]
            self.show([Text("What the history does not know is left out.", "dim")],
                      TitledRows(TITLES, table))  # fmt: skip

    def _overview_found(self, found: RunOverview) -> None:
        if self._run is not None and found.run.id == self._run.id:
            self._found = found
            self.draw(self._run)
