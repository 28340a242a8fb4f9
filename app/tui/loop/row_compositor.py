"""A compositor that draws only changed rows and skips hidden widgets.

Textual's compositor draws every line of every widget that a change touches, even of containers
hidden by their children. A key that moves a table's cursor changes two lines; drawing the entire
screen for them took most of the key's time.
"""

from collections.abc import Iterable

from textual._compositor import Compositor
from textual.geometry import Region
from textual.strip import Strip


class RowCompositor(Compositor):
    """Textual's compositor without the drawing that it would discard."""

    def _get_renders(
        self, crop: Region | None = None
    ) -> Iterable[tuple[Region, Region, list[Strip]]]:
        """Yield each widget's position, its visible part, and its lines within `crop`.

        Widgets in front come first; those hidden behind one are omitted.
        """
        rows = Region(0, crop.y, self.size.width, crop.height) if crop else self.size.region
        drawn: list[Region] = []
        for widget, (region, clip) in self.visible_widgets.items():
            seen = region.intersection(clip).intersection(rows)
            if seen and not any(front.contains_region(seen) for front in drawn):
                drawn.append(seen)
                yield region, seen, widget.render_lines(seen.translate(-region.offset))
