"""The sites as they are now, side by side where there is room: nodes, queue, limits, budget."""

import re
import time
from collections.abc import Sequence
from functools import partial
from typing import ClassVar, cast

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from lumitui.app.runs import (
    FRESH_SECONDS,
    ClusterOverview,
    LumiError,
    Nodes,
    OverviewPart,
    Runs,
    expected_starts,
    no_overview_yet,
    overview_age,
    overview_parts,
)
from lumitui.app.tui.asking import ask, show_error, tui
from lumitui.app.tui.screens.page import FullScreen
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import SERIES, bar

COLUMN = 78
"""Cells that one site needs; two stand side by side when there are twice as many."""
WIDE = 110
"""Cells of a site from which on reservations and budget are side by side."""
LEAST_BAR = 24
"""Cells of a bar in which its parts can be told apart."""
MOST_ROWS = 200
"""Rows of a part that are drawn; the heading says how many there are."""


class ClusterScreen(FullScreen):
    """One site, or as many as fit; they are asked when they are opened, and then each minute."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "ask", "Refresh", id="page.refresh", tooltip="Ask these sites again now"),
        Binding("right_square_bracket,right", "turn(1)", "Next site", key_display="]",
                id="cluster.next", tooltip="Show the next site"),
        Binding("left_square_bracket,left", "turn(-1)", "Previous site", show=False,
                id="cluster.previous", tooltip="Show the previous site"),
    ]  # fmt: skip

    def __init__(self, runs: Runs, site: str | None = None) -> None:
        """Show `site` first; None: the one with the latest run."""
        super().__init__(runs)
        self._first = site
        self._sites: list[str] = []
        self._at = 0
        self._asking: set[str] = set()
        self._tried: dict[str, float] = {}
        """When each site was asked last, in epoch seconds."""
        self._errors: dict[str, LumiError] = {}
        self._drawn: dict[str, object] = {}

    def body(self) -> ComposeResult:
        """Yield a place for the columns."""
        yield Horizontal(id="clusters")

    def begin(self) -> None:
        """Ask the sites that are shown first."""
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
        place.remove_children()
        names = self.visible_sites if self._sites else []
        place.mount_all([SiteColumn(name) for name in names])
        self.refresh_bindings()
        self.call_after_refresh(self._shown)

    def _shown(self) -> None:
        scrolls = self.query(Scroll)
        if not scrolls and self.query(SiteColumn):
            self.call_after_refresh(self._shown)  # no column is composed yet
            return
        self.reread()
        queues = [rows for rows in self.query(QueueRows) if rows.display]
        for first in (*queues, *scrolls)[:1]:
            first.focus(scroll_visible=False)  # what is above the queue stays on the screen

    def on_resize(self) -> None:
        """Show as many sites as fit now."""
        shown = [column.site for column in self.query(SiteColumn)]
        if self._sites and shown != self.visible_sites:
            self._show()

    def every_second(self) -> None:
        """Ask again what is older than a minute, as long as the screen is on top."""
        if not self.is_seen or not self._sites:
            return
        now = time.time()
        for name in self.visible_sites:
            tried = self._tried.get(name, now)
            if now - tried >= FRESH_SECONDS and self.runs.clusters.is_due(name, now):
                self._ask(name, attended=False)
        self.reread()

    def action_ask(self) -> None:
        """Ask the visible sites now; a login may ask the user."""
        for name in self.visible_sites if self._sites else []:
            self._ask(name, attended=True)
        self.reread()

    def _ask(self, name: str, *, attended: bool) -> None:
        if name in self._asking:
            return
        self._tried[name] = time.time()
        if not attended and tui(self).schedule.is_idle(time.monotonic()):
            self._came(name, None)  # nobody is there
            return
        self._asking.add(name)
        ask(
            self,
            lambda runs: runs.clusters.ask(name, attended=attended),
            lambda _: self._came(name, None),
            failed=partial(self._came, name),
            quietly=True,
        )

    def _came(self, name: str, error: LumiError | None) -> None:
        self._asking.discard(name)
        self._errors.pop(name, None)
        if error is not None:
            self._errors[name] = error
        self.reread()

    def action_turn(self, step: int) -> None:
        """Show the next site, or the one before."""
        if len(self._sites) > len(self.visible_sites):
            self._at = (self._at + step) % len(self._sites)
            self._show()
            for name in self.visible_sites:
                if self.runs.clusters.is_due(name, time.time()):
                    self._ask(name, attended=True)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Show the keys for other sites only where there are some that are not on the screen."""
        return action != "turn" or len(self._sites) > len(self.visible_sites)

    def draw(self) -> None:
        """Show what the sites said last; the tables are made again only for a new answer."""
        if not self.is_seen:
            return
        now = time.time()
        names = ", ".join(self.visible_sites) if self._sites else "no site"
        more = f"site {self._at + 1} of {len(self._sites)}" if len(self._sites) > 1 else ""
        self.title_text("4 Cluster", names, more)
        for column in self.query(SiteColumn):
            name = column.site
            answered, error = self.runs.clusters.last(name), self._errors.get(name)
            column.head(name, self._age(name, now), error)
            nothing = no_overview_yet(name, asking=name in self._asking) if answered is None else ""
            if (made := (answered, nothing, column.size.width)) != self._drawn.get(name):
                self._drawn[name] = made
                column.show(answered.overview if answered else None, nothing, now)

    def _age(self, name: str, now: float) -> str:
        answered = self.runs.clusters.last(name)
        at = None if answered is None else answered.at
        # An answer that another screen asked for is not a failure of this one.
        tried = self._tried.get(name) if name in self._errors else None
        return overview_age(at, tried, now, asking=name in self._asking)


