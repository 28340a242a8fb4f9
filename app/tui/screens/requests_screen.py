"""Latest requests to the sites, with time, purpose, duration and bytes."""

import time

from rich.text import Text
from textual.app import ComposeResult

from lumitui.app.explain import words
from lumitui.app.runs import MOST_REQUESTS, Runs, SiteRequest, log_line
from lumitui.app.tui.screens.page import FullScreen
from lumitui.app.tui.widgets.tables.row_list import ListRow, RowList, TitledRows

TITLES = ("Time", "Site", "For", "Seconds", "Sent", "Received", "Result")
WELL = ("ok", "stopped", "under way")
"""Results of successful requests."""
NOTE = "lumitui docs plain: the commands that match each screen"
NONE = "No requests so far."


class RequestsScreen(FullScreen):
    """This program's requests, newest first, without scripts and answers."""

    def __init__(self, runs: Runs) -> None:
        super().__init__(runs)
        self._shown: list[tuple[str, SiteRequest]] | None = None

    def body(self) -> ComposeResult:
        """Yield the list."""
        yield RowList(id="requests")

    def begin(self) -> None:
        """Show the list; update it every second."""
        self.query_one(RowList).focus()
        self.reread()
        self.set_interval(1.0, self.every_second)

    def moves(self) -> bool:
        """Return True: the requests are not part of the history."""
        return True

    def draw(self) -> None:
        """Show the requests if they have changed."""
        found = [(site, one) for site, every in self.runs.requests().items() for one in every]
        found.sort(key=lambda row: row[1].began, reverse=True)
        if found == self._shown:
            return
        self._shown = found
        most = f"the last {MOST_REQUESTS} of each site"
        self.title_text("3 Sites", f"{words.count(len(found), 'request')}, at most {most}")
        rows = [_row(site, request) for site, request in found]
        table = TitledRows(TITLES, rows, frozenset({3, 4, 5})) if rows else None
        lines = [NOTE] if rows else [NOTE, NONE]
        self.query_one(RowList).show([Text(line, "dim") for line in lines], table)


def _row(site: str, request: SiteRequest) -> ListRow:
    at = time.strftime("%H:%M:%S", time.localtime(request.began))
    moved = (words.size(request.up), words.size(request.down))
    cells = (at, log_line(site), request.kind, f"{request.seconds:.2f}", *moved, request.result)
    bad = request.result not in WELL
    return ListRow(cells, ((len(cells) - 1, "yellow"),) if bad else ())
