"""Comparison of two to four runs: job file, script, code, metrics and curves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
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
from lumitui.app.tui.widgets.styled import SERIES, plain

if TYPE_CHECKING:
    from lumitui.app.runs import CodeChange, Contrast, RunComparison

BEST: Mapping[str, Callable[[Sequence[float]], float]] = MappingProxyType(
    {"loss": min, "samples/s": max, "test accuracy": max, "seconds": min}
)
"""The functions that pick each metric's best value."""
_STATISTIC = {"loss": "last loss", "samples/s": "median samples/s", "seconds": "training seconds"}
"""The names of rows whose values could also be means: charts show them beside the last ones."""
MOST_LINES = 400
"""Maximum displayed lines of a difference; `lumitui diff` prints them all."""
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


class CompareScreen(FullScreen):
    """Two to four compared runs. A worker computes the content once."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012 - as Textual types it

    def __init__(self, runs: Runs, run_ids: Sequence[str]) -> None:
        super().__init__(runs)
        self.run_ids = tuple(run_ids)

    def body(self) -> ComposeResult:
        """Yield the runs and their differences, the curves, and notes on code and scripts."""
        with Scroll(id="compare"):
            with Scroll(id="compare-runs", classes="frame"):
                yield Static("Reading the runs …", id="legend", markup=False)
                yield Static(id="differences", markup=False)
            with Container(id="compare-charts"):
                for title in ("loss", "samples/s"):
                    chart = Chart(classes="frame")
                    chart.border_title, chart.display = title, False
                    yield chart
            with Scroll(id="compare-notes", classes="frame"):
                yield Static(id="notes", markup=False)

    def begin(self) -> None:
        """Request the comparison."""
        self.query_one("#compare").focus()
        self.query_one("#compare-runs").border_title = "What differs"
        self.query_one("#compare-notes").border_title = "Code and scripts"
        said = Text("lumitui could not compare them.")
        ask(self, lambda runs: runs.comparisons.of(self.run_ids), self._compared,
            failed=lambda _: self._show("legend", said))  # fmt: skip

    def _show(self, part: str, content: RenderableType) -> None:
        self.query_one(f"#{part}", Static).update(content)

    def draw(self) -> None:
        """Show the compared runs; the rest does not change."""
        self.title_text(f"Compare {words.count(len(self.run_ids), 'run')}")

    def _compared(self, found: RunComparison) -> None:
        self._show("legend", legend(found))
        self._show("differences", differences(found))
        names = [run.id for run in found.runs]
        for chart, curves in zip(self.query(Chart), (found.losses, found.speeds), strict=True):
            chart.show(lines_of(curves, names))
        charts = [chart for chart in self.query(Chart) if chart.display]
        self.query_one("#compare-charts").display = bool(charts)
        for chart in charts[:1]:
            chart.focus(scroll_visible=False)  # keep the table visible
        ask(self, lambda runs: runs.comparisons.code(self.run_ids),
            lambda changes: self._noted(found, changes))  # fmt: skip

    def _noted(self, found: RunComparison, changes: Sequence[CodeChange]) -> None:
        """Show short notes below the runs, and differences in a pane of their own."""
        parts = notes(found, changes)
        short = [part[0] for part in parts if len(part) == 1]
        self._show("legend", Group(legend(found), *short, *[Text()][: len(short)]))
        longer = [line for part in parts if len(part) > 1 for line in part]
        self._show("notes", Group(*longer))
        self.query_one("#compare-notes").display = bool(longer)


def legend(found: RunComparison) -> Text:
    """Return a line for each run: its letter, its state and its size."""
    lines = Text()
    for run, mark, style in zip(found.runs, MARKS, SERIES, strict=False):
        lines.append(f"{mark} ", f"bold {style}").append_text(plain(run.id, "bold")).append("  ")
        lines.append_text(styled.state_text(run.state))
        lines.append(f"  {words.layout_size(run.layout)}, {run.site}\n")
    return lines


def differences(found: RunComparison) -> RenderableType:
    """Return the differences of job file and code, and all metrics, the best value in green."""
    metrics = [row for row in found.metrics if any(text != "-" for text in row.values)]
    rows = [*found.fields, *found.code, *metrics]
    rows.sort(key=lambda row: len(set(row.values)) == 1)  # what differs comes first
    if not rows:
        return Text("Their job files are the same, and no run has metrics yet.", "dim")
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    for _ in found.runs:
        table.add_column(overflow="fold")
    marks = [Text(mark, f"bold {style}", justify="right")
             for _, mark, style in zip(found.runs, MARKS, SERIES, strict=False)]  # fmt: skip
    table.add_row("", *marks, Text("b / a" if len(marks) == 2 else "", "dim", justify="right"))
    for row in rows:
        table.add_row(plain(_STATISTIC.get(row.what, row.what), "dim"), *_cells(row))
    return table


def _cells(row: Contrast) -> list[Text]:
    """Return the values of a row, dim if equal; for two numbers, also their ratio."""
    numbers = [_number(text) for text in row.values]
    known, same = [number for number in numbers if number is not None], len(set(row.values)) == 1
    best = BEST[row.what](known) if row.what in BEST and known and not same else None
    styles = ["dim" if same else "green" if best is not None and number == best else ""
              for number in numbers]  # fmt: skip
    cells = [plain(text, style) for text, style in zip(row.values, styles, strict=True)]
    if len(known) == len(cells) == 2 and not same and min(known) > 0:
        cells.append(Text(f"{known[1] / known[0]:.3g} x"))
    for cell in cells if known else ():
        cell.justify = "right"
    return cells


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def notes(found: RunComparison, changes: Sequence[CodeChange]) -> list[list[RenderableType]]:
    """Return how each code and script differs from the first run's."""
    marks = dict(zip((run.id for run in found.runs), MARKS, strict=False))
    parts = []
    for change in changes:
        lines = [f"{item.what:8} {item.path}" for item in change.files]
        parts.append(_note("Files", marks[change.run], lines, change.unknown))
    for run, script in zip(found.runs[1:], found.scripts, strict=True):
        parts.append(_note("Script", marks[run.id], script))
    return parts


def _note(what: str, mark: str, lines: Sequence[str], unknown: str = "") -> list[RenderableType]:
    """Return the differences of files or script between run `mark` and run a."""
    title = Text.assemble((f"{what} of ", "dim"), (mark, SERIES[MARKS.index(mark)]))
    if not lines:
        return [title.append(f": {unknown or 'the same as for a'}", "dim")]
    return [title.append(", compared with a", "dim"), _bounded(lines), Text()]


def _bounded(lines: Sequence[str]) -> RenderableType:
    shown = [plain(line, _DIFF_STYLES.get(line[:1], "")) for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        more = words.count(len(lines) - MOST_LINES, "more line")
        shown.append(Text(f"{more}, see `lumitui diff`", "dim"))
    return Group(*shown)
