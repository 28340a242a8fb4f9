"""The pane with the GPUs of a running job: power first, and which are idle."""

import math
import time

from rich.text import Text

from lumitui.app.explain import words
from lumitui.app.runs import (
    GPU_TITLES,
    LumiError,
    Run,
    RunGpus,
    State,
    gpu_rows,
    gpu_summary,
    log_line,
)
from lumitui.app.tui.asking import ask, tui
from lumitui.app.tui.widgets.styled import plain
from lumitui.app.tui.widgets.tables.row_list import ListRow, RowList, TitledRows

PAUSE = 60.0
"""Seconds between two readings while the pane is on the screen: each takes a job step."""


class GpusPane(RowList):
    """The GPU use of the run's nodes, read when the pane opens, then each minute."""

    def __init__(self) -> None:
        super().__init__(id="gpus")
        self._asked: float | None = None
        self._waiting = False
        self._said = ""

    def draw(self, run: Run) -> None:
        """Read the GPUs of a running job if due; for any other job, show why it has no values."""
        now = time.monotonic()
        if run.layout.on_cpu:
            self._say(f"The run has no GPUs: it has {words.layout_size(run.layout)}.")
            return
        if run.state is not State.RUNNING:
            if self._asked is None:
                self._say(f"lumitui can read a run's GPUs only while it runs. It is {run.state}.")
            return
        if not self._waiting and (self._asked is None or now - self._asked > PAUSE):
            if self._asked is None:
                self._say("Reading the GPUs of its nodes …")
            self._asked = now
            if not tui(self).schedule.is_idle(now):
                self._waiting = True
                ask(self, lambda runs: runs.clusters.gpus(run.id), self._read,
                    failed=self._not_read, quietly=True)  # fmt: skip

    def read_again(self) -> None:
        """Read the GPUs at the next draw."""
        if self._asked is not None:
            self._asked = -math.inf

    def _say(self, sentence: str) -> None:
        if sentence != self._said:
            self._said = sentence
            self.show([plain(sentence)])

    def _not_read(self, error: LumiError) -> None:
        self._waiting = False
        self._say(str(error))

    def _read(self, found: RunGpus) -> None:
        self._waiting = False
        gpus, idle = found.gpus, found.idle_watts
        head = [plain(one, "yellow" if "idle." in one else "") for one in gpu_summary(gpus, idle)]
        at = Text(f"read at {words.clock(found.at)[11:]}", "dim")
        self._said = ""
        last = len(GPU_TITLES) - 1
        made = [
            ListRow(tuple(map(log_line, row)), ((last, "bold yellow"),) if row[last] else ())
            for row in gpu_rows(gpus, idle)
        ]
        self.show([*head, at, Text()], TitledRows(GPU_TITLES, made, frozenset({1, 2, 4})))
