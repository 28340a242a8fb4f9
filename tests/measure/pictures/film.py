"""Screens of the TUI as one small picture: text in an SVG, the screens one after the other."""

import re
from dataclasses import dataclass, field
from html import escape

from rich.cells import cell_len
from rich.color import blend_rgb
from rich.color_triplet import ColorTriplet
from rich.segment import Segment
from textual.app import App

SECONDS = 3.2
"""How long a screen is shown."""
CELL, LINE = 8.4, 18
"""Pixels of a cell and of a line, of a font of 14 pixels."""
_BRAILLE = re.compile("[\u2800-\u28ff]")
BLACK, WHITE = ColorTriplet(12, 16, 20), ColorTriplet(224, 230, 236)


@dataclass
class Film:
    """Screens, one after the other, and the colours in all of them."""

    app: App[int]
    screens: list[str] = field(default_factory=list)
    colours: dict[str, str] = field(default_factory=dict)

    def _colour(self, triplet: ColorTriplet) -> str:
        return self.colours.setdefault(triplet.hex, f"c{len(self.colours)}")

    def _part(self, segment: Segment, x: int, y: int) -> tuple[str, str]:
        """Return a part of a line as its background and its text.

        Words behind two blanks or more have a place of their own: a viewer that drops blanks, or
        whose font is narrower, would shift the columns.
        """
        style = segment.style
        front = style.color.triplet if style and style.color else None
        back = style.bgcolor.triplet if style and style.bgcolor else None
        front, back = front or WHITE, back or BLACK
        if style and style.reverse:
            front, back = back, front
        if style and style.dim:
            front = blend_rgb(back, front, 0.6)
        box = text = ""
        if back != BLACK:
            place = f'x="{x * CELL:.5g}" y="{y * LINE}" width="{segment.cell_length * CELL:.5g}"'
            box = f'<rect {place} height="{LINE}" class="{self._colour(back)}"/>'
        names = self._colour(front) + (" b" if style and style.bold else "")
        for words in re.finditer(r"\S+(?: \S+)*", segment.text):
            left = (x + cell_len(segment.text[: words.start()])) * CELL
            # Braille comes from another font, whose cells are wider: each sign has its place.
            signs = len(words[0]) if _BRAILLE.search(words[0]) else 1
            places = " ".join(f"{left + at * CELL:.5g}" for at in range(signs))
            text += f'<tspan x="{places}" class="{names}">{escape(words[0])}</tspan>'
        return box, text

    def shoot(self) -> None:
        """Keep the screen as it is now."""
        boxes, lines = list[str](), list[str]()
        for y, strip in enumerate(self.app.screen._compositor.render_strips(self.app.size)):
            x, parts = 0, list[str]()
            for segment in Segment.simplify(strip):
                box, text = self._part(segment, x, y)
                boxes.append(box)
                parts.append(text)
                x += segment.cell_length
            if words := "".join(parts):
                lines.append(f'<text y="{y * LINE + 14}">{words}</text>')
        self.screens.append("".join(boxes) + "\n" + "\n".join(lines))

    def svg(self) -> str:
        """Return the film: each screen is visible in its turn, for ever."""
        width, height = self.app.size.width * CELL, self.app.size.height * LINE
        whole = SECONDS * len(self.screens)
        part = 100 / len(self.screens)
        turn = f"visibility:hidden;animation:turn {whole:.5g}s step-end infinite"
        style = [
            "text{font:14px 'DejaVu Sans Mono',Menlo,Consolas,monospace;white-space:pre}",
            ".b{font-weight:bold}",
            *(f".{name}{{fill:{colour}}}" for colour, name in self.colours.items()),
            f".s{{{turn if len(self.screens) > 1 else ''}}}",
            ".s0{visibility:visible}",  # where nothing is animated
            f"@keyframes turn{{0%{{visibility:visible}}{part:.5g}%{{visibility:hidden}}}}",
            *(f".s{at}{{animation-delay:{at * SECONDS:.5g}s}}" for at in range(len(self.screens))),
            "@media(prefers-reduced-motion){.s{animation:none}}",
        ]
        screens = "\n".join(
            f'<g class="s s{at}">{screen}</g>' for at, screen in enumerate(self.screens)
        )
        view = f'viewBox="-8 -8 {width + 16:.5g} {height + 16}"'
        frame = f'<rect x="-8" y="-8" width="100%" height="100%" rx="8" fill="{BLACK.hex}"/>'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" {view}>'
            f"<style>{''.join(style)}</style>{frame}\n{screens}\n</svg>\n"
        )
