"""The sites: how often each is polled, and what this program has cost its login node."""

import time
from datetime import date
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Static

from lumitui.app.explain import words
from lumitui.app.runs import Footprint, InputError, Runs, Schedule, Site
from lumitui.app.tui.asking import tui
from lumitui.app.tui.screens.page import FullScreen
from lumitui.app.tui.widgets.tables.site_table import SiteRow, SiteTable

POLLING = (
    "One connection to each site is kept open. A poll of all its watched runs is one request with "
    "one squeue; sacct runs only for jobs that left the queue. A site without unfinished runs is "
    "not polled, and none is after 10 minutes without a key or focus."
)


class SitesScreen(FullScreen):
    """A row for each site; below, what an hour at the present rate costs."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "enter",
            "cluster",
            "Cluster",
            id="sites.cluster",
            tooltip="Show the nodes, queue and budget of the site",
        ),
        Binding(
            "p",
            "profile",
            "Profile",
            id="sites.profile",
            tooltip="Show what is known of the site: partitions, nodes, containers, prices",
        ),
        Binding(
            "L",
            "requests",
            "Log",
            id="sites.requests",
            tooltip="Show what the sites were asked lately, and how long it took",
        ),
        Binding("r", "refresh_sites", "Refresh", id="page.refresh", tooltip="Poll the sites now"),
    ]

    def __init__(self, runs: Runs, schedule: Schedule) -> None:
        """Show the sites of `runs`; `schedule` knows when each is polled."""
        super().__init__(runs)
        self._schedule = schedule
        self._known: dict[str, Site | None] = {}
        """The profiles in the order of their rows; None: one that cannot be read."""

    def body(self) -> ComposeResult:
        """Yield the table, a line on the site under the cursor, and how sites are polled."""
        yield SiteTable(id="sites")
        yield Static(id="site-line", markup=False)
        yield Static(POLLING, id="polling", markup=False)

    def begin(self) -> None:
        """Read the profiles once; draw the counts again every second."""
        known: dict[str, Site | None] = {}
        for name in dict.fromkeys([*self.runs.clusters.sites(), *self.runs.sites.names()]):
            try:
                known[name] = self.runs.sites.load(name)
            except InputError:
                known[name] = None  # its line says so
        self._known = dict(sorted(known.items(), key=lambda row: _is_closed(row[1])))
        self.reread()
        self.query_one(SiteTable).focus()
        self.set_interval(1.0, self.every_second)

    def moves(self) -> bool:
        """Return that it does: the counts are no part of history."""
        return True

    def draw(self) -> None:
        """Show the counts as they are now."""
        if not self.is_seen:
            return
        watched = [run.site for run in self.runs.history.unfinished()]
        rows = [
            SiteRow(
                name,
                watched.count(name),
                site.poll_seconds if site else 0.0,
                self.runs.footprint(name),
            )
            for name, site in self._known.items()
        ]
        table = self.query_one(SiteTable)
        table.show(rows)
        seconds = time.monotonic() - self._schedule.began_at
        self.title_text("3 Sites", f"counted for {words.short_length(seconds)}")
        chosen = next((row for row in rows if row.name == table.selected), None)
        if chosen is not None:
            self.query_one("#site-line", Static).update(self._line(chosen, seconds))

    def _line(self, row: SiteRow, seconds: float) -> Text:
        line = Text(no_wrap=True, overflow="ellipsis").append(row.name, "bold")
        site = self._known[row.name]
        if site is None:
            hint = f"  run `lumitui site show {row.name}`: its profile cannot be read"
            return line.append(hint, "yellow")
        if site.retired and _is_closed(site):
            instead = f"; {site.replaced_by} takes its place" if site.replaced_by else ""
            return line.append(f"  no jobs since {site.retired}{instead}", "yellow")
        wait = self._schedule.next_refresh(row.name, time.monotonic()) if row.open_runs else None
        next_poll = "not polled" if wait is None else f"next poll in {words.short_length(wait)}"
        line.append(f"  {next_poll}")
        return line.append(f"; an hour at this rate: {hourly(row.cost, seconds)}")

    def action_requests(self) -> None:
        """Open the log of requests."""
        from lumitui.app.tui.screens.requests_screen import RequestsScreen

        self.app.push_screen(RequestsScreen(self.runs))

    def action_profile(self) -> None:
        """Show the profile of the site under the cursor as a page."""
        from lumitui.app.tui.dialogs.site_dialog import SitePageDialog

        if site := self._known.get(self.query_one(SiteTable).selected or ""):
            self.app.push_screen(SitePageDialog(site))

    def action_cluster(self) -> None:
        """Open the screen Cluster at the site under the cursor."""
        if (site := self.query_one(SiteTable).selected) is not None:
            from lumitui.app.tui.screens.cluster_screen import ClusterScreen

            self.app.push_screen(ClusterScreen(self.runs, site))

    @on(SiteTable.RowSelected)
    def _open(self) -> None:
        self.action_cluster()

    def action_refresh_sites(self) -> None:
        """Poll the sites now."""
        tui(self).tick(asked=True)


def _is_closed(site: Site | None) -> bool:
    return site is not None and site.is_closed(date.today())


def hourly(cost: Footprint, seconds: float) -> str:
    """Return what an hour costs at the rate of the last `seconds`."""
    factor = 3600.0 / max(seconds, 1.0)
    moved = words.size(round((cost.bytes_up + cost.bytes_down) * factor))
    requests, commands = round(cost.requests * factor), round(cost.commands * factor)
    return f"{requests} requests, {commands} Slurm commands, {moved}"