class SiteColumn(Vertical):
    """One site: its name and how old the answer is in the frame, the parts inside, which scroll."""

    def __init__(self, site: str) -> None:
        """Show nothing of `site` yet."""
        super().__init__(classes="site-column frame")
        self.site = site
        self._error = ""

    def compose(self) -> ComposeResult:
        """Yield why there is nothing new, and the parts."""
        yield Static(classes="site-error", markup=False)
        with Scroll():
            asking = Text(no_overview_yet(self.site, asking=True), "dim")
            yield Static(asking, classes="site-parts", markup=False)
            yield QueueRows(self.site)
            yield Static(classes="site-rest", markup=False)

    def on_resize(self) -> None:
        """Draw the tables for this width at once, not with the next second."""
        if isinstance(self.screen, ClusterScreen):
            self.screen.draw()

    def head(self, name: str, age: str, error: LumiError | None) -> None:
        """Show how old the answer is; the rest is drawn for a new answer only."""
        self.border_title = styled.plain(f"{name}  {age}")
        why = str(error or "")
        if why != self._error and self.query(".site-error"):
            self._error = why
            place = self.query_one(".site-error", Static)
            place.display = error is not None
            place.update(styled.plain(why, "yellow"))

    def show(self, overview: ClusterOverview | None, nothing: str, now: float) -> None:
        """Show an overview, or why there is none."""
        if len(self.query(".site-parts, .site-rest, QueueRows")) < 3:
            return  # not composed yet, or being taken away
        queue, width = self.query_one(QueueRows), self.size.width - 2
        above, rest, parts = self.query_one(".site-parts", Static), self.query_one(".site-rest"), []
        if overview is not None:
            nodes, queued, *parts = overview_parts(overview, now)
            heading, *rows = drawn_part(queued, width)
            drawn = [*drawn_part(nodes, width, overview.partitions), LEGEND]
            drawn += [styled.plain(line) for line in expected_starts(overview, now)]
            above.update(Group(*drawn, Text(), heading, *([] if overview.queue else rows)))
            queue.show([job.job_id for job in overview.queue[:MOST_ROWS]], rows, width)
        else:
            above.update(Text(nothing, "dim"))
            queue.show([], [], width)
        if width >= WIDE and len(parts) > 1:
            table = Table.grid(expand=True, padding=(0, 2, 0, 0))
            for _ in parts:
                table.add_column(ratio=1)
            room = width // len(parts) - 2
            table.add_row(*(Group(Text(), *drawn_part(part, room)) for part in parts))
            cast("Static", rest).update(table)
            return
        below = [line for part in parts for line in (Text(), *drawn_part(part, width))]
        cast("Static", rest).update(Group(*below))


