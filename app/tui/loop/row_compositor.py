"""Draws only changed rows, and skips hidden widgets.

Textual's compositor draws every line of every widget that touches a change, also the containers
that their children cover. A key that moves the cursor of a table changes two lines; to draw all
of the screen for them took most of the key's time.
"""

from collections.abc import Iterable

from textual._compositor import Compositor
from textual.geometry import Region
from textual.strip import Strip


class RowCompositor(Compositor):
    """Textual's compositor without work whose result it drops."""

    def _get_renders(
        self, crop: Region | None = None
    ) -> Iterable[tuple[Region, Region, list[Strip]]]:
        """Yield each widget's position, its visible part, and its lines within `crop`.

        Those in front come first, and what is behind one of them is left out.
        """
        rows = Region(0, crop.y, self.size.width, crop.height) if crop else self.size.region
        drawn: list[Region] = []
        for widget, (region, clip) in self.visible_widgets.items():
            seen = region.intersection(clip).intersection(rows)
            if seen and not any(front.contains_region(seen) for front in drawn):
                drawn.append(seen)
                yield region, seen, widget.render_lines(seen.translate(-region.offset))
