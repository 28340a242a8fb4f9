"""Screens as text, beside how they looked before: a change of looks is seen in a diff.

UPDATE=1 writes tests/golden/screens anew; look at the diff before you commit it.
"""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from lumitui.app.history.history import History
from lumitui.app.job.settings import Settings
from lumitui.app.tui.screens.run_screen import RunScreen
from tests.support.gallery.histories import typical
from tests.support.gallery.tour import still
from tests.support.jobs.trained_runs import train
from tests.support.places import GOLDEN
from tests.support.program.driven_tui import app_of, sees, shown, until

SCREENS = GOLDEN / "screens"
NOW = 1_795_000_000.0
"""The only time there is: ages and dates are the same at each test."""


@pytest.fixture
def still_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Time stands still, at UTC."""
    monkeypatch.setattr(time, "time", lambda: NOW)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("still_time")
async def test_screens_look_as_before(settings: Settings, project: Path) -> None:
    history = History(settings.history)
    run_id = typical(history, Path("runs"))
    sizes = train(history, {1: 1000.0, 2: 1940.0, 4: 3600.0})
    history.close()
    looks: dict[str, str] = {}
    app = still(settings)
    app.animation_level = "none"
    async with app.run_test(size=(80, 24)) as pilot:

        async def look(name: str, pattern: str, *, small: bool = False) -> None:
            for width, height in ((80, 24), (40, 10)) if small else ((80, 24),):
                if pilot.app.size != (width, height):
                    await pilot.resize_terminal(width, height)
                await sees(pilot, pattern)
                await until(pilot, lambda: shown(pilot).splitlines()[-1].strip(), "the footer")
                looks[f"{name}-{width}x{height}"] = await settled(pilot)
            if small:
                await pilot.resize_terminal(80, 24)

        await look("runs", run_id, small=True)
        await pilot.press("plus")
        await look("resubmit", r"Send on 8 nodes")
        await pilot.press("escape")
        for name, pattern in (("new", "job.yaml"), ("cluster", "standard-g"), ("guide", "Demo")):
            app.action_go(name)
            await look(name, pattern)
        app.action_go("runs")
        app.open_scaling(sizes[0].id)
        await look("scaling", r"(?s)1,940.*speed-up and eff")
        await pilot.press("escape")
        app.open_compare(tuple(run.id for run in sizes[:2]))
        await look("compare", sizes[1].id)
        await pilot.press("escape")
        app.push_screen(screen := RunScreen(app.runs, run_id))
        await look("overview", "running")
        screen.action_pane("proof")
        await look("proof", "planned", small=True)
    if os.environ.get("UPDATE"):
        SCREENS.mkdir(exist_ok=True)
        for name, text in looks.items():
            (SCREENS / f"{name}.txt").write_text(text)
    assert set(looks) == {path.stem for path in SCREENS.glob("*.txt")}
    for name, text in looks.items():
        assert text.splitlines() == (SCREENS / f"{name}.txt").read_text().splitlines(), name


async def settled(pilot: Pilot[int]) -> str:
    """Return the screen when all that is on its way has been drawn; folders of tests are `~`."""
    before, now = "", shown(pilot)
    while now != before or app_of(pilot).workers:
        await pilot.pause(0.05)
        before, now = now, shown(pilot)
    return re.sub(r"/\S*/(project|data|config)\b", r"~/\1", now).rstrip() + "\n"
