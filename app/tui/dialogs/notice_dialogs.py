"""Dialogs that are only read and closed: an error, and the keys of a screen."""

from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from lumitui.app.runs import LumiError
from lumitui.app.tui.dialogs.palette import KeyAction, by_area, nearest_first
from lumitui.app.tui.widgets.bars import footer
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import plain

KEYS = 11
"""Cells for the keys of one action."""

WIDE = 100
"""Cells of a terminal on which the names are shown, too."""


class ErrorDialog(ModalScreen[None]):
    """What happened, and what to try."""

    # On a narrow terminal it takes the width: beside it would stand letters of cut words.
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012 - as Textual types it
    is_question: ClassVar[bool] = False
    AUTO_FOCUS = "Button"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "close", "Close", id="error.close", tooltip="Close the message"),
    ]

    def __init__(self, error: LumiError) -> None:
        """Show `error`."""
        super().__init__()
        self._error = error

    def compose(self) -> ComposeResult:
        """Yield the message, the hint and one button."""
        yield footer()
        with Vertical(classes="dialog error") as box:
            box.border_title = "That did not work"
            with VerticalScroll():
                yield Static(plain(self._error.message), id="message", markup=False)
                yield Static(plain(self._error.hint), id="hint", markup=False)
            with Horizontal(classes="buttons"):
                yield Button(Text("Close"), action="screen.close", compact=True)

    def action_close(self) -> None:
        """Close the dialog."""
        self.dismiss()


class HelpDialog(ModalScreen[None]):
    """What the keys of the screen below do, area by area."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "close", "Close", id="help.close",
                tooltip="Close the help"),
    ]  # fmt: skip

    def __init__(self, actions: list[KeyAction]) -> None:
        """Show `actions`, those of the pane with the focus first."""
        super().__init__()
        self._areas = by_area(nearest_first(actions))
        self._names = max((len(action.binding.id or "") for action in actions), default=0)

    def compose(self) -> ComposeResult:
        """Yield a heading for each area, and a line for each of its actions."""
        yield footer()
        with Vertical(classes="dialog help") as box:
            box.border_title = "Keys here"
            box.border_subtitle = "j k g G scroll"
            with Scroll():
                for area, actions in self._areas.items():
                    yield Static(Text(area, "bold"), classes="area", markup=False)
                    names = self._names if self.app.size.width >= WIDE else 0
                    yield Static(keys_table(actions, names))

    def action_close(self) -> None:
        """Close the dialog."""
        self.dismiss()


def keys_table(actions: list[KeyAction], names: int) -> Table:
    """Return keys, what they do and, in `names` cells, what the settings file calls it.

    The columns of all areas stand below each other.
    """
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(width=KEYS, overflow="fold")
    table.add_column(overflow="fold", ratio=1)
    if names:
        table.add_column(width=names, no_wrap=True)
    for action in actions:
        name = (plain(action.binding.id or "", "dim"),) if names else ()
        table.add_row(plain(" ".join(action.keys), "bold"), plain(action.words), *name)
    return table
