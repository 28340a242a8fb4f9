"""`make screenshots`: a picture of every screen, at every size, on every history of the gallery.

All go to build/screens; those that the README shows, to docs/pictures. SIZE=80x24 draws one size.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, chdir, contextmanager
from pathlib import Path

from lumitui.app.history.history import History
from lumitui.app.job.settings import settings
from lumitui.app.runs.tour.recorded_runs import recorded_runs
from tests.measure.pictures.film import Film
from tests.support.gallery.histories import extreme
from tests.support.gallery.tour import SIZES, StillApp, still, tour
from tests.support.places import ROOT

SCREENS = ROOT / "build" / "screens"
PICTURES = ROOT / "docs" / "pictures"
SHOWN = {"resubmit": "resubmit.svg"}
"""The screens of the recording that documents show, at `SHOWN_AT`."""
SHOWN_AT = (120, 40)
JOB = """name: vit
site: lumi
account: project_462000001
partition: standard-g
time: "01:00:00"
trainer: ddp
args: [--epochs, 10]
"""
Opened = tuple[StillApp, tuple[str, ...]]
"""An app, and the runs to open."""


@contextmanager
def recording() -> Iterator[Opened]:
    """Yield the app on the recording of the tour."""
    with recorded_runs() as runs, chdir(runs.project):
        (newest,) = runs.history.page(1)
        yield StillApp(runs.own, runs=runs), (newest.id,)


@contextmanager
def made_up(fill: Callable[[History, Path], tuple[str, ...]]) -> Iterator[Opened]:
    """Yield the app on a history that `fill` writes."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "sites").mkdir()
        where = settings({"LUMITUI_CONFIG_DIR": folder, "LUMITUI_DATA_DIR": folder})
        history = History(where.history)
        run_ids = fill(history, home / "runs")
        history.close()
        (home / "work").mkdir()
        (home / "work" / "job.yaml").write_text(JOB)
        with chdir(home / "work"):
            yield still(where), run_ids


HISTORIES: Mapping[str, Callable[[], AbstractContextManager[Opened]]] = {
    "empty": lambda: made_up(lambda history, folder: ()),
    "recording": recording,
    "extreme": lambda: made_up(
        lambda history, folder: (extreme(history, folder, runs=10_000, nodes=1024),)
    ),
}


async def draw(name: str, size: tuple[int, int]) -> list[str]:
    """Draw every screen on a history; return what is wrong with them."""
    faults = []
    with HISTORIES[name]() as (app, run_ids):
        async with app.run_test(size=size) as pilot:
            async for stop in tour(pilot, *run_ids):
                faults += await stop.lasting_faults()
                await pilot.pause(0.3)
                picture = app.export_screenshot(title="lumitui")
                # Some viewers drop spaces at the beginning of a text.
                picture = picture.replace("<text ", '<text xml:space="preserve" ')
                file = f"{stop.name}-{name}-{size[0]}x{size[1]}.svg"
                (SCREENS / file).write_text(picture)
                if name == "recording" and size == SHOWN_AT and stop.name in SHOWN:
                    film = Film(app)
                    film.shoot()
                    (PICTURES / SHOWN[stop.name]).write_text(film.svg())
    return faults


def main() -> int:
    """Draw all; print what is wrong, and fail when anything is."""
    for folder in (SCREENS, PICTURES):
        folder.mkdir(parents=True, exist_ok=True)
    wanted = os.environ.get("SIZE")
    sizes = [size for size in SIZES if wanted in (None, f"{size[0]}x{size[1]}")]
    faults = [
        fault for name in HISTORIES for size in sizes for fault in asyncio.run(draw(name, size))
    ]
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(list(SCREENS.glob('*.svg')))} pictures are in {SCREENS}")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
