"""The dialog with the values of a field, filtered by typing."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from lumitui.app.runs import job_form
from lumitui.app.tui.dialogs.dialog_box import DialogBox
from lumitui.app.tui.widgets.input import LineInput
from lumitui.app.tui.widgets.styled import plain


class PickDialog(DialogBox[str | None]):
    """Returns the chosen value; None if the user chose none."""

    AUTO_FOCUS = "LineInput"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "move('down')", "Down", show=False, id="pick.down", tooltip="Down"),
        Binding("up", "move('up')", "Up", show=False, id="pick.up", tooltip="Up"),
    ]
    KIND = "pick"

    def __init__(
        self, title: str, choices: Sequence[job_form.FieldChoice], now: str, other: str = ""
    ) -> None:
        """Offer `choices`, of which `now` is current; `other` is always shown."""
        super().__init__()
        self.heading, self._choices, self._now, self._other = title, choices, now, other
        self._width = max(len(choice.value) for choice in choices)
        self.typed = ""

    def content(self) -> ComposeResult:
        """Yield a filter line, and a line for each value."""
        yield LineInput(placeholder="type to filter", compact=True)
        yield OptionList(compact=True, markup=False)

    @on(Input.Changed)
    def _filter(self) -> None:
        """Offer the values that contain all typed words, those whose name begins so first."""
        self.typed = self.query_one(Input).value.strip()
        typed = self.typed.casefold().split()
        menu, values = self.query_one(OptionList), []
        menu.clear_options()
        typed_text = self.typed.casefold()
        for choice in sorted(self._choices, key=lambda one: distance(one.value, typed_text)):
            line = f"{choice.value:<{self._width}}  {choice.words}".rstrip() or "none"
            if all(word in line.casefold() for word in typed):
                menu.add_option(Option(plain(line), id=f"={choice.value}"))
                values.append(choice.value)
        if self._other:
            menu.add_option(Option(plain(self._other), id="="))
        now = values.index(self._now) if self._now in values and not typed else 0
        menu.highlighted = now if menu.option_count else None

    def on_mount(self) -> None:
        if self.query(OptionList):
            self._filter()

    @on(Input.Submitted)
    def _entered(self) -> None:
        self.query_one(OptionList).action_select()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss((event.option.id or "=")[1:])

    def action_move(self, way: str) -> None:
        getattr(self.query_one(OptionList), f"action_cursor_{way}")()


def distance(value: str, typed: str) -> int:
    """Return 0 if a value begins with the typed text, 1 if it contains it, else 2."""
    at = value.casefold().find(typed)
    return 2 if at < 0 else min(at, 1)
