"""`make screenshots`: a picture of every screen, at every size, on every history of the gallery.

All go to build/screens; those that the README shows, to docs/pictures. SIZE=80x24 draws one size,
HISTORY=recording one history, THEME=lumitui-light another theme, into a folder of its own.
"""

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, chdir, contextmanager
from pathlib import Path

from textual.pilot import Pilot

from lumitui.app.history.history import History
from lumitui.app.job.examples import Beginning, text_for
from lumitui.app.job.settings import settings
from lumitui.app.runs.tour.recorded_runs import recorded_runs
from tests.measure.pictures.film import Film
from tests.support.gallery.histories import a_failure, extreme
from tests.support.gallery.tour import SIZES, StillApp, Stop, details, still, tour
from tests.support.jobs.sites.site_jobs import site
from tests.support.jobs.trained_runs import train
from tests.support.places import ROOT

SCREENS = ROOT / "build" / "screens"
PICTURES = ROOT / "docs" / "pictures"
SHOWN = {"resubmit": "resubmit.svg"}
"""The screens of the recording that documents show, at `SHOWN_AT`."""
SHOWN_AT = (120, 40)
JOB = Beginning(example="vit", account="project_462000001")
"""What `lumitui new` writes for LUMI."""
Walk = Callable[[Pilot[int]], AsyncIterator[Stop]]
Opened = tuple[StillApp, Walk]
"""An app, and the way through it."""


@contextmanager
def recording() -> Iterator[Opened]:
    """Yield the app on the recording of the tour."""
    with recorded_runs() as runs, chdir(runs.project):
        (newest,) = runs.history.page(1)
        grid = next(run.id for run in runs.history.page(50) if runs.history.series.of_run(run.id))
        yield StillApp(runs.own, runs=runs), lambda pilot: tour(pilot, newest.id, grid=grid)


@contextmanager
def made_up(fill: Callable[[History, Path], Walk]) -> Iterator[Opened]:
    """Yield the app on a history that `fill` writes."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "sites").mkdir()
        where = settings({"LUMITUI_CONFIG_DIR": folder, "LUMITUI_DATA_DIR": folder})
        (home / "work").mkdir()
        (home / "work" / "job.yaml").write_text(text_for(site("lumi"), JOB))
        history = History(where.history)
        walk = fill(history, home)
        history.close()
        with chdir(home / "work"):
            yield still(where), walk


def _extreme(history: History, home: Path) -> Walk:
    run = extreme(history, home / "runs", runs=10_000, nodes=1024)
    return lambda pilot: tour(pilot, run)


def _measured(history: History, home: Path) -> Walk:
    sizes = [run.id for run in train(history, {1: 1000.0, 2: 1940.0, 4: 3600.0})]
    failed = a_failure(history, home / "runs", home / "work")
    return lambda pilot: details(pilot, home / "work" / "job.yaml", failed, sizes)


HISTORIES: Mapping[str, Callable[[], AbstractContextManager[Opened]]] = {
    "empty": lambda: made_up(lambda history, home: tour),
    "recording": recording,
    "measured": lambda: made_up(_measured),
    "extreme": lambda: made_up(_extreme),
}


async def draw(name: str, size: tuple[int, int]) -> list[str]:
    """Draw every screen on a history; return what is wrong with them."""
    faults, theme = [], os.environ.get("THEME", "")
    with HISTORIES[name]() as (app, walk):
        async with app.run_test(size=size) as pilot:
            app.theme = theme or app.theme
            async for stop in walk(pilot):
                faults += await stop.lasting_faults()
                await pilot.pause(0.3)
                await app._settle()
                picture = app.export_screenshot(title="lumitui")
                # Some viewers drop spaces at the beginning of a text.
                picture = picture.replace("<text ", '<text xml:space="preserve" ')
                file = f"{stop.name}-{name}-{size[0]}x{size[1]}.svg"
                (SCREENS / theme / file).write_text(picture)
                if not theme and name == "recording" and size == SHOWN_AT and stop.name in SHOWN:
                    film = Film(app)
                    film.shoot()
                    (PICTURES / SHOWN[stop.name]).write_text(film.svg())
    return faults


def main() -> int:
    """Draw all; print what is wrong, and fail when anything is."""
    for folder in (SCREENS / os.environ.get("THEME", ""), PICTURES):
        folder.mkdir(parents=True, exist_ok=True)
    wanted = os.environ.get("SIZE")
    sizes = [size for size in SIZES if wanted in (None, f"{size[0]}x{size[1]}")]
    names = [name for name in HISTORIES if os.environ.get("HISTORY") in (None, name)]
    faults = [fault for name in names for size in sizes for fault in asyncio.run(draw(name, size))]
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(list(SCREENS.glob('*.svg')))} pictures are in {SCREENS}")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
