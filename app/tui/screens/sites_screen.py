"""The sites: their profiles, poll rates and load on the login node."""

import time
from collections.abc import Collection, Sequence
from datetime import date
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from lumitui.app.explain import site_page, words
from lumitui.app.runs import InputError, Runs, Schedule, Site
from lumitui.app.tui.asking import tui
from lumitui.app.tui.screens.page import FullScreen
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.input import FilterInput
from lumitui.app.tui.widgets.scroll import Scroll

LEAST = 24
"""Minimum cells for readable partition names."""
TWO_PAGES = 130
"""Minimum cells to show a profile in two columns."""
COLUMNS = (("  Site", 13), ("Name", 20), ("GPUs", 16), ("State", 20))
"""Headings and widths in cells; the partitions take the remaining cells."""
SIGNS = {"▶": "green", "✖": "red"}
"""The style of a site's name, by sign."""


class SitesScreen(FullScreen):
    """A row for each site, and below, the profile of the site under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "cluster", "Cluster", id="sites.cluster",
                tooltip="Show the nodes, queue and budget of the site"),
        Binding("v", "profile", "View", id="sites.profile",
                tooltip="Show only the site's profile, or the list again"),
        Binding("n", "add", "New", id="sites.add",
                tooltip="Survey a cluster that has no profile, and save one"),
        Binding("f5", "measure", "Measure", id="sites.measure",
                tooltip="Measure a node of the site with a short job; shows the price first"),
        Binding("slash", "filter", "Filter", key_display="/", id="sites.filter",
                tooltip="Show only the sites with all typed words"),
        Binding("H", "requests", "Requests", id="sites.requests",
                tooltip="Show the latest requests to the sites, and their duration"),
        Binding("r", "refresh_sites", "Refresh", id="page.refresh", tooltip="Poll the sites now"),
    ]  # fmt: skip

    def __init__(self, runs: Runs, schedule: Schedule) -> None:
        """Show the sites of `runs`; `schedule` contains their poll times."""
        super().__init__(runs)
        self._schedule = schedule
        self._own: Collection[str] = ()
        self._known: dict[str, Site | None] = {}
        """The profiles in row order; None for an unreadable profile."""
        self._page: str | None = None  # the site whose profile is shown below the list

    def body(self) -> ComposeResult:
        """Yield the filter, the list, and the profile of the site under the cursor."""
        yield FilterInput(placeholder="type to filter", id="site-filter", compact=True)
        with Vertical(id="site-list", classes="frame"):
            yield Static(id="site-heading", markup=False)
            yield OptionList(id="sites", compact=True, markup=False)
        with Scroll(id="site-page", classes="frame"):
            yield Static(markup=False)

    def begin(self) -> None:
        """Read the profiles once; draw the counts again every second."""
        self.query_one(FilterInput).display = False
        self._read()
        self.query_one(OptionList).focus()
        self.set_interval(1.0, self.every_second)

    def _read(self, chosen: str = "") -> None:
        """Read the profiles: the user's own first, closed sites last."""
        known: dict[str, Site | None] = {}
        for name in dict.fromkeys([*self.runs.clusters.sites(), *self.runs.sites.names()]):
            try:
                known[name] = self.runs.sites.load(name)
            except InputError:
                known[name] = None  # its row shows the error
        self._own = self.runs.sites.own()
        rows = sorted(known.items(), key=lambda row: (_is_closed(row[1]), row[0] not in self._own))
        self._known = dict(rows)
        self.reread()
        if chosen:
            menu = self.query_one(OptionList)
            menu.highlighted = menu.get_option_index(chosen)

    def moves(self) -> bool:
        """Return True: the counts are not part of the history."""
        return True

    @property
    def _selected(self) -> str:
        option = self.query_one(OptionList).highlighted_option
        return (option.id if option else None) or ""

    @on(OptionList.OptionHighlighted)
    @on(Input.Changed)
    def draw(self) -> None:
        """Show the current counts of the sites with all typed words."""
        if not self.is_seen:
            return
        watched = [run.site for run in self.runs.history.unfinished()]
        typed = self.query_one(FilterInput).value.casefold().split()
        sites = {
            name: self._cells(name, site, watched.count(name))
            for name, site in self._known.items()
            if all(word in f"{name} {site.title if site else ''}".casefold() for word in typed)
        }
        rows = {name: self._row(cells, self._known[name]) for name, cells in sites.items()}
        heads = self._row([*(name for name, _ in COLUMNS), "Partitions"], None)
        self.query_one("#site-heading", Static).update(heads)
        menu, chosen = self.query_one(OptionList), self._selected
        if [option.id for option in menu.options] != list(rows):
            menu.clear_options()
            menu.add_options(Option(text, id=name) for name, text in rows.items())
            menu.highlighted = list(rows).index(chosen) if chosen in rows else 0 if rows else None
        for option in menu.options:
            if option.prompt != (text := rows[option.id or ""]):
                menu.replace_option_prompt(option.id or "", text)
        self.query_one("#site-list").border_subtitle = "" if rows else "No such site."
        self.title_text("3 Sites")
        name = self._selected
        seconds = self._schedule.next_refresh(name, time.monotonic()) if name in watched else None
        polled = "" if seconds is None else f"next poll in {words.short_length(seconds)}"
        requests = self.runs.footprint(name).requests
        counted = words.count(requests, "request") if requests else ""
        self.query_one("#site-page").border_subtitle = ", ".join(filter(None, (counted, polled)))
        self._show_page(name)

    def on_resize(self) -> None:
        super().on_resize()
        if self.query("#site-page"):
            self._page = None
            self.reread()

    def _show_page(self, name: str) -> None:
        """Show the profile of a site below the list, as `lumitui site show` prints it."""
        page, width = self.query_one("#site-page", Scroll), max(20, self.size.width - 6)
        if name != self._page:
            self._page, site = name, self._known.get(name)
            doubt = "   ? unverified" if site and site.unverified else ""
            page.border_title = styled.plain(f"{site.title} ({name}){doubt}" if site else name)
            columns = 2 if width >= TWO_PAGES else 1
            text = site_page.page(site, date.today(), width // columns - 2) if site else ""
            page.query_one(Static).update(page_text(text, columns))
            page.scroll_home(animate=False)

    def _cells(self, name: str, site: Site | None, open_runs: int) -> list[str]:
        if site is None:
            return [f"✖ {name}", "", "", "unreadable profile", ""]
        sign, state = "·", ""
        if _is_closed(site):
            sign, state = "-", f"closed, use {site.replaced_by}" if site.replaced_by else "closed"
        elif open_runs:
            sign = "▶"
            state = (
                f"{words.count(open_runs, 'run')}, every {words.short_length(site.poll_seconds)}"
            )
        elif name in self._own:
            sign, state = "✔", "your profile"
        gpus = f"{site.node.gpus} {site.node.gpu.partition(' (')[0]}"
        gpus = gpus if site.node.gpus and not site.node.on_cpu else ""
        return [f"{sign} {name}", site.title, gpus, state, ", ".join(site.partitions)]

    def _row(self, cells: Sequence[str], site: Site | None) -> Text:
        """Return the texts of a row in their columns, as many as fit."""
        line = Text(no_wrap=True, style="dim" if _is_closed(site) else "")
        room = self.size.width - 4
        for (_, width), cell in zip(COLUMNS, cells, strict=False):
            room -= width
            style = "" if line else SIGNS.get(cell[:1], "")
            line.append(styled.fit(styled.shorten(cell, width - 1), width), style)
        if room > LEAST:
            line.append("  ").append(styled.fit(cells[-1], room - 2))
        return line

    def action_requests(self) -> None:
        from lumitui.app.tui.screens.requests_screen import RequestsScreen

        self.app.push_screen(RequestsScreen(self.runs))

    def action_profile(self) -> None:
        """Show only the profile of the site under the cursor, or the list again."""
        self.toggle_class("-page")
        self.query_one("#site-page" if self.has_class("-page") else "#sites").focus()

    @on(OptionList.OptionSelected)
    def action_cluster(self) -> None:
        """Open the Cluster screen at the site under the cursor."""
        if self._selected:
            tui(self).open_cluster(self._selected)

    def action_add(self) -> None:
        """Survey another cluster, and show its site."""
        from lumitui.app.tui.dialogs.new_cluster import NewClusterDialog

        def saved(name: str | None) -> None:
            if name:
                self._read(name)

        self.app.push_screen(NewClusterDialog(), saved)

    def action_measure(self) -> None:
        """Measure a node of the site under the cursor, and offer the result for its profile."""
        if name := self._selected:
            tui(self).measure(self, name, "", lambda: self._read(name))

    def action_filter(self) -> None:
        self.query_one(FilterInput).display = True
        self.query_one(FilterInput).focus()

    @on(Input.Submitted)
    def _filtered(self) -> None:
        self.query_one(OptionList).focus()

    def action_back(self) -> None:
        """Remove the filter; without one, leave the screen."""
        line = self.query_one(FilterInput)
        if self.has_class("-page"):
            self.action_profile()
            return
        if not line.display:
            super().action_back()
        line.value, line.display = "", False
        self.query_one(OptionList).focus()


def _is_closed(site: Site | None) -> bool:
    return site is not None and site.is_closed(date.today())


def page_text(text: str, columns: int) -> Text | Table:
    """Return a profile in even columns, without the frame's title; the words on `?` come last."""
    lines = text.split("\n")[1:]
    doubt = [line for line in lines if line.startswith("?: ")]
    body = "\n".join(line for line in lines if line not in doubt).strip("\n")
    sections = [*body.split("\n\n"), *doubt]
    if columns == 1:
        return _styled(sections)
    cuts = range(1, len(sections))
    halves = [(_styled(sections[:at]), _styled(sections[at:])) for at in cuts]
    table = Table.grid(expand=True, padding=(0, 2, 0, 0))
    table.add_column(ratio=1)
    table.add_column(ratio=1)
    if halves:
        table.add_row(*min(halves, key=lambda half: max(part.plain.count("\n") for part in half)))
    return table


def _styled(sections: Sequence[str]) -> Text:
    """Return sections with coloured headings and dim labels."""
    page = styled.plain("\n\n".join(sections))
    page.highlight_regex(r"(?m)^[A-Z][A-Za-z ]+$", "bold magenta")
    page.highlight_regex(r"(?m)^  (name|GPU)  .*$|^  [A-Za-z]\w*( \w+)*(?=  )", "dim")
    return page
