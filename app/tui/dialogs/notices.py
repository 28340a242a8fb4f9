"""Dialogs that are only read and closed: an error, and the keys of a screen."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Button, Static

from lumitui.app.tui.widgets.bars import footer
from lumitui.app.tui.widgets.styled import labelled, plain
from lumitui.remote.errors import LumiError


class ErrorDialog(ModalScreen[None]):
    """What happened, and what to try."""

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
    """The keys of the screen below, from its bindings."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "close", "Close", id="help.close",
                tooltip="Close the help"),
    ]  # fmt: skip

    def __init__(self, keys: list[tuple[str, str]]) -> None:
        """Show `keys` with what each does."""
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        """Yield one line for each key."""
        yield footer()
        with Vertical(classes="dialog help") as box:
            box.border_title = "Keys here"
            with VerticalScroll():
                yield Static(labelled(self._keys), markup=False)

    def action_close(self) -> None:
        """Close the dialog."""
        self.dismiss()


def keys_of(screen: Screen[object]) -> list[tuple[str, str]]:
    """Return the keys that work on `screen` with what they do, one line for each binding."""
    lines: dict[str, tuple[list[str], str]] = {}
    for active in screen.active_bindings.values():
        binding = active.binding
        if binding.id:
            keys, _ = lines.setdefault(binding.id, ([], active.tooltip or binding.description))
            shown = screen.app.get_key_display(binding)
            if shown not in keys:
                keys.append(shown)
    return [(" ".join(keys), words) for keys, words in lines.values()]
