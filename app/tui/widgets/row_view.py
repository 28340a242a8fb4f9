"""A scrolling view that caches drawn rows."""

from collections.abc import Callable, Hashable

from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache
from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.strip import Strip

_KEPT = 512
"""Maximum number of cached rows: most rows reappear after a key."""


class RowView(ScrollView):
    """Thousands of rows, each drawn once and not again when scrolled.

    Textual caches a line by its place on the screen, so scrolling by one line invalidates all of
    them: at every key, a table of ranks would be styled, filtered and divided anew.
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        """Show nothing."""
        super().__init__(id=id)
        self._base = Style()
        """The style of all rows during a drawing."""
        self._strips: LRUCache[Hashable, Strip] = LRUCache(_KEPT)
        self._thumb = (0, 0)
        """Position and length of the scroll bar's thumb, in cells."""

    def strip(self, key: Hashable, segments: Callable[[], list[Segment]]) -> Strip:
        """Return a row from the cache, or draw it; `key` contains everything it depends on."""
        left, width = self.scroll_offset.x, self.size.width
        whole = (key, left, width, self._base)
        strip = self._strips.get(whole)
        if strip is None:
            strip = Strip(segments()).crop_extend(left, left + width, self._base)
            self._strips[whole] = strip
        return strip

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw rows; use the cache if they fill the width without a border or padding."""
        self._base = self.rich_style
        if self.styles.gutter or crop.column_span != (0, self.size.width):
            return super().render_lines(crop)
        background = self.background_colors[1]
        strips = [self.render_line(y) for y in crop.line_range]
        for line_filter in self.get_line_filters():  # a strip caches a filter's result
            strips = [strip.apply_filter(line_filter, background) for strip in strips]
        return strips

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Show other rows."""
        self.move_bar()
        if round(old_value) != round(new_value):
            self.refresh(self.size.region)

    def move_bar(self) -> None:
        """Update the scroll bar only if its thumb moves."""
        rows, height = max(1, self.virtual_size.height), self.size.height
        length = max(1.0, height * height / rows)
        thumb = (int((height - length) * self.scroll_y / max(1, rows - height)), int(length))
        if self.show_vertical_scrollbar and thumb != self._thumb:
            self._thumb, bar = thumb, self.vertical_scrollbar
            bar.window_virtual_size, bar.position = rows, self.scroll_y
