"""A container that scrolls with the same keys as the tables and the log."""

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import ScrollableContainer
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.widget import Widget

# Not a widget at run time: Textual takes styles and bindings only from a widget's first base.
if TYPE_CHECKING:
    _Base = Widget
else:
    _Base = object


class WholeCells(ScrollBarRender):
    """Draws a scrollbar in whole cells: an eighth of one, made readable, would be a bright lump."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "]
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "]


ScrollBar.renderer = WholeCells


class AtOnce(_Base):
    """A widget that scrolls immediately on a key: an animation would draw it a dozen times."""

    def moving(self, *, down: bool) -> Widget:
        """Return the widget that a key scrolls by a line or a page."""
        return self

    def action_scroll_down(self) -> None:
        self.moving(down=True).scroll_down(animate=False)

    def action_scroll_up(self) -> None:
        self.moving(down=False).scroll_up(animate=False)

    def action_scroll_home(self) -> None:
        self.scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        self.scroll_end(animate=False)

    def action_page_down(self) -> None:
        self.moving(down=True).scroll_page_down(animate=False)

    def action_page_up(self) -> None:
        self.moving(down=False).scroll_page_up(animate=False)


class Scroll(AtOnce, ScrollableContainer):
    """A pane with more lines than the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Down", show=False, id="pane.down", tooltip="One line down"),
        Binding("k", "scroll_up", "Up", show=False, id="pane.up", tooltip="One line up"),
        Binding("g", "scroll_home", "Top", show=False, id="pane.top", tooltip="Go to the top"),
        Binding("G", "scroll_end", "End", show=False, id="pane.end", tooltip="Go to the end"),
    ]
