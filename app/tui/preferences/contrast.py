"""Readable text: the contrast of two colours, and the filters that ensure it."""

import re
from functools import lru_cache

from rich.color import Color as RichColor
from rich.color import ColorSystem
from rich.color_triplet import ColorTriplet
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from textual.color import Color
from textual.filter import LineFilter

from lumitui.app.runs import CONTROL_CHARACTERS

LEAST_CONTRAST = 4.5
"""Minimum contrast between text and its background. source: WCAG 2.2, success criterion 1.4.3
(AA)"""


def contrast(one: ColorTriplet, other: ColorTriplet) -> float:
    """Return the contrast of two colours, 1 to 21. source: WCAG 2.2, "contrast ratio"."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: ColorTriplet) -> float:
    parts = (part / 255 for part in colour)
    linear = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def readable(colour: ColorTriplet, background: ColorTriplet) -> ColorTriplet:
    """Return `colour`, moved towards white or black until it is readable on `background`."""
    ends = (ColorTriplet(255, 255, 255), ColorTriplet(0, 0, 0))
    # One of the two has a contrast of at least 4.58 with any colour.
    end = max(ends, key=lambda end: contrast(end, background))
    for percent in range(0, 100, 4):
        moved = ColorTriplet(
            *(a + (b - a) * percent // 100 for a, b in zip(colour, end, strict=True))
        )
        if contrast(moved, background) >= LEAST_CONTRAST:
            return moved
    return end


class ReadableText(LineFilter):
    """Gives texts, curves and blocks on the screen enough contrast; does not change frames.

    It runs last: after `dim`, opacity and NO_COLOR, which turns colours into greys. It also drops
    control characters, which screens should already have spelled out (`plain`), without changing
    the line's width.
    """

    _DRAWN = re.compile(r"[ \u2500-\u257f]*")

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return `segments` with readable text colours."""
        below = background.rich_color.triplet
        return [
            Segment(_printable(text), style and _readable_style(style, below), more)
            if not more and not self._DRAWN.fullmatch(text)
            else Segment(text, style, more)
            for text, style, more in segments
        ]


def _printable(text: str) -> str:
    if CONTROL_CHARACTERS.isdisjoint(text):
        return text
    return "".join(char for char in text if char not in CONTROL_CHARACTERS)


class WithoutColour(LineFilter):
    """For NO_COLOR: makes coloured words bright, and red words bold.

    Converted to a grey of its brightness, a red word would be the faintest.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return `segments` without text colours."""
        return [Segment(text, style and _strong(style), more) for text, style, more in segments]


class SixteenColours(LineFilter):
    """For 16 colours: uses black or white if the nearest two colours are indistinguishable.

    A panel and its text may both become the same grey.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return `segments` with readable text colours."""
        return [Segment(text, style and _of_sixteen(style), more) for text, style, more in segments]


@lru_cache(4096)
def _of_sixteen(style: Style) -> Style:
    if style.color is None or style.bgcolor is None:
        return style
    nearest = [colour.downgrade(ColorSystem.STANDARD) for colour in (style.color, style.bgcolor)]
    front, ground = (colour.get_truecolor(DEFAULT_TERMINAL_THEME) for colour in nearest)
    if contrast(front, ground) < LEAST_CONTRAST:
        light = contrast(ColorTriplet(255, 255, 255), ground) >= LEAST_CONTRAST
        return style + Style(color=RichColor.from_triplet(ColorTriplet(*(255 * light,) * 3)))
    return style


_COLOURED = 60
"""Minimum difference between a colour's strongest and weakest channel; greys have less."""


@lru_cache(4096)
def _strong(style: Style) -> Style:
    red, green, blue = (style.color and style.color.triplet) or (0, 0, 0)
    ground = Color(*style.bgcolor.triplet) if style.bgcolor and style.bgcolor.triplet else None
    if max(red, green, blue) - min(red, green, blue) < _COLOURED or ground is None:
        return style
    front = ground.get_contrast_text(1.0).rich_color
    is_red = red - max(green, blue) > _COLOURED
    return style + Style(color=front, bold=True if is_red else None)


@lru_cache(4096)
def _readable_style(style: Style, below: ColorTriplet | None) -> Style:
    ground = (style.bgcolor and style.bgcolor.triplet) or below
    colour = style.color.triplet if style.color else None
    if colour is None or ground is None:
        return style
    moved = readable(colour, ground)
    return style if moved == colour else style + Style(color=RichColor.from_triplet(moved))
