"""Two to four runs beside each other: job file, script, code, metrics and curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Container
from textual.widgets import Static

from lumitui.app.explain import words
from lumitui.app.runs import Runs
from lumitui.app.tui.asking import ask
from lumitui.app.tui.screens.page import FullScreen
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.chart import MARKS, Chart, lines_of
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import plain

if TYPE_CHECKING:
    from lumitui.app.runs import CodeChange, Contrast, RunComparison

MOST_LINES = 400
"""Lines of a difference that are shown; `lumitui diff` prints them all."""
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


class CompareScreen(FullScreen):
    """Runs beside each other. Its content comes from a worker, once."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012 - as Textual types it

    def __init__(self, runs: Runs, run_ids: Sequence[str]) -> None:
        """Compare the runs with these ids."""
        super().__init__(runs)
        self.run_ids = tuple(run_ids)

    def body(self) -> ComposeResult:
        """Yield what differs, the curves, the code and the scripts."""
        with Scroll(id="compare"):
            yield Static("Reading the runs …", id="compare-facts", markup=False)
            with Container(id="compare-charts"):
                yield Chart("loss", classes="frame")
                yield Chart("samples/s", classes="frame")
            yield Static(id="compare-code", markup=False)
            yield Static(id="compare-scripts", markup=False)

    def begin(self) -> None:
        """Ask for the comparison."""
        self.query_one("#compare").focus()
        for chart in self.query(Chart):
            chart.display = False
        facts = self.query_one("#compare-facts", Static)
        ask(
            self,
            lambda runs: runs.comparisons.of(self.run_ids),
            self._compared,
            failed=lambda _: facts.update("They could not be compared."),
        )

    def draw(self) -> None:
        """Show which runs are compared; the rest does not change."""
        self.title_text(f"Compare {words.count(len(self.run_ids), 'run')}")

    def _compared(self, found: RunComparison) -> None:
        self.query_one("#compare-facts", Static).update(facts(found))
        names = [run.id for run in found.runs]
        for chart, curves in zip(self.query(Chart), (found.losses, found.speeds), strict=True):
            chart.show(lines_of(curves, names))
        if charts := [chart for chart in self.query(Chart) if chart.display]:
            charts[0].focus()
        self.query_one("#compare-scripts", Static).update(scripts(found))
        files = self.query_one("#compare-code", Static)
        files.update(Text("code: reading the files …\n", "dim"))
        ask(
            self,
            lambda runs: runs.comparisons.code(self.run_ids),
            lambda changes: files.update(code(changes)),
        )


def facts(found: RunComparison) -> RenderableType:
    """Return the legend of the runs, and the tables of what differs."""
    legend = Text()
    for run, mark, style in zip(found.runs, MARKS, styled.SERIES, strict=False):
        legend.append(f"{mark} ", f"bold {style}").append_text(plain(run.id, "bold")).append("  ")
        legend.append_text(styled.state_text(run.state))
        legend.append(f"  {words.layout_size(run.layout)}, {run.site}\n")
    ids = [f"{mark} {run.id}" for run, mark in zip(found.runs, MARKS, strict=False)]
    return Group(
        legend,
        _table("job file", ids, found.fields),
        _table("code", ids, found.code),
        _table("metrics", ids, found.metrics) if found.metrics else Text("metrics: none yet\n"),
    )


def _table(title: str, ids: Sequence[str], rows: Sequence[Contrast]) -> RenderableType:
    if not rows:
        return Text(f"{title}: the same\n")
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    for _ in ids:
        table.add_column(overflow="fold")
    table.add_row(Text(title, "bold"), *(plain(name, "dim") for name in ids))
    for row in rows:
        table.add_row(plain(row.what), *map(plain, row.values))
    return Group(table, Text())


def code(changes: Sequence[CodeChange]) -> RenderableType:
    """Return in which files the code differs, a part for each run but the first."""
    parts: list[RenderableType] = []
    for change in changes:
        heading = f"files of {change.run}, beside the first"
        if change.unknown:
            parts.append(plain(f"{heading}: {change.unknown}\n", "yellow"))
        elif not change.files:
            parts.append(plain(f"{heading}: the same\n"))
        else:
            lines = [f"{item.what:8} {item.path}" for item in change.files]
            parts += [plain(heading, "bold"), _bounded(lines), Text()]
    return Group(*parts)


def scripts(found: RunComparison) -> RenderableType:
    """Return how each script differs from the first one."""
    parts: list[RenderableType] = []
    for run, lines in zip(found.runs[1:], found.scripts, strict=True):
        heading = f"script of {run.id}, beside the first"
        if lines:
            parts += [plain(heading, "bold"), _bounded(lines), Text()]
        else:
            parts.append(plain(f"{heading}: the same\n"))
    return Group(*parts)


def _bounded(lines: Sequence[str]) -> RenderableType:
    shown = [plain(line, _DIFF_STYLES.get(line[:1], "")) for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        more = words.count(len(lines) - MOST_LINES, "more line")
        shown.append(Text(f"{more}, see `lumitui diff`", "dim"))
    return Group(*shown)
