"""The last thing every line of the screen goes through: nothing in it steers the terminal."""

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from lumitui.app.tui.widgets.log_text import STEERING


class ControlFilter(LineFilter):
    """Takes out what a terminal may obey. Screens make such characters visible before (`plain`).

    They have no width, so that the line stays as wide as it was laid out.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments of one line without such characters."""
        return [
            segment
            if segment.control or STEERING.isdisjoint(segment.text)
            else Segment(
                "".join(char for char in segment.text if char not in STEERING), segment.style
            )
            for segment in segments
        ]
