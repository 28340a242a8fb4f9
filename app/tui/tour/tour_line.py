"""The line above the footer with the next key to press."""

from dataclasses import replace

from rich.text import Text
from textual.widgets import Static

from lumitui.app.tui.tour.tour_stops import END, STOPS

_CLOSES = "ctrl+t closes this line "


class TourLine(Static):
    """The user's current stop."""

    DEFAULT_CSS = "TourLine { height: 1; background: $accent 25%; text-wrap: nowrap; }"

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._stop = 0
        self._back = ""  # the run to return to

    def on_mount(self) -> None:
        """Follow the tour of the app."""
        self.watch(self.app, "stop", self._go_to)
        self.watch(self.app, "astray", self._lead_back)
        self.watch(self.app, "shows_line", self._open)

    def on_resize(self) -> None:
        """Show the key that closes the line if there is room."""
        self._draw()

    async def on_click(self) -> None:
        await self.run_action("app.tour_line")

    def _go_to(self, stop: int) -> None:
        self._stop = stop
        self._draw()

    def _lead_back(self, run: str) -> None:
        self._back = run
        self._draw()

    def _open(self, shown: bool) -> None:
        self.display = shown

    def _draw(self) -> None:
        width = self.size.width or self.app.size.width
        self.update(line_text(self._stop, width, self._back))


def line_text(number: int, width: int, back: str = "") -> Text:
    """Return the line of a stop, counted from 0, in `width` cells.

    If the user is at another run, it leads to the stop's run, `back`.
    """
    ended = number >= len(STOPS)
    stop, at = (END, "end") if ended else (STOPS[number], f"{number + 1}/{len(STOPS)}")
    stop = replace(stop, keys="1, ↑ ↓", words=f"choose {back}, this stop's run") if back else stop
    text = Text.assemble(
        (f" Tour {at} ", "bold"), (f" {stop.keys} ", "bold reverse"), f" {stop.words}", end=""
    )
    if (room := width - text.cell_len - len(_CLOSES)) >= 2:
        text.append(" " * room).append(_CLOSES, "dim")
    return text
