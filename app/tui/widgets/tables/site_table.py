"""The table of sites: how often each is polled, and what that has cost its login node."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text
from textual.widgets import DataTable

from lumitui.app.explain import words
from lumitui.app.runs import Footprint
from lumitui.app.tui.widgets import styled


@dataclass(frozen=True)
class SiteRow:
    """One site as it is now."""

    name: str
    open_runs: int
    """Unfinished runs; a site without any is not polled."""
    every: float
    """Seconds between two polls."""
    cost: Footprint


COLUMNS = (
    ("Site", 18),
    ("Watched", 7),
    ("Every", 6),
    ("Requests", 8),
    ("Slurm", 6),
    ("Sent", 8),
    ("Received", 8),
    ("Logins", 6),
)
"""Headings and widths in cells; with one cell between them they fit 80."""


class SiteTable(DataTable[Text]):
    """One row for each site, kept by its name."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        """Show an empty table."""
        super().__init__(id=id, cursor_type="row", cell_padding=0, zebra_stripes=True)

    @property
    def selected(self) -> str | None:
        """The name of the site under the cursor."""
        if not self.row_count:
            return None
        return self.coordinate_to_cell_key(self.cursor_coordinate).row_key.value

    def show(self, rows: Sequence[SiteRow]) -> None:
        """Show `rows`; the cursor stays at its site."""
        if [row.name for row in rows] != [row.key.value for row in self.ordered_rows]:
            self.clear(columns=True)
            for number, (heading, width) in enumerate(COLUMNS):
                title = heading.rjust(width) if number else heading
                self.add_column(Text(title, no_wrap=True), key=heading, width=width + 1)
            for row in rows:
                self.add_row(*cells(row), key=row.name)
            return
        for row in rows:
            for (heading, _), text in zip(COLUMNS, cells(row), strict=True):
                if self.get_cell(row.name, heading) != text:
                    self.update_cell(row.name, heading, text)


def cells(row: SiteRow) -> list[Text]:
    """Return the cells of one row, figures aligned to the right."""
    cost = row.cost
    figures = (
        str(row.open_runs),
        words.short_length(row.every),
        str(cost.requests),
        str(cost.commands),
        words.size(cost.bytes_up),
        words.size(cost.bytes_down),
        str(cost.logins),
    )
    texts = [Text(styled.shorten(row.name, COLUMNS[0][1]), no_wrap=True)]
    for figure, (_, width) in zip(figures, COLUMNS[1:], strict=True):
        texts.append(Text(figure.rjust(width), no_wrap=True))
    return texts
