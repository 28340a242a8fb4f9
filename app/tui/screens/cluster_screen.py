"""The sites as they are now, side by side where there is room: nodes, queue, limits, budget."""

import re
import time
from functools import partial
from typing import ClassVar

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from lumitui.app.runs import (
    FRESH_SECONDS,
    LumiError,
    OverviewPart,
    Runs,
    no_overview_yet,
    overview_age,
    overview_parts,
)
from lumitui.app.tui.asking import ask, show_error, tui
from lumitui.app.tui.screens.page import FullScreen
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.scroll import Scroll

COLUMN = 78
"""Cells that one site needs; two stand side by side when there are twice as many."""
MOST_ROWS = 200
"""Rows of a part that are drawn; the heading says how many there are."""


class ClusterScreen(FullScreen):
    """One site, or as many as fit; they are asked when they are opened, and then each minute."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "ask", "Ask again", id="page.refresh", tooltip="Ask these sites again now"),
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
        if scrolls:
            scrolls.first().focus()
        self.reread()

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
        number = f"site {self._at + 1} of {len(self._sites)}" if self._sites else "no site"
        self.title_text("4 Cluster", number)
        for column in self.query(SiteColumn):
            name = column.site
            answered, error = self.runs.clusters.last(name), self._errors.get(name)
            column.head(name, self._age(name, now), error)
            nothing = no_overview_yet(name, asking=name in self._asking) if answered is None else ""
            if (made := (answered, nothing, column.size.width)) != self._drawn.get(name):
                self._drawn[name] = made
                column.show(overview_parts(answered.overview, now) if answered else nothing)

    def _age(self, name: str, now: float) -> str:
        answered = self.runs.clusters.last(name)
        at = None if answered is None else answered.at
        # An answer that another screen asked for is not a failure of this one.
        tried = self._tried.get(name) if name in self._errors else None
        return overview_age(at, tried, now, asking=name in self._asking)


class SiteColumn(Vertical):
    """One site: its name and how old the answer is, and below the parts, which scroll."""

    def __init__(self, site: str) -> None:
        """Show nothing of `site` yet."""
        super().__init__(classes="site-column")
        self.site = site
        self._head = Text()

    def compose(self) -> ComposeResult:
        """Yield the head, why there is nothing new, and the parts."""
        yield Static(styled.plain(self.site, "bold"), classes="site-head", markup=False)
        yield Static(classes="site-error", markup=False)
        with Scroll():
            asking = Text(no_overview_yet(self.site, asking=True), "dim")
            yield Static(asking, classes="site-parts", markup=False)

    def on_resize(self) -> None:
        """Draw the tables for this width at once, not with the next second."""
        if isinstance(self.screen, ClusterScreen):
            self.screen.draw()

    def head(self, name: str, age: str, error: LumiError | None) -> None:
        """Show the first lines; the rest is drawn for a new answer only."""
        if len(self.query(".site-head, .site-error, .site-parts")) < 3:
            return  # not composed yet, or being taken away
        text = Text.assemble(styled.plain(name, "bold"), "  ", age)
        why = styled.plain(str(error), "yellow") if error is not None else Text()
        if (whole := text + why) != self._head:
            self._head = whole
            self.query_one(".site-head", Static).update(text)
            place = self.query_one(".site-error", Static)
            place.display = error is not None
            place.update(why)

    def show(self, parts: list[OverviewPart] | str) -> None:
        """Show the parts of an overview, or why there are none."""
        if self.query(".site-parts"):
            drawn: list[RenderableType] = [Text(parts, "dim")] if isinstance(parts, str) else []
            for part in () if isinstance(parts, str) else parts:
                drawn += [*drawn_part(part, self.size.width - 2), Text()]
            self.query_one(".site-parts", Static).update(Group(*drawn))


def fitting(line: str, width: int) -> str:
    """Return a line of a site's own table; where it is too wide, without what only fills it."""
    if cell_len(line) <= width:
        return line
    filled = set(line) <= set("-=+| ")
    return line[:width] if filled else re.sub(r" {2,}", " ", line).replace(" |", "|")


def drawn_part(part: OverviewPart, width: int) -> list[RenderableType]:
    """Return a heading, and its rows or its sentence; no text in them is markup.

    Where `width` cells are too few for all columns, those stay that tell most.
    """
    heading = styled.plain(part.heading, "bold underline")
    if not part.rows:
        style = "yellow" if part.fault else "dim"
        return [heading, styled.plain(part.sentence, style)]
    if len(part.titles) == 1:
        return [heading, *(styled.plain(fitting(row[0], width)) for row in part.rows[:MOST_ROWS])]
    shown = part.rows[:MOST_ROWS]
    widths = (max(map(cell_len, column)) + 2 for column in zip(part.titles, *shown, strict=True))
    kept = part.narrow if part.narrow and sum(widths) - 2 > width else range(len(part.titles))
    table = Table.grid(padding=(0, 2, 0, 0))
    for at in kept:
        table.add_column(no_wrap=True, justify="right" if at in part.right else "left")
    if any(part.titles):
        table.add_row(*(Text(part.titles[at], "dim") for at in kept))
    for row in shown:
        table.add_row(*(styled.plain(row[at]) for at in kept))
    more = len(part.rows) - MOST_ROWS
    return [heading, table, *([Text(f"and {more:,} more", "dim")] if more > 0 else [])]
