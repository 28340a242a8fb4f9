"""A view of rows that come all the time: drawn once a tick, and the screen is left as it is."""

import time
from collections.abc import Callable, Hashable

from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

BETWEEN = 1.0
"""Seconds between two drawings."""
_KEPT = 256
"""Rows that are kept as they were drawn."""


class GrowingView(ScrollView):
    """Rows that are added at the end."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        """Nothing was drawn yet."""
        super().__init__(id=id)
        self.base = Style()
        """The style of all rows, while they are drawn."""
        self._drawn, self._is_due = 0.0, False
        self._strips: LRUCache[Hashable, Strip] = LRUCache(_KEPT)

    def draw_soon(self, draw: Callable[[], None]) -> None:
        """Call `draw` now, or when BETWEEN has passed since the last time."""
        wait = self._drawn + BETWEEN - time.monotonic()
        if wait <= 0:
            draw()
        elif not self._is_due:
            self._is_due = True
            self.set_timer(wait, draw)

    def drawn_now(self) -> None:
        """Note that all that came is drawn."""
        self._drawn, self._is_due = time.monotonic(), False

    @property
    def third(self) -> int:
        """The row of the screen at which a line is shown that is gone to."""
        return self.scrollable_content_region.height // 3

    def set_virtual_size(self, size: Size) -> bool:
        """Set the size of all rows; return whether the screen will be laid out again for it.

        That is so only where a scroll bar may come or go: it costs ten times what new rows cost.
        """
        old, shown = self.virtual_size, self.container_size
        same_bars = size.width == old.width and min(size.height, old.height) > shown.height > 0
        if not same_bars:
            self.virtual_size = size
        elif size != old:
            self.set_reactive(ScrollView.virtual_size, size)
            self.vertical_scrollbar.window_virtual_size = size.height
        return not same_bars

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        """Put a bar that comes where the rows are: Textual moves only a bar that is shown."""
        if shown:
            self.vertical_scrollbar.position = self.scroll_y

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw rows; their common style is computed once."""
        self.base = self.rich_style
        return super().render_lines(crop)

    def strip(self, key: Hashable, segments: Callable[[], list[Segment]]) -> Strip:
        """Return a row as it was drawn before, or draw it; `key` is all that it depends on."""
        left, width = self.scroll_offset.x, self.size.width
        whole = (key, left, width, self.base)
        found = self._strips.get(whole)
        if found is None:
            found = Strip(segments()).crop_extend(left, left + width, self.base)
            self._strips[whole] = found
        return found
