"""A grid: its settings with loss, speed, price and the curve of a metric; marks the best."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import DataTable, Static

from lumitui.app.explain import row_words
from lumitui.app.tui.asking import ask
from lumitui.app.tui.screens.page import RunScreenBase
from lumitui.app.tui.widgets.chart import MARKS, METRIC_KEYS, SMOOTH, Chart, lines_of
from lumitui.app.tui.widgets.choice_button import neighbour
from lumitui.app.tui.widgets.plot import sparkline
from lumitui.app.tui.widgets.styled import COLOURS, SERIES, plain, shorten
from lumitui.app.tui.widgets.tables.opening_table import OpeningTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lumitui.app.runs import Curve, Figures, Run, Runs, Sweep
    from lumitui.app.tui.widgets.plot import PlotLine

_Known = tuple[float, int]
MOST_LINES = 4
"""Maximum number of curves drawn over each other: the lowest losses, or else the highest values."""
_CURVE = 9  # cells of a curve in the table
_FRAME = 4  # cells of the table's border, and of the last column's padding
_LEAST_NAME = 8  # of a run's name, whose end distinguishes it
SPEED = "samples_per_s"
ALIKE = 0.05
"""Values that differ by a smaller share of the largest one count as the same."""


@dataclass(frozen=True)
class GridFigures:
    """A grid, and its runs with their measurements, by id."""

    sweep: Sweep
    runs: dict[str, Run]
    figures: dict[str, Figures]

    @property
    def metrics(self) -> list[str]:
        """The names of all metrics, in the order of the Metrics pane."""
        each = (one.name for figures in self.figures.values() for one in figures.series)
        return list(dict.fromkeys(each)) or ["loss"]

    @property
    def telling(self) -> str:
        """The metric in which the runs differ: the speed only if their losses are alike.

        If no run reports a loss, its first other metric.
        """
        paces = [row.pace for row in self.sweep.rows]
        differ = _spread([one.samples_per_s for one in paces]) >= ALIKE
        if differ and _spread([one.loss for one in paces]) < ALIKE:
            return SPEED
        names = [name for name in self.metrics if name not in (SPEED, "lr")]
        return "loss" if "loss" in names else next(iter(names), SPEED)

    def curves(self, metric: str) -> dict[str, Curve]:
        """Return the curves of a metric by run, the best first."""
        found = {name: one.curve for name, figures in self.figures.items()
                 for one in figures.series if one.name == metric}  # fmt: skip
        sign = 1 if metric == "loss" else -1
        return dict(sorted(found.items(), key=lambda item: sign * item[1].values[-1]))


def _spread(values: Sequence[float | None]) -> float:
    known = [value for value in values if value]
    return (max(known) - min(known)) / max(map(abs, known)) if known else 0.0


def gather(runs: Runs, run_id: str) -> GridFigures:
    """Return the grid of a run, from the history."""
    sweep = runs.sweeps.of(run_id)
    names = [row.run for row in sweep.rows if row.run]
    found = {name: runs.history.get(name) for name in names}
    return GridFigures(sweep, found, {name: runs.figures(name) for name in names})


class GridScreen(RunScreenBase):
    """The runs of one grid; enter opens one of them, and the keys of a run act on its row."""

    BINDINGS: ClassVar[list[BindingType]] = [*METRIC_KEYS, SMOOTH]

    def __init__(self, runs: Runs, run_id: str) -> None:
        """Show the grid that the run `run_id` belongs to."""
        super().__init__(runs)
        self._run_id = run_id
        self._seen: tuple[int, ...] = ()
        self._lines: dict[str, PlotLine] = {}  # the drawn curves, by the ids of their runs
        self._found: GridFigures | None = None
        self._metric = ""  # the drawn metric, once the user has chosen one

    def body(self) -> ComposeResult:
        """Yield the grid's conclusions, a row for each run, and the best curves."""
        yield Static(id="grid-advice", markup=False)
        table = OpeningTable(id="grid", classes="frame")
        table.border_title = "Settings"
        yield table
        yield Chart(id="grid-curves", classes="frame", smoothing=2)

    def begin(self) -> None:
        """Check for changes every second."""
        self.query_one("#grid").focus()
        self.reread()
        self.set_interval(1.0, self.every_second)

    def draw(self) -> None:
        """Read the grid again if the history has changed."""
        self.title_text("Grid", Text(self._run_id.rpartition("-")[0] or self._run_id, "bold"))
        if (stamp := self.runs.history.stamp()) != self._seen:
            self._seen = stamp
            # An error, such as that the run has no grid, closes the screen.
            ask(self, lambda runs: gather(runs, self._run_id), self._gathered,
                failed=lambda _: self.action_back(), key="grid")  # fmt: skip

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the choice of a metric if there are two."""
        if action == "choose":
            return self._found is not None and len(self._found.metrics) > 1
        return action != "grid"

    @property
    def chosen(self) -> str | None:
        """The run on the current row."""
        return self.seen_run.id if self.seen_run else None

    def action_choose(self, step: int) -> None:
        if (found := self._found) is not None:
            self._metric = neighbour(found.metrics, self._metric or found.telling, step)
            self._gathered(found)

    def action_smooth(self) -> None:
        self.query_one(Chart).action_smooth()

    def _gathered(self, found: GridFigures) -> None:
        self._found, metric = found, self._metric or found.telling
        self.query_one(Chart).border_title = plain("samples/s" if metric == SPEED else metric)
        self.refresh_bindings()
        table = self.query_one("#grid", OpeningTable)
        before, chosen = self._lines, table.cursor_row
        table.clear(columns=True)
        curves = found.curves(metric)
        best = list(curves)[:MOST_LINES]
        drawn = {row.run: row.setting for row in found.sweep.rows if row.run in best}
        titles = (*found.sweep.titles[:-1], "billed", "curve", "run")
        rows = grid_rows(found, curves, time.time(), list(drawn))
        # A column without measurements is omitted.
        kept = [at for at in range(len(titles)) if any(cells[at].plain != "-" for cells, _ in rows)]
        for at in kept:
            table.add_column(Text(titles[at], "dim", justify=rows[0][0][at].justify))
        widths = [max(len(titles[at]), *(cells[at].cell_len for cells, _ in rows)) for at in kept]
        room = self.size.width - _FRAME - sum(width + 2 for width in widths[:-1])
        for cells, run in rows:
            name = plain(shorten(cells[-1].plain, max(_LEAST_NAME, room)))
            table.add_row(*(cells[at] for at in kept[:-1]), name, key=run)
        if not before:
            chosen = next((at for at, (cells, _) in enumerate(rows) if "★" in cells[0].plain), 0)
        table.move_cursor(row=chosen, animate=False)
        lines = lines_of([curves[name] for name in drawn], list(drawn.values()))
        self._lines = dict(zip(drawn, lines, strict=True))
        self._draw_curves()
        self.query_one("#grid-advice", Static).update(plain("\n".join(found.sweep.advice)))

    @on(DataTable.RowHighlighted)
    def _draw_curves(self) -> None:
        """Draw the selected run's curve over the others, which are dim."""
        table = self.query_one("#grid", OpeningTable)
        at = table.cursor_coordinate
        chosen = table.coordinate_to_cell_key(at).row_key.value if table.row_count else None
        self.seen_run = self._found.runs.get(chosen) if self._found and chosen else None
        self.refresh_bindings()
        several = chosen in self._lines
        lines = [replace(line, is_behind=several and run != chosen)
                 for run, line in self._lines.items()]  # fmt: skip
        self.query_one(Chart).show(lines)


