"""The node map of a job, as wide as there is room."""

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.widgets import Static

from lumitui.app.runs import Preview, gpu_word, node_map, node_map_lines
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import plain

_NOTHING = "The node map comes with the first launch: fix what the form names."


class NodePane(Scroll):
    """The cores of a node and the ranks that have them."""

    def __init__(self) -> None:
        """Show no job."""
        super().__init__(id="node")
        self._preview: Preview | None = None

    def compose(self) -> ComposeResult:
        """Yield the map."""
        yield Static(_NOTHING, id="map", markup=False)

    def show(self, preview: Preview | None) -> None:
        """Show the nodes of a launch; None: there is none."""
        self._preview = preview
        self._draw_map()

    def on_resize(self, event: events.Resize) -> None:
        """Lay the map out again."""
        self._draw_map()

    def _draw_map(self) -> None:
        found, width = self._preview, max(24, self.scrollable_content_region.width)
        text: Text = Text(_NOTHING)
        if found is not None:
            shown = node_map_lines(
                node_map(found.site, found.launch.layout), width, gpu_word(found.site)
            )
            text = plain("\n".join(shown))
        self.query_one("#map", Static).update(text)
