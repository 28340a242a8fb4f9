"""A container that scrolls by the same keys as the tables and the log."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import ScrollableContainer


class Scroll(ScrollableContainer):
    """A pane with more lines than the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Down", show=False, id="pane.down", tooltip="One line down"),
        Binding("k", "scroll_up", "Up", show=False, id="pane.up", tooltip="One line up"),
        Binding("g", "scroll_home", "Top", show=False, id="pane.top", tooltip="Go to the top"),
        Binding("G", "scroll_end", "End", show=False, id="pane.end", tooltip="Go to the end"),
    ]
