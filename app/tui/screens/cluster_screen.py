"""The current state of sites, side by side if they fit: nodes, queue, limits, budget."""

import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from lumitui.app.explain import site_page
from lumitui.app.explain.words import count
from lumitui.app.runs import (
    FRESH_SECONDS,
    ClusterOverview,
    InputError,
    LumiError,
    Nodes,
    OverviewPart,
    Run,
    Runs,
    job_lines,
    log_line,
    no_overview_yet,
    overview_age,
    overview_parts,
    partition_part,
)
from lumitui.app.tui.asking import ask, show_error, tui
from lumitui.app.tui.screens.page import FullScreen
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import SERIES, bar

COLUMN = 78
"""Minimum width of one site, in cells; if there is room for twice as many, two are side by side."""
WIDE = 110
"""Minimum cells of a site to show the details beside the tables."""
LEAST_BAR, MOST_BAR = 20, 40
"""Cells of a bar: enough to distinguish its parts, without hiding the numbers."""
LABELS = 11
"""Cells of the labels in both frames of details."""
MOST_ROWS = 200
"""Maximum rows of a part; the last one counts the rest."""
TELLING = {
    "nodes idle": "green", "running": "green", "pending": "yellow",
    "Idle": "green", "Mixed": SERIES[1], "Alloc": SERIES[0], "Down": "red",
}  # fmt: skip
"""Colours of cells by title, and of a bar's parts by theirs."""


class ClusterScreen(FullScreen):
    """One site, or as many as fit, queried on opening and then each minute."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "ask", "Refresh", id="page.refresh", tooltip="Query these sites again now"),
        Binding("right_square_bracket,right", "turn(1)", "Next site", key_display="]",
                id="cluster.next", tooltip="Show the next site"),
        Binding("left_square_bracket,left", "turn(-1)", "Previous site", show=False,
                id="cluster.previous", tooltip="Show the previous site"),
    ]  # fmt: skip

    def __init__(self, runs: Runs, site: str | None = None) -> None:
        """Show `site` first, by default the site of the latest run."""
        super().__init__(runs)
        self._first = site
        self._sites: list[str] = []
        self._at = 0
        self._asking: set[str] = set()
        self._tried: dict[str, float] = {}  # when each site was last queried, in epoch seconds
        self._errors: dict[str, LumiError] = {}
        self._drawn: dict[str, object] = {}

    def body(self) -> ComposeResult:
        """Yield the container of the columns."""
        yield Horizontal(id="clusters")

    def begin(self) -> None:
        """Query the displayed sites first."""
        try:
            self._sites = self.runs.clusters.sites()
        except LumiError as error:
            show_error(self, error)
        if self._first is not None:
            self._sites = [self._first, *(name for name in self._sites if name != self._first)]
        self._show()
        self.action_ask()
        self.set_interval(1.0, self.every_second)

    @property
    def visible_sites(self) -> list[str]:
        """The sites on the screen, from the left."""
        number = min(len(self._sites), max(1, self.size.width // COLUMN))
        return [self._sites[(self._at + step) % len(self._sites)] for step in range(number)]

    def _show(self) -> None:
        """Show the columns of the visible sites."""
        self._drawn.clear()
        place = self.query_one("#clusters", Horizontal)
        self.set_focus(None)
        place.remove_children()
        names = self.visible_sites
        place.mount_all([SiteColumn(name) for name in names])
        self.refresh_bindings()

    def on_resize(self) -> None:
        shown = [column.site for column in self.query(SiteColumn)]
        if self._sites and shown != self.visible_sites:
            self._show()

    def every_second(self) -> None:
        """Query again after a minute while the screen is on top."""
        if not self.is_seen or not self._sites:
            return
        now = time.time()
        for name in self.visible_sites:
            tried = self._tried.get(name, now)
            if now - tried >= FRESH_SECONDS and self.runs.clusters.is_due(name, now):
                self._ask(name, attended=False)
        self.reread()

    def action_ask(self) -> None:
        """Query the visible sites now; a login may prompt the user."""
        for name in self.visible_sites:
            self._ask(name, attended=True)
        self.reread()

    def _ask(self, name: str, *, attended: bool) -> None:
        if name in self._asking:
            return
        self._tried[name] = time.time()
        if not attended and tui(self).schedule.is_idle(time.monotonic()):
            self._came(name, None)  # the user is away
            return
        self._asking.add(name)
        ask(self, lambda runs: runs.clusters.ask(name, attended=attended),
            lambda _: self._came(name, None), failed=partial(self._came, name),
            quietly=True)  # fmt: skip

    def _came(self, name: str, error: LumiError | None) -> None:
        self._asking.discard(name)
        self._errors.pop(name, None)
        if error is not None:
            self._errors[name] = error
        self.reread()

    def action_turn(self, step: int) -> None:
        if len(self._sites) > len(self.visible_sites):
            self._at = (self._at + step) % len(self._sites)
            self._show()
            for name in self.visible_sites:
                if self.runs.clusters.is_due(name, time.time()):
                    self._ask(name, attended=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the keys for other sites only if some sites are not on the screen."""
        return action != "turn" or len(self._sites) > len(self.visible_sites)

    def draw(self) -> None:
        """Show the last answers; rebuild the tables only for a new one."""
        if not self.is_seen:
            return
        now = time.time()
        number, visible = len(self._sites), self.visible_sites
        more = f"site {self._at + 1} of {number}" if number > len(visible) else ""
        names = [] if self.has_class("-high") else visible  # without frames
        self.title_text("4 Cluster", *names, more if number else "no site")
        for column in self.query(SiteColumn):
            if len(column.query("QueueRows, PartitionMap")) < 2:
                continue  # not composed yet, or being removed
            name = column.site
            answered, error = self.runs.clusters.last(name), self._errors.get(name)
            nothing = no_overview_yet(name, asking=name in self._asking) if answered is None else ""
            if (made := (answered, nothing)) != self._drawn.get(name):
                self._drawn[name] = made
                column.show(answered.overview if answered else None, nothing, now)
            column.head(self._age(name, now), error)

    def _age(self, name: str, now: float) -> str:
        answered = self.runs.clusters.last(name)
        at = None if answered is None else answered.at
        # A failed query of another screen does not count here.
        tried = self._tried.get(name) if name in self._errors else None
        return overview_age(at, tried, now, asking=name in self._asking)


