"""The sites: how often each is asked, and what this program has cost its login node."""

import time
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from lumitui.app.runs import Runs
from lumitui.app.tui import messages
from lumitui.app.tui.screens.page import Page
from lumitui.app.tui.widgets import wording
from lumitui.app.tui.widgets.site_table import SiteRow, SiteTable
from lumitui.app.watch.schedule import Schedule
from lumitui.remote.errors import InputError
from lumitui.remote.transport.footprint import Footprint

MANNERS = """One connection a site, kept open. All watched runs of a site are one
request and one squeue; sacct is asked only for jobs that left the queue.
A site without unfinished runs is not asked, nor is any after 10 minutes
without a key or focus."""


class SitesScreen(Page):
    """A row a site, and under it what an hour at the present rate costs."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "look", "Refresh", id="page.refresh", tooltip="Ask the sites now"),
    ]

    def __init__(self, runs: Runs, schedule: Schedule) -> None:
        """Show the sites of `runs`; `schedule` knows when each is asked."""
        super().__init__(runs)
        self._schedule = schedule
        self._every: dict[str, float | None] = {}

    def body(self) -> ComposeResult:
        """The table, a line on the site under the cursor, and how the program behaves."""
        yield SiteTable(id="sites")
        yield Static(id="site-line", markup=False)
        yield Static(MANNERS, id="manners", markup=False)

    def begin(self) -> None:
        """Read the profiles once; the figures follow the time."""
        for name in self.runs.sites.names():
            try:
                self._every[name] = self.runs.sites.load(name).poll_seconds
            except InputError:
                self._every[name] = None  # told in its line
        self.reread()
        self.query_one(SiteTable).focus()
        self.set_interval(1.0, self.reread)

    def draw(self) -> None:
        """Show the counts as they are now."""
        if not self.is_current:
            return
        watched = [run.site for run in self.runs.history.unfinished()]
        rows = [
            SiteRow(name, watched.count(name), every or 0.0, self.runs.footprint(name))
            for name, every in self._every.items()
        ]
        table = self.query_one(SiteTable)
        table.show(rows)
        seconds = time.monotonic() - self._schedule.began_at
        self.title_text("3 Sites", f"counted for {wording.duration(seconds)}")
        chosen = next((row for row in rows if row.name == table.selected), None)
        if chosen is not None:
            self.query_one("#site-line", Static).update(self._line(chosen, seconds))

    def _line(self, row: SiteRow, seconds: float) -> Text:
        line = Text(no_wrap=True, overflow="ellipsis").append(row.name, "bold")
        if self._every[row.name] is None:
            return line.append("  its profile cannot be read: lumitui sites " + row.name, "yellow")
        wait = self._schedule.next_refresh(row.name, time.monotonic()) if row.open_runs else None
        line.append("  not asked" if wait is None else f"  asked in {wording.duration(wait)}")
        return line.append(f"; an hour at this rate: {hourly(row.cost, seconds)}")

    def action_look(self) -> None:
        """Ask the sites now."""
        self.post_message(messages.RefreshWanted())


def hourly(cost: Footprint, seconds: float) -> str:
    """Return what an hour costs when it goes on as in the last `seconds`."""
    factor = 3600.0 / max(seconds, 1.0)
    moved = wording.size(round((cost.bytes_up + cost.bytes_down) * factor))
    requests, commands = round(cost.requests * factor), round(cost.commands * factor)
    return f"{requests} requests, {commands} Slurm commands, {moved}"