class QueueRows(OptionList):
    """The user's jobs on a site; those that are runs can be opened and cancelled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", "Down", show=False, id="queue.down", tooltip="Next job"),
        Binding("k", "cursor_up", "Up", show=False, id="queue.up", tooltip="Previous job"),
        Binding("enter", "select", "Open run", id="queue.open", tooltip="Open the run of the job"),
        Binding("c", "cancel", "Cancel", id="queue.cancel", tooltip="Cancel the job; asks first"),
    ]

    def __init__(self, site: str) -> None:
        """Show no jobs of `site` yet."""
        super().__init__(markup=False, compact=True)
        self._site = site

    def show(self, jobs: Sequence[str], rows: Sequence[RenderableType], width: int) -> None:
        """Show a row for each job, below their titles; it has the keys if it has rows."""
        chosen = self.highlighted
        lines = self.app.console.render_lines(
            Group(*rows), self.app.console_options.update_width(width)
        )
        texts = [Text.assemble(*((s.text, s.style or "") for s in line)) for line in lines]
        self.clear_options()
        if jobs:
            self.add_options(Option(text, id=job or None, disabled=not job)
                             for job, text in zip(["", *jobs], texts, strict=False))  # fmt: skip
        self.display = bool(jobs)
        if jobs:
            self.highlighted = min(chosen or 1, len(jobs))
            if isinstance(self.parent, Scroll) and self.parent.has_focus:
                self.focus(scroll_visible=False)

    def _run(self) -> str | None:
        """Return the run of the job under the cursor; say so where it is none of ours."""
        if self.highlighted is None:
            return None
        job = self.get_option_at_index(self.highlighted).id
        for run in tui(self).runs.history.unfinished(self._site):
            if run.job_id == job:
                return run.id
        self.notify(f"Job {job} is not one of your runs here.", markup=False)
        return None

    @on(OptionList.OptionSelected)
    def _open(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if run := self._run():
            tui(self).open_run(run)

    def action_cancel(self) -> None:
        """Cancel the job under the cursor, after asking."""
        if run := self._run():
            tui(self).cancels.cancel(run)


USES = (
    ("idle", "▆", "green"), ("mixed", "▄", SERIES[1]), ("allocated", "▂", SERIES[0]),
    ("other", "·", "bright_black"), ("down", "✖", "red"),
)  # fmt: skip
"""What nodes do, each with its sign and colour in a bar; no sign touches the bar above."""
LEGEND = Text("  ").join(Text.assemble((sign, style), f" {use}") for use, sign, style in USES)


def nodes_bar(found: Nodes, width: int) -> Text:
    """Return the nodes of a partition by what they do."""
    return bar([(getattr(found, use), sign, style) for use, sign, style in USES], width)


def fitting(line: str, width: int) -> str:
    """Return a line of a site's own table; where it is too wide, without what only fills it."""
    if cell_len(line) <= width:
        return line
    filled = set(line) <= set("-=+| ")
    return line[:width] if filled else re.sub(r" {2,}", " ", line).replace(" |", "|")


def drawn_part(part: OverviewPart, width: int, bars: Sequence[Nodes] = ()) -> list[RenderableType]:
    """Return a heading, and its rows or its sentence; no text in them is markup.

    Where `width` cells are too few for all columns, those stay that tell most. `bars` are drawn
    in the cells that are left behind the rows.
    """
    heading = styled.plain(part.heading, "bold underline")
    if not part.rows:
        style = "yellow" if part.fault else "dim"
        return [heading, styled.plain(part.sentence, style)]
    if len(part.titles) == 1:
        return [heading, *(styled.plain(fitting(row[0], width)) for row in part.rows[:MOST_ROWS])]
    shown = part.rows[:MOST_ROWS]
    widths = [max(map(cell_len, column)) + 2 for column in zip(part.titles, *shown, strict=True)]
    room = width - sum(widths)
    kept: Sequence[int] = range(len(part.titles))
    if part.narrow and room < (LEAST_BAR if bars else -2):
        kept = part.narrow
        room = width - sum(widths[at] for at in kept)
    bars = bars if room >= LEAST_BAR else ()
    table = Table.grid(padding=(0, 2, 0, 0))
    for at in kept:
        table.add_column(no_wrap=True, justify="right" if at in part.right else "left")
    if bars:
        table.add_column(no_wrap=True)
    if any(part.titles):
        table.add_row(*(Text(part.titles[at], "dim") for at in kept))
    for number, row in enumerate(shown):
        drawn = [nodes_bar(bars[number], room)] if bars else []
        table.add_row(*(styled.plain(row[at]) for at in kept), *drawn)
    more = len(part.rows) - MOST_ROWS
    return [heading, table, *([Text(f"and {more:,} more", "dim")] if more > 0 else [])]
