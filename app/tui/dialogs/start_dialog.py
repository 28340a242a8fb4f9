"""The dialog that compares where and when a job would start; the user chooses a place."""

import time
from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from lumitui.app.explain.words import count
from lumitui.app.runs import StartPlace
from lumitui.app.tui.dialogs.dialog_box import DialogBox
from lumitui.app.tui.widgets.styled import plain

TITLES = ("Site", "Partition", "Nodes", "Starts", "Waiting", "Latest end", "Price", "Changes")
_SHOWN = ("site", "partition", "nodes")
"""Keys with their own columns, so that the changes omit them."""
_RIGHT = frozenset({"Nodes", "Waiting", "Price"})


class StartDialog(DialogBox[StartPlace | None]):
    """Places that accept the job, earliest start first; returns the chosen one or None."""

    KIND = "starts"
    heading = "Where it starts first"

    def __init__(self, places: Sequence[StartPlace]) -> None:
        super().__init__()
        self._open = [place for place in places if not place.refusal]
        self._refusals = dict.fromkeys(
            f"{place.site}, {place.partition}: {place.refusal}" for place in places if place.refusal
        )
        self.subtitle = f"{count(len(self._refusals), 'more')} refused" if self._refusals else ""

    def content(self) -> ComposeResult:
        """Yield the heading, the places that accept the job, and why others do not."""
        now = time.time()
        rows = [
            (at.site, at.partition_words, str(at.nodes), *at.cells(now), at.change_words(*_SHOWN))
            for at in self._open
        ]
        columns = list(zip(TITLES, *rows, strict=True))
        widths = [max(map(len, column)) for column in columns[:-1]]

        def line(cells: Sequence[str]) -> str:
            sized = (
                cell.rjust(width) if title in _RIGHT else cell.ljust(width)
                for title, cell, width in zip(TITLES, cells, widths, strict=False)
            )
            return "  ".join((*sized, cells[-1])).rstrip()

        yield Static(plain(line(TITLES), "dim"), classes="titles", markup=False)
        menu = OptionList(*(Option(plain(line(row))) for row in rows), compact=True, markup=False)
        menu.highlighted = 0 if rows else None
        yield menu
        if self._refusals:
            yield Static(plain("\n".join(self._refusals), "dim"), classes="refused", markup=False)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._open[event.option_index])
