"""Text that often changes but seldom changes its height."""

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from textual import events
from textual.widgets import Static


class Steady(Static):
    """A text whose layout changes only with its number of lines.

    `Static.update` lays out the entire screen each time. That renders a Rich table three times, and
    takes longer than everything else that a key does.
    """

    def __init__(self, *, classes: str) -> None:
        super().__init__(classes=classes, markup=False)
        self._shown: RenderableType = ""
        self._drawn: tuple[int, int] = (0, 0)  # the displayed width and number of lines

    def show(self, content: RenderableType) -> None:
        """Show `content`."""
        self._shown = content
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        if self.content_size.width != self._drawn[0]:
            self._draw()

    def _draw(self) -> None:
        width = self.content_size.width
        if not width:  # the first paint shows it, before the first resize arrives
            self.update(self._shown)
            return
        options = self.app.console_options.update_width(width).update(highlight=False)
        lines = self.app.console.render_lines(self._shown, options, pad=False)
        drawn = (width, len(lines))
        self.update(_Lines(lines), layout=drawn != self._drawn)
        self._drawn = drawn


class _Lines:
    """Lines that are already rendered."""

    def __init__(self, lines: Sequence[Sequence[Segment]]) -> None:
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._lines:
            yield from line
            yield Segment.line()
