"""The node map of a job, as wide as the pane."""

from collections.abc import Container

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.widgets import Static

from lumitui.app.runs import MapLine, Preview, gpu_word, node_map, node_map_lines
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import plain, rank_colour

_NOTHING = "The node map appears once the job file is valid: fix the fields marked in the form."


class NodePane(Scroll):
    """The cores of a node, and the ranks bound to them."""

    def __init__(self) -> None:
        """Show no job."""
        super().__init__(id="node")
        self._preview: Preview | None = None

    def compose(self) -> ComposeResult:
        """Yield the map."""
        yield Static(_NOTHING, id="map", markup=False)

    def show(self, preview: Preview) -> None:
        """Show the nodes of a launch."""
        self._preview = preview
        self._draw_map()

    def on_resize(self, event: events.Resize) -> None:
        """Lay the map out again."""
        self._draw_map()

    def _draw_map(self) -> None:
        found, width = self._preview, max(24, self.scrollable_content_region.width)
        if found is not None:
            drawn = node_map(found.site, found.launch.layout)
            lines = node_map_lines(drawn, width, gpu_word(found.site))
            drawing = Text("\n").join(map(map_line, lines))
            drawing.rstrip()
            self.query_one("#map", Static).update(drawing)


def map_line(parts: MapLine, wrong: Container[int | None] = ()) -> Text:
    """Return a line of the map: a block in the colour of its rank, red if the rank is `wrong`.

    Ranks keep their digits, so that the map is readable without colours.
    """
    line = Text("", no_wrap=True, overflow="crop")
    for part in parts:
        style = "dim"
        if part.rank is not None:
            colour = "red" if part.rank in wrong else rank_colour(part.rank)
            style = f"black on {colour}" if part.is_core else colour
        line.append_text(plain(part.text, style))
    return line
