"""A table of runs; enter opens the selected run."""

from typing import ClassVar

from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from lumitui.app.tui.asking import tui


class OpeningTable(DataTable[Text]):
    """Rows by the ids of their runs."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", "Down", show=False, id="rows.down", tooltip="Next run"),
        Binding("k", "cursor_up", "Up", show=False, id="rows.up", tooltip="Previous run"),
        Binding("g", "scroll_top", "Top", show=False, id="rows.top", tooltip="First run"),
        Binding("G", "scroll_bottom", "End", show=False, id="rows.end", tooltip="Last run"),
        Binding("enter", "select_cursor", "Open", id="rows.open", tooltip="Open the run"),
    ]

    def __init__(self, *, id: str, classes: str = "") -> None:  # noqa: A002 - Textual's name
        super().__init__(
            id=id, classes=classes, cursor_type="row", cell_padding=1,
            cursor_foreground_priority="renderable",
        )  # fmt: skip

    @on(DataTable.RowSelected)
    def _row_selected(self, event: DataTable.RowSelected) -> None:
        event.stop()
        if event.row_key.value is not None:
            tui(self).open_run(event.row_key.value)
