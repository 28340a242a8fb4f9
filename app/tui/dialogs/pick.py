"""The dialog that offers the values of a field."""

from collections.abc import Sequence
from typing import ClassVar, Protocol

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from lumitui.app.tui.widgets.bars import footer
from lumitui.app.tui.widgets.styled import plain


class Pickable(Protocol):
    """A value, and what it means."""

    @property
    def value(self) -> str:
        """What is chosen."""
        ...

    @property
    def words(self) -> str:
        """What it means; "" where the value says it."""
        ...


class PickDialog(ModalScreen[str | None]):
    """One of a few values; None: none was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Close", id="pick.close", tooltip="Leave it as it is"),
        Binding("j", "move('down')", "Down", show=False, id="pick.down", tooltip="One line down"),
        Binding("k", "move('up')", "Up", show=False, id="pick.up", tooltip="One line up"),
    ]

    def __init__(self, title: str, choices: Sequence[Pickable], now: str) -> None:
        """Offer `choices`; `now` is the one that holds."""
        super().__init__()
        self._title, self._choices, self._now = title, choices, now

    def compose(self) -> ComposeResult:
        """Yield one line for each value."""
        yield footer()
        with Vertical(classes="dialog pick") as box:
            box.border_title = plain(self._title)
            width = max(len(choice.value) for choice in self._choices)
            yield OptionList(
                *(
                    Option(plain(f"{choice.value:<{width}}  {choice.words}".rstrip() or "none"))
                    for choice in self._choices
                ),
                compact=True,
                markup=False,
            )

    def on_mount(self) -> None:
        """Begin at the value that holds."""
        for menu in self.query(OptionList):
            values = [choice.value for choice in self._choices]
            menu.highlighted = values.index(self._now) if self._now in values else 0
            menu.focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._choices[event.option_index].value)

    def action_move(self, way: str) -> None:
        """Move the cursor."""
        menu = self.query_one(OptionList)
        if way == "down":
            menu.action_cursor_down()
        else:
            menu.action_cursor_up()

    def action_close(self) -> None:
        """Choose nothing."""
        self.dismiss(None)