def grid_rows(
    found: GridFigures, curves: Mapping[str, Curve], now: float, drawn: Sequence[str]
) -> list[tuple[list[Text], str | None]]:
    """Return the cells of each run, with its id; the best value of a column is green.

    Once all runs have ended, a star marks the advised run or the one with the lowest loss. A run
    whose curve is drawn below has the same letter and colour there.
    """
    rows, losses = found.sweep.rows, 4
    texts = list(map(list, zip(*(row.cells[:-2] for row in rows), strict=True)))
    paces = [(row.pace.epoch_s, None, None, row.pace.loss, *row.others) for row in rows]
    columns = [texts[0], *map(even_decimals, texts[1:], zip(*paces, strict=True))]
    best = {
        1: _best(min, (row.pace.epoch_s for row in rows)),
        2: _best(max, (row.pace.samples_per_s for row in rows)),
        losses: _best(min, (row.pace.loss for row in rows)),
    }
    settings = [row.setting for row in rows]
    advised, ended = found.sweep.advised, not any(row.going for row in rows)
    star = settings.index(advised) if advised else best[losses] if ended else None
    made = []
    for at, row in enumerate(rows):
        run = found.runs.get(row.run or "")
        cells = [plain(column[at]) for column in columns]
        state, name = plain(row.state), plain(row.run or "-")
        for column, winner in best.items():
            if at == winner:
                cells[column].stylize("bold green")
        cells[0] = Text.assemble(("★ " if at == star else "  ", "bold green"), cells[0])
        if run is not None:
            state.stylize(COLOURS[run.state])
        price = plain((row_words.cost([run], now) if run else "") or "-")
        for number in (*cells[1:], price):
            number.justify = "right"
        curve = Text(sparkline(curves[run.id].values, _CURVE) if run and run.id in curves else "-")
        if row.run in drawn:
            place = drawn.index(row.run)
            curve = Text(f"{MARKS[place]} {curve}", SERIES[place])
        made.append(([*cells, state, price, curve, name], row.run))
    return made


def even_decimals(texts: Sequence[str], values: Sequence[float | None]) -> list[str]:
    """Return a column of `values` with the decimals of the longest text; others are unchanged."""
    decimals = max(len(text.partition(".")[2]) for text in texts)
    return [
        text if value is None or "e" in text or not decimals else f"{value:.{decimals}f}"
        for text, value in zip(texts, values, strict=True)
    ]


def _best(
    choose: Callable[[Iterable[_Known]], _Known], values: Iterable[float | None]
) -> int | None:
    """Return the position of the best value; None if fewer than two are known."""
    known = [(value, at) for at, value in enumerate(values) if value is not None]
    return choose(known)[1] if len(known) > 1 else None
