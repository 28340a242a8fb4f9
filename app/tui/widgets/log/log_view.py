"""A window on a log: it follows the end, or keeps the reading position."""

import time
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from lumitui.app.tui.widgets.log import log_rows
from lumitui.app.tui.widgets.log.line_kinds import ShownLine
from lumitui.app.tui.widgets.log.log_rows import LineLayout, LogRow
from lumitui.app.tui.widgets.log.log_window import KEPT_LINES, LineChange, LogWindow
from lumitui.app.tui.widgets.row_view import RowView

BETWEEN = 1.0
"""Minimum seconds between two drawings of a constantly growing log."""


class LogView(RowView, can_focus=True):
    """Lines of remote text, drawn literally: no markup, no control characters."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Down", show=False, id="log.down", tooltip="One line down"),
        Binding("k,up", "back('scroll_up')", "Up", show=False, id="log.up", tooltip="One line up"),
        Binding("pageup", "back('page_up')", "Page up", show=False, id="log.page_up",
                tooltip="One page up; pauses following"),
        Binding("g,home", "to_start", "Top", show=False, id="log.top",
                tooltip="Go to the first line of the log"),
        Binding("G,end", "to_end", "Follow", id="log.end",
                tooltip="Go to the end, and follow; moving up stops following"),
        Binding("w", "toggle_wrap", "Wrap", id="log.wrap",
                tooltip="Wrap long lines, or stop wrapping"),
        Binding("enter", "toggle_fold", "Unfold", show=False, id="log.fold",
                tooltip="Open the folded lines on the screen one after another, then close them"),
    ]  # fmt: skip

    follow: reactive[bool] = reactive(True)
    wrap: reactive[bool] = reactive(False)
    rank: reactive[int | None] = reactive(None)
    """The only displayed rank; None: all."""

    class Changed(Message):
        """The displayed lines, following or wrapping changed."""

    @dataclass
    class Wanted(Message):
        """A part of the log outside the window was requested."""

        where: str
        """Before, after, start or end."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.window = LogWindow()
        self.mark: int | None = None
        """The byte at which the marked line (a jump's target) begins."""
        self.found = ""
        """The search text."""
        self.thirds = 1
        """Thirds of the screen above a jump's target: 2 show the traceback above an error."""
        self._rows: list[LogRow] = []
        self._tail: list[LogRow] = []  # rows of the unfinished last line
        self._note = ""
        self._widest = 0
        self._drawn, self._is_due = 0.0, False

    def offers(self, action: str) -> bool:
        """Return whether the footer shows a key: not the one that follows while it follows."""
        if action == "toggle_wrap":
            return self.wrap or self._widest > self.scrollable_content_region.width
        return action != "to_end" or not self.follow

    @property
    def lines(self) -> list[str]:
        """The displayed lines of the window; the last may be incomplete."""
        shown = [line.text for line in self.window.lines if self._layout.shows(line)]
        partial = self.window.partial
        return [*shown, *([partial.text] if partial and self._layout.shows(partial) else [])]

    def clear(self, start: int = 0, *, label_is_rank: bool = True) -> None:
        """Forget everything; the log begins at byte `start`."""
        self.window, self.mark = LogWindow(start, label_is_rank=label_is_rank), None
        self._rebuild()

    def note(self, text: str) -> None:
        """Show a sentence if there are no lines."""
        if text != self._note:
            self._note = text
            self.refresh()

    def feed(self, data: bytes, start: int | None = None) -> None:
        """Add bytes of the log from byte `start` on, by default from the window's end."""
        self._note = ""
        full = len(self.window.lines) >= KEPT_LINES
        grows = self.follow or not full or self.scroll_offset.y > len(self._rows) // 2
        start = self.window.end if start is None else start
        change = self.window.append(start, data, grows=grows)
        if self.follow:
            self.window.unseen = 0
        self._changed(change)

    def feed_after(self, start: int, data: bytes) -> None:
        """Add the page after the window, or as many of its lines as keep the reading position."""
        lines = data.split(b"\n", KEPT_LINES // 2)
        if len(lines) > KEPT_LINES // 2:
            data = data[: len(data) - len(lines[-1])]
        self._changed(self.window.append_page(start, data))

    def feed_before(self, start: int, data: bytes) -> None:
        """Add the page before the window."""
        self._changed(self.window.prepend(start, data))

    def show_page(self, start: int, data: bytes) -> None:
        """Show another part of the log instead of the window."""
        self.window.reset(start)
        self.window.append_page(start, data)
        self._rows = []  # none of the rows keeps its position
        self.scroll_to(y=0, animate=False, force=True, immediate=True)
        self._rebuild()

    def go_to(self, offset: int, *, mark: bool = True) -> bool:
        """Show the line that begins at byte `offset`; return whether the window has it."""
        if not self.window.start <= offset < max(self.window.end, 1):
            return False
        self.follow = False
        if mark:
            at = bisect_right(self.window.lines, offset, key=lambda line: line.offset)
            offset = self.window.lines[at - 1].offset if at else offset
            self.mark = offset
            if (line := self.marked) is not None and not self._layout.is_read(line):
                self._reveal(line)
        at = bisect_left(self._rows, offset, key=lambda row: row.line.offset)
        self.scroll_to(y=max(0, at - self.third), x=0, animate=False, force=True, immediate=True)
        self.refresh()
        self.post_message(self.Changed())
        return True

    @property
    def marked(self) -> ShownLine | None:
        """The marked line, if it is in the window."""
        at = bisect_left(self.window.lines, self.mark or 0, key=lambda line: line.offset)
        if self.mark is None or at == len(self.window.lines):
            return None
        line = self.window.lines[at]
        return line if line.offset == self.mark else None

    @property
    def place(self) -> int:
        """The byte where a search starts: the mark's if on the screen, else the first line's."""
        shown = [line.offset for line in self.on_screen()]
        return self.mark if self.mark in shown and self.mark is not None else min(shown, default=0)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks seen so far in the window."""
        return tuple(sorted(self.window.ranks))

    def on_screen(self) -> list[ShownLine]:
        """Return the lines on the screen."""
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        rows = [*self._rows[top : top + height], *self._tail]
        return list({id(row.line): row.line for row in rows[:height]}.values())

    @property
    def below(self) -> int | None:
        """Number of displayed lines below the screen; None if some are outside the window."""
        if not self.window.is_at_end:
            return None
        last = self.scroll_offset.y + self.scrollable_content_region.height
        return len({id(row.line) for row in [*self._rows, *self._tail][last:]})

    @property
    def _layout(self) -> LineLayout:
        width = self.scrollable_content_region.width if self.wrap else 0
        return LineLayout(width, self.rank)

    def _changed(self, change: LineChange) -> None:
        if change.remade:
            self._rebuild()
            return
        rows = self._layout.rows(change.added)
        self._rows += rows
        self._measure(rows)
        self._lay_out_tail()
        wait = self._drawn + BETWEEN - time.monotonic()
        if wait <= 0 or not self.virtual_size.height:  # else the oldest rows show first
            self._resized()
        elif not self._is_due:
            self._is_due = True
            self.set_timer(wait, self._resized)

    def _rebuild(self) -> None:
        """Lay out all lines again; keep the reading position."""
        top = self._rows[self.scroll_offset.y :][:1]
        self._rows = self._layout.rows(self.window.lines)
        self._widest = 0
        self._measure(self._rows)
        self._lay_out_tail()
        self._resized()
        if top and not self.follow:
            at = bisect_left(self._rows, top[0].line.offset, key=lambda row: row.line.offset)
            self.scroll_to(y=at, animate=False, force=True, immediate=True)

    def _lay_out_tail(self) -> None:
        partial = self.window.partial
        self._tail = self._layout.rows([partial]) if partial else []
        self._measure(self._tail)

    def _measure(self, rows: list[LogRow]) -> None:
        longest = max((cell_len(row.line.text) for row in rows), default=0) if not self.wrap else 0
        self._widest = max(self._widest, longest)

    def _resized(self) -> None:
        self._drawn, self._is_due = time.monotonic(), False
        rows = len(self._rows) + len(self._tail)
        laid_out = self.set_virtual_size(Size(0 if self.wrap else self._widest, rows))
        if self.follow and laid_out:
            self.call_after_refresh(self._to_last_row)
        elif self.follow:
            self._to_last_row()  # in the same drawing: a second one would cost as much
        self.refresh()
        if laid_out or not self.follow:
            self.post_message(self.Changed())

    def _to_last_row(self) -> None:
        """Scroll to the end, unless the user has gone elsewhere in the meantime."""
        if self.follow:
            self.scroll_end(animate=False, force=True, immediate=True, x_axis=False)
            self.post_message(self.Changed())  # the displayed lines have changed

    @property
    def third(self) -> int:
        """The screen row of a jump's target: a third from the top; for a cause, from the bottom."""
        return self.scrollable_content_region.height * self.thirds // 3

    def set_virtual_size(self, size: Size) -> bool:
        """Set the size of all rows; return whether this causes a new layout of the screen.

        It does so only if a scroll bar may appear or disappear, because a layout costs ten times as
        much as new rows.
        """
        old, shown = self.virtual_size, self.container_size
        same_bars = size.width == old.width and min(size.height, old.height) > shown.height > 0
        if not same_bars:
            self.virtual_size = size
        elif size != old:
            self.set_reactive(RowView.virtual_size, size)
            self.move_bar()
        return not same_bars

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        """Place a new scrollbar next to the rows, because Textual moves only a visible one."""
        if shown:
            self.vertical_scrollbar.position = self.scroll_y

    def render_line(self, y: int) -> Strip:
        at = y + self.scroll_offset.y
        if at < len(self._rows):
            row = self._rows[at]
        elif at < len(self._rows) + len(self._tail):
            row = self._tail[at - len(self._rows)]
        else:
            note = self._note if not y and not self._rows and not self._tail else ""
            return self.strip((note,), lambda: [Segment(note, self._base)])
        line = row.line
        marked = self.mark is not None and line.offset == self.mark
        folded = self._layout.fold_words(line) if line.folds is not None else ""
        return self.strip(
            (row, line.text, folded, marked, self.found),
            lambda: log_rows.segments(row, self._base, folded, marked=marked, found=self.found),
        )

    def watch_scroll_y(self, old: float, new: float) -> None:
        """Request the page before or after the window near its edge."""
        super().watch_scroll_y(old, new)
        self._want_more()

    def _want_more(self) -> None:
        if self.follow or not self.is_mounted or not self._rows:
            return
        height = self.scrollable_content_region.height
        if self.window.start and self.scroll_offset.y < height:
            self.post_message(self.Wanted("before"))
        elif not self.window.is_at_end and self.scroll_offset.y + 2 * height >= len(self._rows):
            self.post_message(self.Wanted("after"))
        self.post_message(self.Changed())

    def watch_follow(self, follow: bool) -> None:
        """Jump to the end when following begins."""
        if not self.is_mounted:
            return
        if follow:
            self.window.unseen = 0
            if not self.window.is_at_end:
                self.post_message(self.Wanted("end"))
        self._resized()

    def watch_wrap(self) -> None:
        """Lay out the lines again."""
        if self.is_mounted:
            self._rebuild()

    def watch_rank(self) -> None:
        if self.is_mounted:
            self._rebuild()
            self._want_more()

    def on_resize(self, event: events.Resize) -> None:
        """Lay out wrapped lines again, because they depend on the width."""
        if self.wrap:
            self._rebuild()
        elif self.follow:
            self._resized()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Pause following, because the user scrolls back."""
        self.follow = False

    def on_click(self, event: events.Click) -> None:
        """Open or close the folded lines under the mouse."""
        at = self.scroll_offset.y + event.get_content_offset_capture(self).y
        if 0 <= at < len(self._rows) and self._layout.fold_words(self._rows[at].line):
            self._toggle(self._rows[at].line)

    def action_toggle_wrap(self) -> None:
        self.wrap = not self.wrap

    def action_to_end(self) -> None:
        self.follow = True
        self._resized()

    def action_to_start(self) -> None:
        self.follow = False
        if self.window.start:
            self.post_message(self.Wanted("start"))
        else:
            self.action_scroll_home()

    def action_back(self, move: str) -> None:
        """Scroll up with the action `move`, and pause following."""
        self.follow = False
        getattr(self, f"action_{move}")()
        self._want_more()

    def action_toggle_fold(self) -> None:
        """Open or close the marked fold, else open the first closed fold, else close all."""
        folds = [line for line in self.on_screen() if self._layout.fold_words(line)]
        closed = [line for line in folds if line.folds and not line.folds.open]
        marked = self.marked
        self._toggle(*([marked] if marked in folds else closed[:1] or folds))

    def _toggle(self, *lines: ShownLine) -> None:
        for fold in {line.folds for line in lines if line.folds is not None}:
            fold.open = not fold.open
            self.follow = False
        self._rebuild()

    def _reveal(self, line: ShownLine) -> None:
        """Make a line visible that a fold or the rank filter hides."""
        if self.rank is not None and line.rank != self.rank:
            self.rank = None
        if line.folds is not None and not self._layout.is_read(line):
            line.folds.open = True
            self._rebuild()
