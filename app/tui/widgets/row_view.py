"""A scrolling view of rows that caches drawn ones."""

from collections.abc import Callable, Hashable

from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache
from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.strip import Strip

_KEPT = 512
"""Maximum number of cached rows: a key shows most of them again."""


class RowView(ScrollView):
    """Rows of thousands, each drawn once; those that scroll are not drawn again.

    Textual keeps a line by its place on the screen, and one line further all of them are others:
    it would style, filter and divide each anew, as with every key on a table of ranks.
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        """Show nothing."""
        super().__init__(id=id)
        self._base = Style()
        """The style of all rows, while they are drawn."""
        self._strips: LRUCache[Hashable, Strip] = LRUCache(_KEPT)
        self._thumb = (0, 0)
        """Where the thumb of the scroll bar begins, and its length, in cells."""

    def strip(self, key: Hashable, segments: Callable[[], list[Segment]]) -> Strip:
        """Return a row from the cache, or draw it; `key` is everything it depends on."""
        left, width = self.scroll_offset.x, self.size.width
        whole = (key, left, width, self._base)
        strip = self._strips.get(whole)
        if strip is None:
            strip = Strip(segments()).crop_extend(left, left + width, self._base)
            self._strips[whole] = strip
        return strip

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw rows; where nothing is around them, as they were drawn before."""
        self._base = self.rich_style
        if self.styles.gutter or crop.column_span != (0, self.size.width):
            return super().render_lines(crop)
        background = self.background_colors[1]
        strips = [self.render_line(y) for y in crop.line_range]
        for line_filter in self.get_line_filters():  # a strip keeps what a filter made of it
            strips = [strip.apply_filter(line_filter, background) for strip in strips]
        return strips

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Show other rows."""
        self.move_bar()
        if round(old_value) != round(new_value):
            self.refresh(self.size.region)

    def move_bar(self) -> None:
        """Draw the scroll bar, which is as tall as all rows, only where that moves its thumb."""
        rows, height = max(1, self.virtual_size.height), self.size.height
        length = max(1.0, height * height / rows)
        thumb = (int((height - length) * self.scroll_y / max(1, rows - height)), int(length))
        if self.show_vertical_scrollbar and thumb != self._thumb:
            self._thumb, bar = thumb, self.vertical_scrollbar
            bar.window_virtual_size, bar.position = rows, self.scroll_y
