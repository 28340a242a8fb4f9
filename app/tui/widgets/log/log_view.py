"""The last lines of a log. It follows the end until a person scrolls up."""

from collections import deque
from collections.abc import Iterable
from typing import ClassVar

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from lumitui.app.tui.widgets.log.log_text import LogText

KEPT_LINES = 5000


class LogView(ScrollView, can_focus=True):
    """Lines of remote text, drawn as they are: no markup, no control characters."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Down", show=False, id="log.down", tooltip="One line down"),
        Binding("k,up", "back('scroll_up')", "Up", show=False, id="log.up", tooltip="One line up"),
        Binding(
            "pageup", "back('page_up')", "Page up", show=False, id="log.page_up",
            tooltip="One page up; pauses following",
        ),
        Binding(
            "g,home", "back('scroll_home')", "Top", show=False, id="log.top",
            tooltip="Go to the first line that is kept",
        ),
        Binding("G,end", "to_end", "End", show=False, id="log.end",
                tooltip="Go to the end, and follow"),
        Binding("f", "toggle_follow", "Follow", id="log.follow",
                tooltip="Follow the end, or stop following"),
        Binding("w", "toggle_wrap", "Wrap", id="log.wrap",
                tooltip="Wrap long lines, or stop wrapping"),
    ]  # fmt: skip

    follow: reactive[bool] = reactive(True)
    wrap: reactive[bool] = reactive(False)

    class Changed(Message):
        """The count of lines, following or wrapping changed."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        """Show an empty log."""
        super().__init__(id=id)
        self._text = LogText()
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._rows: deque[str] = deque()
        self._rows_of: deque[int] = deque()
        self._partial: list[str] = []
        self._widest = 0
        self.total = 0
        """Lines that came, including those no longer kept."""
        self.unseen = 0
        """Lines that came while following was paused."""

    @property
    def lines(self) -> list[str]:
        """The lines that are kept, as they are shown; the last may be a part of one."""
        return [*self._lines, *(["".join(self._partial)] if self._partial else [])]

    def clear(self) -> None:
        """Forget everything."""
        self._text, self._partial = LogText(), []
        for kept in (self._lines, self._rows, self._rows_of):
            kept.clear()
        self._widest = self.total = self.unseen = 0
        self._resized()

    def feed(self, data: bytes) -> None:
        """Take the log's next bytes."""
        grown = self._text.feed(data)
        gone = sum(self._append(line) for line in grown.lines)
        self._partial = self._rows_for(grown.partial) if grown.partial else []
        self.total += len(grown.lines)
        if not self.follow:
            self.unseen += len(grown.lines)
        self._resized(gone)

    def note(self, text: str) -> None:
        """Add a line that is not of the log."""
        self._append(f"── {text}")
        self._resized()

    def _append(self, line: str) -> int:
        """Add a line; return how many rows at the top were dropped for it."""
        gone = 0
        if len(self._lines) == KEPT_LINES:
            gone = self._rows_of.popleft()
            for _ in range(gone):
                self._rows.popleft()
        rows = self._rows_for(line)
        self._lines.append(line)
        self._rows.extend(rows)
        self._rows_of.append(len(rows))
        return gone

    def _rows_for(self, line: str) -> list[str]:
        width = self.scrollable_content_region.width
        cells = cell_len(line)
        if self.wrap and width and cells > width:
            return chop_cells(line, width)
        self._widest = max(self._widest, cells)
        return [line]

    def _resized(self, gone: int = 0) -> None:
        rows = len(self._rows) + len(self._partial)
        self.virtual_size = Size(0 if self.wrap else self._widest, rows)
        if self.follow:
            self.scroll_end(animate=False, immediate=False, x_axis=False)
        elif gone:
            self.scroll_to(y=max(0, self.scroll_offset.y - gone), animate=False)
        self.refresh()
        self.post_message(self.Changed())

    def _rebuild(self) -> None:
        lines: Iterable[str] = list(self._lines)
        partial = "".join(self._partial)
        for kept in (self._lines, self._rows, self._rows_of):
            kept.clear()
        self._widest = 0
        for line in lines:
            self._append(line)
        self._partial = self._rows_for(partial) if partial else []
        self._resized()

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        left, top = self.scroll_offset
        at, width = y + top, self.size.width
        if at < len(self._rows):
            row = self._rows[at]
        elif at < len(self._rows) + len(self._partial):
            row = self._partial[at - len(self._rows)]
        else:
            return Strip.blank(width, self.rich_style)
        strip = Strip([Segment(row, self.rich_style)])
        return strip.crop_extend(left, left + width, self.rich_style)

    def watch_follow(self, follow: bool) -> None:
        """Jump to the end when following begins."""
        if follow:
            self.unseen = 0
        if self.is_mounted:
            self._resized()

    def watch_wrap(self) -> None:
        """Lay the lines out again."""
        if self.is_mounted:
            self._rebuild()

    def on_resize(self, event: events.Resize) -> None:
        """Lay wrapped lines out again: they depend on the width."""
        if self.wrap:
            self._rebuild()
        elif self.follow:
            self._resized()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Pause following: the person scrolls back."""
        self.follow = False

    def action_toggle_follow(self) -> None:
        """Turn following on or off."""
        self.follow = not self.follow

    def action_toggle_wrap(self) -> None:
        """Turn wrapping on or off."""
        self.wrap = not self.wrap

    def action_to_end(self) -> None:
        """Follow again from the end."""
        self.follow = True
        self._resized()

    def action_back(self, move: str) -> None:
        """Scroll up by the action `move`, and pause following."""
        self.follow = False
        getattr(self, f"action_{move}")()
