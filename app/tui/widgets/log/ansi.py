"""The colours of a log: the safe part of SGR as styles. Pure."""

from functools import lru_cache

from rich.color import Color
from rich.style import Style

_FLAGS = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("reverse",), 29: ("strike",)}
NOTHING = Style()


@lru_cache(maxsize=512)
def after(style: Style, codes: str) -> Style:
    """Return `style` changed by `codes` (`1;31`).

    Blinking, hidden text and black text without a background are ignored, to keep the log readable.
    """
    numbers = [int(part) if part.isdecimal() else -1 for part in codes.replace(":", ";").split(";")]
    flags = {name: True for name in _FLAGS.values() if getattr(style, name)}
    colours = {"color": style.color, "bgcolor": style.bgcolor}
    at = 0
    while at < len(numbers):
        code, at = numbers[at], at + 1
        if code in (0, -1):
            flags, colours = {}, {"color": None, "bgcolor": None}
        elif code in _FLAGS:
            flags[_FLAGS[code]] = True
        elif code in _OFF:
            flags = {name: on for name, on in flags.items() if name not in _OFF[code]}
        elif code in (38, 48):
            found, at = _extended(numbers, at)
            colours["color" if code == 38 else "bgcolor"] = found
        elif code in (39, 49):
            colours["color" if code == 39 else "bgcolor"] = None
        elif 30 <= code <= 37 or 90 <= code <= 97:
            colours["color"] = Color.from_ansi(code - 30 if code < 90 else code - 82)
        elif 40 <= code <= 47 or 100 <= code <= 107:
            colours["bgcolor"] = Color.from_ansi(code - 40 if code < 100 else code - 92)
    if colours["bgcolor"] is None and colours["color"] == Color.from_ansi(0):
        colours["color"] = None
    return Style(**flags, **colours)  # type: ignore[arg-type] # Style's own arguments


def _extended(numbers: list[int], at: int) -> tuple[Color | None, int]:
    """Return the colour that begins at `at` (`5;n` or `2;r;g;b`), and the next code's index."""
    if numbers[at : at + 1] == [5] and len(numbers) > at + 1 and 0 <= numbers[at + 1] < 256:
        return Color.from_ansi(numbers[at + 1]), at + 2
    rgb = numbers[at + 1 : at + 4]
    if numbers[at : at + 1] == [2] and len(rgb) == 3 and all(0 <= part < 256 for part in rgb):
        return Color.from_rgb(*rgb), at + 4
    return None, len(numbers)
