"""`make recording`: the tour as an animated picture, docs/pictures/tour.svg, typed key by key."""

import asyncio
import os
from contextlib import chdir

from lumitui.app.runs.tour.recorded_runs import recorded_runs
from lumitui.app.tui.tour.tour_app import TourApp
from tests.measure.pictures.film import Film
from tests.support.places import ROOT
from tests.support.program.driven_tui import shown, until
from tests.support.program.toured import stops

PICTURE = ROOT / "docs" / "pictures" / "tour.svg"
SIZE = (100, 28)
DRAWN = 2.5
"""Seconds in which a screen is whole, with what its workers bring."""


async def record() -> str:
    """Go through the tour; return the picture."""
    with recorded_runs() as runs, chdir(runs.project):
        app = TourApp(runs)
        async with app.run_test(size=SIZE) as pilot:
            film = Film(app)
            await until(pilot, lambda: "rank 9, exit 1" in shown(pilot), "the list of runs")
            async for _ in stops(app, pilot, DRAWN):
                film.shoot()
        return film.svg()


def main() -> None:
    """Draw docs/pictures/tour.svg."""
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    picture = asyncio.run(record())
    PICTURE.write_text(picture)
    print(f"{PICTURE}: {len(picture) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
