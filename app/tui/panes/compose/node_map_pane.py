"""The node map of a job, as wide as the pane."""

from collections.abc import Container

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from lumitui.app.runs import MapLine, Preview, gpu_word, node_map, node_map_lines, rank_lines
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import plain, rank_colour

_NOTHING = "The node map appears once the job file is valid: fix the fields marked in the form."


class NodePane(Scroll):
    """The cores of a node, and the ranks bound to them, with their masks if `shows_ranks`."""

    def __init__(self) -> None:
        super().__init__(id="node")
        self._preview: Preview | None = None
        self.shows_ranks = True
        self._label, self._note = Content("Node"), Content()
        self._extent = self._legend = ""
        """The size of the node and the legend, for the border below another view."""

    def compose(self) -> ComposeResult:
        yield Static(_NOTHING, id="map", markup=False)

    def show(self, preview: Preview) -> None:
        """Show the nodes of a launch."""
        self._preview = preview
        self.draw_map()

    def entitle(self, name: Content, note: Content) -> None:
        """Name the pane; below another view, add the size of the node, and a note or the legend."""
        self._label, self._note = name, note
        below = self.has_class("below") and self._extent
        self.border_title = name + f"  {self._extent}" if below else name
        self.border_subtitle = note or (self._legend if below else "")

    def on_resize(self, event: events.Resize) -> None:
        self.draw_map()

    def draw_map(self) -> None:
        """Draw the map for the width of the pane."""
        found, width = self._preview, max(24, self.scrollable_content_region.width)
        if found is not None:
            drawn = node_map(found.site, found.launch.layout)
            lines = node_map_lines(drawn, width, gpu_word(found.site))
            (size,), (legend,), _ = lines[:3]
            words = size.text.removeprefix("node").strip()
            self._extent = words if width > 46 else words.partition(",")[0]
            self._legend = legend.text
            self.entitle(self._label, self._note)
            below = self.has_class("below")
            drawing = Text("\n").join(map(map_line, lines[3 if below else 0 :]))
            drawing.rstrip()
            if self.shows_ranks:
                ranks = rank_lines(found.site, found.launch.layout, width)
                drawing = Text("\n").join((drawing, Text(), *map(map_line, ranks)))
            self.query_one("#map", Static).update(drawing)


def map_line(parts: MapLine, wrong: Container[int | None] = ()) -> Text:
    """Return a line of the map: cores and GPU in the colour of their rank, red if it is `wrong`.

    Ranks keep their digits, so that the map is readable without colours.
    """
    line = Text("", no_wrap=True, overflow="crop")
    for part in parts:
        colour = "dim" if part.rank is None else rank_colour(part.rank)
        line.append_text(plain(part.text, "bold red" if part.rank in wrong else colour))
    return line