class SiteColumn(Vertical):
    """One site: a frame for each part of its answer, and details of the selected rows."""

    def __init__(self, site: str) -> None:
        super().__init__(classes="site-column")
        self.site = site
        self._error = ""
        self.overview = ClusterOverview()

    def compose(self) -> ComposeResult:
        """Yield the error, the parts and the details."""
        yield Static(classes="site-error frame", markup=False)
        with Scroll():
            with Container(classes="site-top"):
                with PartsColumn(classes="site-parts"):
                    yield PartRows()
                    yield QueueRows()
                    yield PartRows(chooses=False)
                    yield PartRows(chooses=False)
                    yield PartRows(chooses=False)
                with Vertical(classes="site-details"):
                    yield Static(classes="site-partition frame", markup=False)
                    yield Static(classes="site-job frame", markup=False)
            yield PartitionMap(classes="frame")

    def on_mount(self) -> None:
        """Show the site's last answer; focus the first column."""
        if self.query(PartitionMap) and isinstance(self.screen, ClusterScreen):
            self.screen.reread()
            if self.screen.focused is None:
                self.take_focus()

    def on_resize(self) -> None:
        """Show the details beside the tables if there is room."""
        self.set_class(self.size.width >= WIDE, "-wide")
        self._show_details()

    def head(self, age: str, error: LumiError | None) -> None:
        """Show the age of the answer and the error; a new answer redraws the rest."""
        self.query_one(PartRows).border_title = styled.plain(f"Partitions of {self.site}  {age}")
        why = str(error or "")
        if why != self._error:
            self._error = why
            place = self.query_one(".site-error", Static)
            place.display = error is not None
            place.border_title = "No answer"
            place.update(styled.plain(why, "yellow"))

    def show(self, overview: ClusterOverview | None, nothing: str, now: float) -> None:
        """Show an overview, or why it is missing."""
        self.overview = overview or ClusterOverview()
        nowhere = [OverviewPart("Partitions", sentence=nothing), *[OverviewPart("")] * 3]
        parts = overview_parts(overview, now) if overview else nowhere
        self.query_one(PartitionMap).show(self.overview.partitions)
        for rows, part in zip(self.query(PartRows), parts, strict=False):
            rows.show(part, self.overview.partitions if part is parts[0] else ())
            # Empty parts are hidden; parts that the site could not report are shown.
            rows.display = bool(part.rows or part.fault or part is parts[0])
        self._show_details()
        if self.query_one(Scroll).has_focus:
            self.take_focus()

    def take_focus(self) -> None:
        """Focus the jobs, else the partitions, else the column."""
        choices = (self.query_one(QueueRows), self.query_one(PartRows), self.query_one(Scroll))
        next(one for one in choices if one.focusable).focus(scroll_visible=False)

    @on(OptionList.OptionHighlighted)
    def _show_details(self) -> None:
        now, (nodes, *_, sizes) = time.time(), self.query(PartRows)
        place = self.query_one(".site-partition", Static)
        sizes.display = place.display = nodes.chosen is not None
        if nodes.chosen is not None:
            chosen = self.overview.partitions[nodes.chosen]
            lines = [("idle now", f"{chosen.idle:,} of {count(chosen.total, 'node')}")]
            part = OverviewPart("")
            with suppress(InputError):  # the Sites screen shows the profile's error
                site = tui(self).runs.sites.load(self.site)
                lines += site_page.partition_facts(site, chosen.partition)
                part = partition_part(site, chosen, self.overview.queue, now)
            sizes.show(part)
            sizes.display = bool(part.rows) and self.size.width >= WIDE
            place.border_title = styled.plain(chosen.partition)
            place.update(styled.labelled(lines, LABELS))
        place, at = self.query_one(".site-job", Static), self.query_one(QueueRows).chosen
        place.display = at is not None
        if at is not None:
            job = self.overview.queue[at]
            run = self.run_of(job.job_id)
            lines = [("run", f"{run.id}, enter opens it")] if run else []
            place.border_title = styled.plain(f"Job {job.job_id}")
            place.update(styled.labelled([*lines, *job_lines(job, now)], LABELS))
        self.screen.refresh_bindings()

    def run_of(self, job_id: str) -> Run | None:
        """Return the user's run of the job; None if lumitui did not send it from here."""
        runs = tui(self).runs.history.unfinished(self.site)
        return next((run for run in runs if run.job_id == job_id), None)


