"""The screen of a run's scaling: a recommended size, a chart, and a row for each size."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input, Label, Static

from lumitui.app.runs import (
    InputError,
    LumiError,
    ScalingQuestion,
    SizeGoal,
    advise_size,
    scaling_words,
    seconds_in,
)
from lumitui.app.tui.asking import ask, tui
from lumitui.app.tui.screens.page import RunScreenBase
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.chart import Chart
from lumitui.app.tui.widgets.input import LineInput
from lumitui.app.tui.widgets.plot import PlotLine
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.tables.row_list import ListRow, RowList, TitledRows

if TYPE_CHECKING:
    from lumitui.app.runs import Runs, Scaling, ScalingTable

FIELDS = (("deadline", "such as 6h"), ("budget", "such as 500"), ("samples", "as the run"))
"""The fields and their placeholders: an example or the default."""
TALL = 20
"""Minimum rows of a terminal to show the chart."""
_LEAST_ID = 8  # minimum cells of a run's id; its end distinguishes runs of the same name
ROOMY = 34
"""Maximum rows of the text below table and chart."""


class SizeRows(RowList):
    """The sizes; where they end, the keys scroll the text below the chart."""

    def moving(self, *, down: bool) -> Widget:
        """Return the text below where the sizes end."""
        words, at = self.screen.query_one("#words"), self.scroll_offset.y
        if down:
            return self if at < self.max_scroll_y else words
        return words if words.scroll_offset.y else self


class ScalingScreen(RunScreenBase):
    """A scaling study of a run's lineage; fields set the goal for the recommended size."""

    AUTO_FOCUS = "#sizes"
    VERTICAL_BREAKPOINTS = [(0, "-short"), (TALL, "-tall"), (ROOMY, "-roomy")]  # noqa: RUF012 - as Textual types it
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("D", "goal('deadline')", "Deadline", id="scaling.deadline",
                tooltip="Recommend a size for a deadline"),
        Binding("B", "goal('budget')", "Budget", id="scaling.budget",
                tooltip="Recommend a size for a budget"),
        Binding("W", "goal('samples')", "Work", id="scaling.samples",
                tooltip="Set the work: samples, epochs, or 10x that of the run"),
    ]  # fmt: skip

    def __init__(self, runs: Runs, run_id: str) -> None:
        super().__init__(runs)
        self._run_id = run_id
        self._seen: tuple[int, ...] = ()  # the history's stamp when the study was requested
        self._waits = False
        """Whether a study is running: for a large lineage it takes more than a second."""
        self._found: Scaling | None = None
        self._advised: int | None = None  # the number of nodes that is recommended

    @property
    def chosen(self) -> str:
        """The studied run."""
        return self._run_id

    def body(self) -> ComposeResult:
        """Yield the fields, the recommendation, the chart and the table."""
        with Horizontal(classes="goal"):
            for name, hint in FIELDS:
                yield Label(f"{name} ")
                yield LineInput(placeholder=hint, id=name, compact=True)
        yield Static("Reading the metrics of the lineage …", id="advice", markup=False)
        sizes = SizeRows(id="sizes")
        sizes.border_title = "Sizes"
        yield sizes
        yield Chart("samples/s", id="chart", over="GPUs")
        with Scroll(id="words") as words:
            words.border_title = "Basis"
            yield Static(id="basis", markup=False)

    def begin(self) -> None:
        """Check for changes every second."""
        self.reread()
        self.set_interval(1.0, self.every_second)

    def draw(self) -> None:
        """Study again if the history has changed."""
        self.seen_run = run = self.runs.history.get(self._run_id)
        self.refresh_bindings()
        name = Text(styled.shorten(run.id, max(18, self.size.width // 3)), style="bold")
        self.title_text("Scaling", name, f"{run.site} {run.brief.partition}")
        stamp = self.runs.history.stamp()
        if stamp != self._seen and not self._waits:
            self._seen = stamp
            self._request()

    @on(Input.Changed, "#samples")
    def _request(self) -> None:
        try:
            question = asked_work(self.query_one("#samples", Input).value)
        except InputError as error:
            self._advise(error)
            return
        self._waits = True
        ask(self, lambda runs: runs.scaling.of(self._run_id, question), self._studied,
            failed=self._not_studied, quietly=True, key="study")  # fmt: skip

    def _not_studied(self, error: LumiError) -> None:
        self._waits = False
        self._advise(error)

    def _studied(self, found: Scaling) -> None:
        self._waits, self._found = False, found
        places = {float(size.gpus): f"{size.nodes:,}" for size in found.sizes}
        self.query_one(Chart).show(scaling_lines(found), nodes=places)
        self._show_advice()

    def on_resize(self) -> None:
        if self._found is not None:
            self._show_study(self._found)

    def _show_study(self, found: Scaling) -> None:
        table = table_of(found, self.size.width - 2, self._advised)
        self.query_one("#sizes", RowList).show([], table)
        basis = [scaling_words.heading(found), scaling_words.basis(found)]
        text = "\n".join(line for line in (*basis, *scaling_words.notes(found)) if line)
        self.query_one("#basis", Static).update(styled.plain(text, "dim"))

    @on(Input.Submitted)
    def _field_left(self) -> None:
        self.query_one("#sizes").focus()

    def action_resubmit(self, factor: int) -> None:
        """Open the dialog that sends the run again; with a goal, `+` opens the recommended size."""
        has_goal = any(self.query_one(f"#{name}", Input).value for name, _ in FIELDS)
        nodes = self._advised if has_goal and factor > 1 else None
        self._act(lambda run: tui(self).sends.resubmit(run, factor, nodes=nodes))

    def action_goal(self, name: str) -> None:
        self.query_one(f"#{name}").focus()

    @on(Input.Changed, "#deadline, #budget")
    def _show_advice(self) -> None:
        self._advised = None
        if self._found is None:
            return
        said: str | LumiError = ""
        if self._found.measured:
            try:
                advice = advise_size(self._found, self._goal())
                self._advised = advice.nodes
                said = scaling_words.recommendation(self._found, advice)
            except InputError as error:
                said = error
        self._advise(said)
        self._show_study(self._found)

    def _goal(self) -> SizeGoal:
        deadline = self.query_one("#deadline", Input).value.strip()
        budget = self.query_one("#budget", Input).value.strip()
        try:
            amount = float(budget) if budget else None
        except ValueError:
            amount = -1.0
        if amount is not None and not 0 <= amount < 1e15:
            raise InputError(f"{budget!r} is not an amount.", "Write a number, like 500.")
        return SizeGoal(seconds_in(deadline) if deadline else None, amount)

    def _advise(self, said: str | LumiError) -> None:
        text = styled.plain(str(said), "bold red" if isinstance(said, LumiError) else "")
        if self._advised is not None:
            text.stylize("bold green", 0, str(said).find(".") + 1)  # the size alone
        self.query_one("#advice", Static).update(text)


_WORK = re.compile(r"(\d{1,15})|(\d{0,6}) ?epochs?|(\d{1,6}(?:\.\d{1,3})?) ?x", re.ASCII)


def asked_work(text: str) -> ScalingQuestion:
    """Return the work in `text`: `1000000`, `3 epochs`, `10x` the run's; '' means the run's own.

    Raises:
        InputError: `text` is not an amount of work.
    """
    plain = text.strip().replace(",", "")
    if not plain:
        return ScalingQuestion()
    samples, epochs, times = found.groups() if (found := _WORK.fullmatch(plain)) else ("0", "", "")
    if times and float(times):
        return ScalingQuestion(times=float(times))
    number = 0 if times else int(samples or epochs or 1)
    if not number:
        said = f"{plain!r} is not a number of samples."
        raise InputError(said, "Write 1000000, 3 epochs, 10x, or nothing for the run's own number.")
    return ScalingQuestion(samples=number) if samples else ScalingQuestion(epochs=number)


def scaling_lines(found: Scaling) -> list[PlotLine]:
    """Return the ideal, predicted and measured lines, predictions with intervals."""
    if not found.measured:
        return []
    base = found.measured[0]
    assert base.speed is not None and base.speed.likely is not None
    rate = base.speed.likely / base.gpus
    known = [
        (float(size.gpus), size.speed, size.measured)
        for size in found.sizes
        if size.speed is not None and (size.measured or not size.refused)
    ]
    drawn = [(x, speed.likely, own) for x, speed, own in known if speed.likely is not None]
    ideal = PlotLine("ideal", [(x, rate * x) for x, _, _ in known], "bright_black")
    likely = PlotLine("likely", [(x, y) for x, y, _ in drawn], styled.SERIES[0])
    name = "range" if all(measured for *_, measured in drawn) else "predicted"
    return [
        ideal,
        replace(likely, name=name, style=styled.SERIES[1], sign="○",
                bars=[(x, speed.low, speed.high) for x, speed, _ in known]),
        replace(likely, name="measured", points=[(x, y) for x, y, measured in drawn if measured],
                sign="●", joined=False),
    ]  # fmt: skip


def table_of(found: Scaling, width: int, advised: int | None = None) -> TitledRows:
    """Return a row for each size: a star for `advised` nodes, a predicted one in italics.

    If `width` is too small, the speed-up is omitted in favour of the efficiency, and long run ids
    are cut in the middle.
    """
    whole = _table_of(found, scaling_words.table(found), advised)
    if _width(whole) <= width:
        return whole
    shown = scaling_words.table(found, speed_up=False)
    shown = replace(shown, titles=(*shown.titles[:-1], "from"))
    without = replace(shown, rows=tuple((*row[:-1], "") for row in shown.rows))
    least = _table_of(found, without, advised)
    room = max(_LEAST_ID, width - _width(least) + len(shown.titles[-1]))
    rows = tuple(
        (*row[:-1], styled.shorten(row[-1].partition(" (")[0], room) if size.source else row[-1])
        for size, row in zip(found.sizes, shown.rows, strict=True)
    )
    return _table_of(found, replace(shown, rows=rows), advised)


def _width(table: TitledRows) -> int:
    return sum(table.widths) + styled.GAP * (len(table.titles) - 1)


def _table_of(found: Scaling, shown: ScalingTable, advised: int | None) -> TitledRows:
    rows = []
    for size, cells in zip(found.sizes, shown.rows, strict=True):
        style = "" if size.measured else "red" if size.refused else "italic"
        if size.nodes == advised:
            style, cells = f"bold green {style}", (f"★ {cells[0]}", *cells[1:])
        styles = tuple((column, style) for column in range(len(cells))) if style else ()
        rows.append(ListRow(tuple(styled.plain(cell).plain for cell in cells), styles))
    last = len(shown.titles) - 1
    return TitledRows(shown.titles, rows, frozenset(range(last)))
