"""Dialogs without an answer: an error, the keys of a screen."""

from collections.abc import Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Input, Static

from lumitui.app.runs import LumiError
from lumitui.app.tui.dialogs.dialog_box import WIDE, DialogBox, buttons
from lumitui.app.tui.dialogs.palette import KeyAction, by_area, nearest_first
from lumitui.app.tui.widgets.input import LineInput
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import plain

KEYS = 11
"""Cells for the keys of one action."""


class ErrorDialog(DialogBox[None]):
    """An error, with its hint."""

    is_question: ClassVar[bool] = False
    AUTO_FOCUS = "Button"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "close", "Close", id="error.close", tooltip="Close the message")
    ]
    KIND = "error"

    def __init__(self, error: LumiError) -> None:
        super().__init__()
        self._error, self.heading = error, error.heading

    def content(self) -> ComposeResult:
        """Yield the message, the hint and one button."""
        with VerticalScroll():
            yield Static(plain(self._error.message), id="message", markup=False)
            yield Static(plain(self._error.hint), id="hint", markup=False)
        yield buttons(no="Close")


class HelpDialog(DialogBox[None]):
    """The keys of the screen below, by area, then the texts of the rules and causes it shows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "close", "Close", id="help.close",
                tooltip="Close the page"),
        Binding("slash", "filter", "Filter", key_display="/", id="help.filter",
                tooltip="Show only the keys with all typed words"),
    ]  # fmt: skip
    KIND = "help"
    heading = "Keys here"
    subtitle = "j k g G scroll"

    def __init__(self, actions: list[KeyAction], explained: Sequence[str] = ()) -> None:
        """Show `actions`, starting with the focused pane's, then the texts `explained`."""
        super().__init__()
        self._explained = explained
        self._areas = by_area(nearest_first(actions))
        self._names = max((len(action.binding.id or "") for action in actions), default=0)

    def content(self) -> ComposeResult:
        """Yield the filter, and a heading with its lines for each area."""
        yield LineInput(placeholder="type to filter", compact=True)
        with Scroll():
            for area, actions in self._areas.items():
                yield Static(Text(area, "bold"), classes="area", markup=False)
                yield Static(keys_table(actions, 0), classes="keys")
            for text in self._explained:
                yield Static(plain(f"\n{text}"), classes="explained", markup=False)

    def on_mount(self) -> None:
        """Show the filter only while it is in use."""
        for line in self.query(LineInput):
            line.display = False
        self.query("Scroll").focus()

    def _table(self, actions: list[KeyAction]) -> Table:
        named = self.query_one(LineInput).display and self.app.size.width >= WIDE
        return keys_table(actions, self._names if named else 0)

    def action_filter(self) -> None:
        """Show the filter, ready to type in, and the names that `keys:` uses."""
        self.query_one(LineInput).display = True
        self.query_one(LineInput).focus()
        self._filter()

    @on(Input.Changed)
    def _filter(self) -> None:
        typed = self.query_one(LineInput).value.casefold().split()
        headings, tables = self.query(".area"), self.query(".keys").results(Static)
        for heading, table, actions in zip(headings, tables, self._areas.values(), strict=True):
            shown = [one for one in actions if _has(one, typed)]
            heading.display = table.display = bool(shown)
            table.update(self._table(shown))


def _has(action: KeyAction, typed: list[str]) -> bool:
    said = f"{' '.join(action.keys)} {action.words} {action.binding.id}".casefold()
    return all(word in said for word in typed)


def keys_table(actions: list[KeyAction], names: int) -> Table:
    """Return keys, their effects and, in `names` cells, their names; all areas are aligned."""
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(width=KEYS, overflow="fold")
    table.add_column(overflow="fold", ratio=1)
    if names:
        table.add_column(width=names, no_wrap=True)
    for action in actions:
        name = (plain(action.binding.id or "", "dim"),) if names else ()
        table.add_row(plain(" ".join(action.keys), "magenta"), plain(action.words), *name)
    return table
