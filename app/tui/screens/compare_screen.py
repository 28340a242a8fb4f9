"""Two to four runs beside each other: job file, script, code, metrics and curves."""

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
from lumitui.app.tui.widgets.styled import plain

if TYPE_CHECKING:
    from lumitui.app.runs import CodeChange, Contrast, RunComparison

BEST: Mapping[str, Callable[[Sequence[float]], float]] = MappingProxyType(
    {"loss": min, "samples/s": max, "test accuracy": max, "seconds": min}
)
"""Which of the values of a metric is the best."""
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
            yield Static("Reading the runs …", id="compare-runs", markup=False)
            with Container(id="compare-facts"):
                for title in ("What differs", "Metrics"):
                    facts = Static(classes="frame", markup=False)
                    facts.border_title = title
                    yield facts
            with Container(id="compare-charts"):
                yield Chart("loss", classes="frame")
                yield Chart("samples/s", classes="frame")
            yield Static(id="compare-code", markup=False)
            yield Static(id="compare-scripts", markup=False)

    def begin(self) -> None:
        """Ask for the comparison."""
        self.query_one("#compare").focus()
        for late in self.query("#compare-facts, #compare-charts > *"):
            late.display = False
        runs_line = self.query_one("#compare-runs", Static)
        ask(
            self,
            lambda runs: runs.comparisons.of(self.run_ids),
            self._compared,
            failed=lambda _: runs_line.update("lumitui could not compare them."),
        )

    def draw(self) -> None:
        """Show which runs are compared; the rest does not change."""
        self.title_text(f"Compare {words.count(len(self.run_ids), 'run')}")

    def _compared(self, found: RunComparison) -> None:
        self.query_one("#compare-runs", Static).update(legend(found))
        self.query_one("#compare-facts").display = True
        for static, drawn in zip(self.query("#compare-facts Static").results(Static),
                                 (differences(found), metrics(found)), strict=True):  # fmt: skip
            static.update(drawn)
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


def legend(found: RunComparison) -> Text:
    """Return a line for each run: its letter, its state and its size."""
    lines = Text()
    for run, mark, style in zip(found.runs, MARKS, styled.SERIES, strict=False):
        lines.append(f"{mark} ", f"bold {style}").append_text(plain(run.id, "bold")).append("  ")
        lines.append_text(styled.state_text(run.state))
        lines.append(f"  {words.layout_size(run.layout)}, {run.site}\n")
    return lines


def differences(found: RunComparison) -> RenderableType:
    """Return the keys of the job files and the facts of the code that differ."""
    parts = [_table("job file", found, found.fields), _table("code", found, found.code)]
    return Group(parts[0], Text(), parts[1])


def metrics(found: RunComparison) -> RenderableType:
    """Return the metrics; the best value of each is green."""
    if not found.metrics:
        return Text("No run has any yet.", "dim")
    return _table("", found, found.metrics, best=BEST)


def _table(
    title: str,
    found: RunComparison,
    rows: Sequence[Contrast],
    best: Mapping[str, Callable[[Sequence[float]], float]] = MappingProxyType({}),
) -> RenderableType:
    if not rows:
        return Text(f"{title}: the same", "dim")
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(no_wrap=True)
    for _ in found.runs:
        table.add_column(overflow="fold", justify="right" if best else "left")
    marks = [Text(mark, f"bold {style}")
             for _, mark, style in zip(found.runs, MARKS, styled.SERIES, strict=False)]  # fmt: skip
    table.add_row(Text(title, "bold"), *marks)
    for row in rows:
        values = [number for text in row.values if (number := _number(text)) is not None]
        wins = best[row.what](values) if row.what in best and len(set(values)) > 1 else None
        cells = (plain(text, "green" if wins is not None and _number(text) == wins else "")
                 for text in row.values)  # fmt: skip
        table.add_row(plain(row.what, "dim"), *cells)
    return table


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def code(changes: Sequence[CodeChange]) -> RenderableType:
    """Return in which files the code differs, a part for each run but the first."""
    parts: list[RenderableType] = []
    for change in changes:
        heading = f"files of {change.run}, compared with the first"
        if change.unknown:
            parts.append(plain(f"{heading}: {change.unknown}", "yellow"))
        elif not change.files:
            parts.append(plain(f"{heading}: the same", "dim"))
        else:
            lines = [f"{item.what:8} {item.path}" for item in change.files]
            parts += [plain(heading, "bold"), _bounded(lines), Text()]
    return Group(*parts)


def scripts(found: RunComparison) -> RenderableType:
    """Return how each script differs from the first one."""
    parts: list[RenderableType] = []
    for run, lines in zip(found.runs[1:], found.scripts, strict=True):
        heading = f"script of {run.id}, compared with the first"
        if lines:
            parts += [plain(heading, "bold"), _bounded(lines), Text()]
        else:
            parts.append(plain(f"{heading}: the same", "dim"))
    return Group(*parts)


def _bounded(lines: Sequence[str]) -> RenderableType:
    shown = [plain(line, _DIFF_STYLES.get(line[:1], "")) for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        more = words.count(len(lines) - MOST_LINES, "more line")
        shown.append(Text(f"{more}, see `lumitui diff`", "dim"))
    return Group(*shown)
