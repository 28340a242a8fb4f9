"""`make recording`: the demo as an animated picture, docs/pictures/demo.svg, from a real session.

The TUI is driven by its keys while both trainings run on this machine. It takes two or three
minutes and needs torch.
"""

import asyncio
import os
import re
import tempfile
from pathlib import Path

from textual.pilot import Pilot

from lumitui.app.job.settings import settings
from lumitui.app.runs.guide.demo_job import prepare
from lumitui.app.tui.app import LumiApp
from tests.measure.pictures.film import Film
from tests.support.places import ROOT
from tests.support.program.driven_tui import shown, until

PICTURE = ROOT / "docs" / "pictures" / "demo.svg"
SIZE = (96, 27)


async def wait_for(pilot: Pilot[int], pattern: str) -> None:
    """Wait until the screen shows what `pattern` matches."""
    await until(pilot, lambda: re.search(pattern, shown(pilot)), f"seen: {pattern}", 400)


async def see(film: Film, pilot: Pilot[int], pattern: str, *keys: str) -> None:
    """Type keys, wait until `pattern` is on the screen, and keep it."""
    await pilot.press(*keys)
    await wait_for(pilot, pattern)
    await pilot.pause(0.5)
    film.shoot()


async def record(folder: Path) -> str:
    """Go through the demo; return the picture."""
    (folder / "sites").mkdir()
    job = prepare(folder / "demo")
    os.chdir(job.parent)
    where = settings({"LUMITUI_CONFIG_DIR": str(folder), "LUMITUI_DATA_DIR": str(folder)})
    app = LumiApp(where, job, demo=True)
    async with app.run_test(size=SIZE) as pilot:
        film = Film(app)
        await see(film, pilot, "asks for 1 node, 2 ranks")
        await see(film, pilot, "y Yes", "s")
        await pilot.press("y")
        await wait_for(pilot, "Overview")
        await see(film, pilot, "proved|not measured", "p")
        await see(film, pilot, "step +[1-9]|loss", "l")
        await see(film, pilot, "samples/s", "m")
        await wait_for(pilot, " done ")
        await see(film, pilot, "Send on 2 nodes", "plus")
        await pilot.press("ctrl+s")
        await wait_for(pilot, "2 nodes, 4 ranks")
        await see(film, pilot, "proved|not measured", "p")
        await see(film, pilot, "speed-up")
    return film.svg()


def main() -> None:
    """Draw docs/pictures/demo.svg."""
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    with tempfile.TemporaryDirectory() as folder:
        picture = asyncio.run(record(Path(folder)))
        os.chdir(ROOT)
    PICTURE.write_text(picture)
    print(f"{PICTURE}: {len(picture) / 1000:.0f} kB")


if __name__ == "__main__":
    main()
