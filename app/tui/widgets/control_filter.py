"""The last filter before the terminal: it drops control characters from every line."""

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from lumitui.app.runs import CONTROL_CHARACTERS


class ControlFilter(LineFilter):
    """Drops characters that control a terminal; screens spell them out before (`plain`).

    They have no width: the line stays as wide as it was laid out.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments of one line without such characters."""
        return [
            segment
            if segment.control or CONTROL_CHARACTERS.isdisjoint(segment.text)
            else Segment(
                "".join(char for char in segment.text if char not in CONTROL_CHARACTERS),
                segment.style,
            )
            for segment in segments
        ]
