"""The pane with the events of a run."""

from __future__ import annotations

import time
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.text import Text
from textual import events

from lumitui.app.explain import timeline
from lumitui.app.explain.timeline import attempt_phases
from lumitui.app.runs import Run, log_line
from lumitui.app.tui.asking import ask
from lumitui.app.tui.widgets.styled import GAP
from lumitui.app.tui.widgets.tables.row_list import ListRow, RowList, TitledRows

if TYPE_CHECKING:
    from lumitui.app.runs import RunOverview

TITLES = ("time", "since", "what")
_BEFORE = len("attempt 100 ")
COLOURS = {
    "queued": "yellow", "requeued": "yellow", "starting": "cyan", "training": "green",
    "running": "green", "saving": "magenta",
}  # fmt: skip
"""Characters and colours of the bars; the characters alone distinguish them."""


class TimelinePane(RowList):
    """A bar for each attempt, then a line for each event, which a worker reads."""

    def __init__(self) -> None:
        super().__init__(id="timeline")
        self._asked: tuple[object, ...] = ()
        self._found: RunOverview | None = None
        self._run: Run | None = None
        self._drawn: tuple[object, ...] = ()

    def draw(self, run: Run) -> None:
        """Show the history's current events of `run`."""
        self._run = run
        wanted = (run.id, run.state, run.updated, run.metrics_offset)
        if wanted != self._asked:
            self._asked = wanted
            ask(self, lambda runs: runs.overviews.of(run.id), self._overview_found, key="overview")
        found = self._found
        attempts, proof = (found.attempts, found.proof) if found else ((), None)
        told = timeline.happenings(run, attempts, proof)
        now, width = time.time(), self.scrollable_content_region.width
        rows, phases = timeline.rows(told, now), attempt_phases(run, attempts, now)
        longest = max((sum(part.seconds for part in one.phases) for one in phases), default=0.0)
        cells = max(10, width - _BEFORE)
        bars = [
            Text.assemble(
                f"attempt {one.number:<3} ",
                *((marks, COLOURS[kind]) for kind, marks in one.bar(cells, longest)),
                "\n", " " * _BEFORE, (one.words, "dim"),
            )
            for one in phases
        ]  # fmt: skip
        if (rows, bars) != self._drawn:
            self._drawn = (rows, bars)
            ahead = tuple((column, "dim") for column in range(len(TITLES)))
            times = max(len(when) + len(since) for when, since, _ in rows)
            room = max(20, width - times - 2 * GAP)
            table = [
                ListRow((*(("", "") if at else row[:2]), part), ahead if item.ahead else ())
                for row, item in zip(rows, told, strict=True)
                for at, part in enumerate(wrap(log_line(row[2]), room))
            ]
            lines = [
                *bars,
                *[Text()] * bool(bars),
                Text("Shows only times that lumitui recorded.", "dim"),
            ]
            self.show(lines, TitledRows(TITLES, table))

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        if self._run is not None:
            self.draw(self._run)

    def _overview_found(self, found: RunOverview) -> None:
        self._found = found
        if self._run is not None:
            self.draw(self._run)
