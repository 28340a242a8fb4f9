"""A scrolling view that caches drawn rows."""

from collections.abc import Callable, Hashable

from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache
from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.strip import Strip

_KEPT = 512  # maximum number of cached rows: most rows reappear after a key


class RowView(ScrollView):
    """Thousands of rows, each drawn once and not again when scrolled.

    Textual caches a line by its place on the screen, so scrolling by one line invalidates all of
    them: at every key, a table of ranks would be styled, filtered and divided anew.
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._base = Style()  # the style of all rows during a drawing
        self._sides: tuple[tuple[Segment, ...], tuple[Segment, ...]] = ((), ())
        """The frame and padding to the left and right of each row."""
        self._look: object = None  # what they depend on
        self._strips: LRUCache[Hashable, Strip] = LRUCache(_KEPT)
        self._thumb = (0, 0)  # position and length of the scroll bar's thumb, in cells

    def strip(self, key: Hashable, segments: Callable[[], list[Segment]]) -> Strip:
        """Return a row from the cache, or draw it; `key` contains everything it depends on."""
        left, width = self.scroll_offset.x, self.size.width
        whole = (key, left, width, self._base, self._sides)
        strip = self._strips.get(whole)
        if strip is None:
            strip = Strip(segments()).crop_extend(left, left + width, self._base)
            before, after = self._sides
            self._strips[whole] = strip = Strip([*before, *strip, *after])
        return strip

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw rows between the sides of the frame, which Textual draws once."""
        self._base, filters = self.rich_style, self.get_line_filters()
        frame, (width, height), colours = self.styles.gutter, self.size, self.background_colors
        width += frame.width
        look = frame, self.styles.border, colours
        if look != self._look:
            self._look, self._sides = look, ((), ())
            row = super().render_lines(Region(0, frame.top, width, 1))[0]
            sides = row.crop(0, frame.left), row.crop(width - frame.right)
            self._sides = tuple(sides[0]), tuple(sides[1])
        strips = []
        for y in crop.line_range:
            if frame.top <= y < frame.top + height:
                strip = self.render_line(y - frame.top)
                for line_filter in filters:  # a strip caches a filter's result
                    strip = strip.apply_filter(line_filter, colours[1])
                strips.append(strip)
            else:
                strips += super().render_lines(Region(0, y, width, 1))
        return [strip.crop(*crop.column_span) for strip in strips]

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
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