class PartsColumn(Vertical):
    """The tables of a site, which set the height of the details beside them."""

    def on_resize(self, event: events.Resize) -> None:
        """Give the details this height: a fraction would be relative to the screen."""
        (column,) = (one for one in self.ancestors if isinstance(one, SiteColumn))
        height = event.size.height if column.has_class("-wide") else "auto"
        column.query_one(".site-details").styles.height = height


class PartitionMap(Widget):
    """The nodes of all partitions by state, with a cell for one node or a few."""

    _partitions: Sequence[Nodes] = ()

    def show(self, nodes: Sequence[Nodes]) -> None:
        """Show the nodes of each partition."""
        self._partitions = nodes
        self.refresh()

    def render(self) -> Text:
        """Draw as many nodes per cell as the space requires."""
        if not self._partitions or not self.size.area:
            return Text()
        text, each = node_cells(self._partitions, *self.size, plain=self.app.no_color)
        self.border_title = f"Nodes  ■ = {count(each, 'node')}"
        return text


class PartRows(OptionList):
    """A part of an overview: titles and rows in a frame with a heading."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", "Down", show=False, id="queue.down", tooltip="Next row"),
        Binding("k", "cursor_up", "Up", show=False, id="queue.up", tooltip="Previous row"),
    ]

    def __init__(self, *, chooses: bool = True) -> None:
        """Show nothing yet; with `chooses`, the user can select a row."""
        super().__init__(markup=False, classes="frame")
        self._chooses = chooses
        self._part, self._bars = OverviewPart(""), tuple[Nodes, ...]()
        self._width = 0  # width of the displayed lines, in cells

    def show(self, part: OverviewPart, bars: tuple[Nodes, ...] = ()) -> None:
        """Show a part; `bars` are the nodes of its rows."""
        self._part, self._bars = part, bars
        self.can_focus = self._chooses and bool(part.rows)
        self.border_title = styled.plain(part.heading)
        self.border_subtitle = legend(plain=self.app.no_color) if bars else ""
        self._draw()

    def on_resize(self) -> None:
        """Draw the rows for another width."""
        if self.scrollable_content_region.width != self._width:
            self._draw()

    def _draw(self) -> None:
        self._width, at = self.scrollable_content_region.width, self.highlighted or 1
        lines = part_lines(self._part, self._width, self._bars, plain=self.app.no_color)
        last = min(len(self._part.rows), MOST_ROWS) if self.can_focus else 0
        self.clear_options()
        self.add_options(Option(line, disabled=not 0 < number <= last)
                         for number, line in enumerate(lines))  # fmt: skip
        self.highlighted = min(at, last) or None

    @property
    def chosen(self) -> int | None:
        """The selected row, from 0, or None."""
        return None if self.highlighted is None else self.highlighted - 1


class QueueRows(PartRows):
    """The user's jobs on a site; jobs that are runs can be opened and cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select", "Open run", id="queue.open", tooltip="Open the run of the job"),
        Binding("c", "cancel", "Cancel", id="queue.cancel",
                tooltip="Cancel the job, after confirmation"),
    ]  # fmt: skip

    def offers(self, action: str) -> bool:
        """Return whether the footer shows the keys: only for a job that is a run."""
        return self._found()[1] is not None

    def _found(self) -> tuple[str, Run | None]:
        column = next(one for one in self.ancestors if isinstance(one, SiteColumn))
        job = "" if self.chosen is None else column.overview.queue[self.chosen].job_id
        return job, column.run_of(job) if job else None

    def _run(self) -> str | None:
        """Return the run of the selected job; notify the user if it is not a run."""
        job, run = self._found()
        if job and run is None:
            self.notify(f"Job {job} is not one of your runs here.", markup=False)
        return run.id if run else None

    @on(OptionList.OptionSelected)
    def _open(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if run := self._run():
            tui(self).open_run(run)

    def action_cancel(self) -> None:
        if run := self._run():
            tui(self).cancels.cancel(run)


BAR = "━"
"""The parts of a bar, which differ in colour."""
USES = (
    ("idle", "▆", "green"), ("mixed", "▄", SERIES[1]), ("allocated", "▂", "#3f5f80"),
    ("other", "·", "bright_black"), ("down", "✖", "red"),
)  # fmt: skip
"""The states of nodes: the sign in a bar without colours, and the colour."""


def legend(*, plain: bool) -> Text:
    """Return the parts of a bar; `plain`: without colours."""
    parts = (Text.assemble((sign if plain else BAR, style), f" {use}") for use, sign, style in USES)
    return Text("  ").join(parts)


def nodes_bar(found: Nodes, width: int, *, plain: bool, sign: str = BAR) -> Text:
    """Return the nodes of a partition by state; `plain`: without colours."""
    parts = [(getattr(found, use), own if plain else sign, style) for use, own, style in USES]
    return bar(parts, width)


def node_cells(
    partitions: Sequence[Nodes], width: int, height: int, *, plain: bool
) -> tuple[Text, int]:
    """Return the rows of cells of each partition, and the number of nodes per cell."""
    partitions = partitions[:height]
    labels = 2 + max(cell_len(one.partition) for one in partitions)
    room = max(1, width - labels)
    most = max(one.total for one in partitions)
    for each in range(1, most + 1):
        rows = sum(max(1, -(-one.total // (each * room))) for one in partitions)
        if rows <= height:
            break
    apart = "\n\n" if rows + len(partitions) - 1 <= height else "\n"
    text = Text(no_wrap=True)
    for one in partitions:
        cells = nodes_bar(one, -(-one.total // each), plain=plain, sign="■")
        for at in range(0, max(1, len(cells)), room):
            label = styled.fit("" if at else log_line(one.partition), labels)
            text.append(("\n" if at else apart) if text else "").append(label, "dim")
            text.append_text(cells[at : at + room])
    return text, each


def compact(lines: Sequence[str], width: int) -> Sequence[str]:
    """Return a site's own table, without padding columns if it is too wide."""
    if max(map(cell_len, lines)) <= width:
        return lines
    columns = list(zip_longest(*lines, fillvalue=" "))
    fill = [set(column) <= set(" -=") for column in columns]
    kept = [one for at, one in enumerate(columns) if not (fill[at] and fill[at - 1])]
    return ["".join(row).rstrip() for row in zip(*kept, strict=True)]


def part_lines(
    part: OverviewPart, width: int, bars: Sequence[Nodes] = (), *, plain: bool = False
) -> list[Text]:
    """Return the titles and rows of a part, or its sentence; no text in them is markup.

    If `width` is too small for all columns, the most informative ones stay; if it is larger, the
    columns are further apart. `bars` follow the names.
    """
    if not part.rows:
        return [styled.plain(part.sentence, "yellow" if part.fault else "dim")]
    shown = part.rows[:MOST_ROWS]
    more = len(part.rows) - MOST_ROWS
    rest = [Text(f"and {more:,} more", "dim")] if more > 0 else []
    if len(part.titles) == 1:
        return [*map(styled.plain, compact([row[0] for row in shown], width)), *rest]
    table = [[log_line(cell) for cell in row] for row in (part.titles, *shown)]
    widths = [max(map(cell_len, column)) for column in zip(*table, strict=True)]
    kept: Sequence[int] = range(len(widths))
    if part.narrow and width < sum(widths) + 2 * len(widths) - 2 + (2 + LEAST_BAR) * bool(bars):
        kept = part.narrow
    room = width + 2 - sum(widths[at] + 2 for at in kept)
    long = min(room - 2, MOST_BAR) if bars and room - 2 >= LEAST_BAR else 0
    gap = " " * (2 + max(0, min(2, (room - long - 2 * bool(long)) // len(kept))))
    lines = []
    for number, cells in enumerate(table):
        line = Text(no_wrap=True, overflow="ellipsis", style="" if number else "dim")
        for at in kept:
            cell = styled.fit(cells[at], widths[at], right=at in part.right)
            line.append(cell, TELLING.get(cells[at], "")).append(gap)
            if long and not at:
                drawn = (
                    nodes_bar(bars[number - 1], long, plain=plain) if number else Text(" " * long)
                )
                line.append_text(drawn).append(gap)
        line.right_crop(len(gap))
        lines.append(line)
    return [*lines, *rest]
