"""The tour, walked from its first stop to its end by the keys that its line names."""

from collections.abc import AsyncIterator
from functools import partial

from textual.pilot import Pilot

from lumitui.app.tui.tour.tour_app import TourApp
from lumitui.app.tui.tour.tour_stops import STOPS
from tests.support.program.driven_tui import until

NAMES = {"↓": "down", "+": "plus"}
"""What Pilot calls the keys of a stop."""


async def stops(app: TourApp, pilot: Pilot[int], seconds: float) -> AsyncIterator[int]:
    """Yield at each stop, and at the end, when its screen was there for `seconds`."""
    for number, stop in enumerate(STOPS):
        await pilot.pause(seconds)
        yield number
        for key in stop.keys.split(", "):
            await pilot.press(NAMES.get(key, key))
            await pilot.pause(seconds)
        await until(pilot, partial(_is_over, app, number, dialog=True), stop.words)
        if app.screen.is_modal:
            assert app.stop == number, "the next line names keys that the dialog would take"
            await pilot.pause(seconds)
            await pilot.press("escape")
        await until(pilot, partial(_is_over, app, number), stop.words)
    await pilot.pause(seconds)
    yield len(STOPS)


def _is_over(app: TourApp, number: int, *, dialog: bool = False) -> bool:
    return app.stop > number or (dialog and app.screen.is_modal)
