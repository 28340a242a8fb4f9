"""The node map of a job, as wide as there is room, with a colour for each rank."""

from collections.abc import Iterable

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.widgets import Static

from lumitui.app.runs import MapLine, Preview, gpu_word, node_map, node_map_lines
from lumitui.app.tui.widgets.scroll import Scroll
from lumitui.app.tui.widgets.styled import SERIES, plain

_NOTHING = "The node map appears once the job file is valid: fix the fields marked in the form."


class NodePane(Scroll):
    """The cores of a node and the ranks that have them."""

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
            lines = map_texts(node_map_lines(drawn, width, gpu_word(found.site)))
            self.query_one("#map", Static).update(Text("\n").join(lines))


def map_texts(lines: Iterable[MapLine]) -> list[Text]:
    """Return the lines of a node map; a rank has one colour in all of them."""
    return [
        Text("", no_wrap=True, overflow="crop").join(
            plain(part.text, _style(part.rank, part.text, is_core=part.is_core)) for part in line
        )
        for line in lines
    ]


def _style(rank: int | None, text: str, *, is_core: bool) -> str:
    if rank is None:
        return "bright_black" if is_core and text[0] in "x." else ""
    return SERIES[rank % len(SERIES)]
