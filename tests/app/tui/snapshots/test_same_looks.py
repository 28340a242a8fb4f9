"""A few screens as text, beside how they looked before: a change of looks is seen in a diff.

UPDATE=1 writes tests/golden/screens anew; look at the diff before you commit it.
"""

import os
from pathlib import Path

from lumitui.app.history.history import History
from lumitui.app.settings import Settings
from lumitui.app.tui.screens.run import RunScreen
from tests.support.driven_tui import sees, shown
from tests.support.gallery.histories import typical
from tests.support.gallery.tour import still
from tests.support.places import GOLDEN

SCREENS = GOLDEN / "screens"


async def test_a_few_screens_look_as_before(
    settings: Settings, project: Path, tmp_path: Path
) -> None:
    history = History(settings.history)
    run_id = typical(history, tmp_path / "runs")
    history.close()
    looks: dict[str, str] = {}
    app = still(settings)
    app.animation_level = "none"
    async with app.run_test(size=(80, 24)) as pilot:

        async def look(name: str, pattern: str) -> None:
            for width, height in ((80, 24), (40, 10)):
                await pilot.resize_terminal(width, height)
                await sees(pilot, pattern)
                before, now = "", shown(pilot)
                while now != before:  # all that is on its way has been drawn
                    await pilot.pause(0.3)
                    before, now = now, shown(pilot)
                looks[f"{name}-{width}x{height}"] = now.rstrip() + "\n"

        await look("runs", run_id)
        app.push_screen(RunScreen(app.runs, run_id, "proof"))
        await look("proof", "planned")
    if os.environ.get("UPDATE"):
        SCREENS.mkdir(exist_ok=True)
        for name, text in looks.items():
            (SCREENS / f"{name}.txt").write_text(text)
    assert set(looks) == {path.stem for path in SCREENS.glob("*.txt")}
    for name, text in looks.items():
        assert text.splitlines() == (SCREENS / f"{name}.txt").read_text().splitlines(), name
