"""Every screen at every size, with nothing, a week's runs, and extremes, is drawn whole."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lumitui.app.history.history import History
from lumitui.app.job.settings import Settings
from tests.support.gallery.histories import a_grid, extreme, typical
from tests.support.gallery.tour import SIZES, still, tour

Fill = Callable[[History, Path], tuple[str, ...]]
HISTORIES: dict[str, Fill] = {
    "empty": lambda history, folder: (),
    "typical": lambda history, folder: (typical(history, folder),),
    "both": lambda history, folder: (
        typical(history, folder),
        extreme(history, folder, runs=60, nodes=64),
    ),
    "largest": lambda history, folder: (extreme(history, folder, runs=10_000, nodes=1024),),
}


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("empty", SIZES[:1]),
        ("both", SIZES[:1]),
        pytest.param("empty", SIZES[1:], marks=pytest.mark.slow),
        pytest.param("typical", SIZES[1:], marks=pytest.mark.slow),
        pytest.param("largest", SIZES, marks=pytest.mark.slow),
    ],
)
async def test_every_screen_is_drawn_whole(
    name: str, sizes: tuple[tuple[int, int], ...], settings: Settings, project: Path, tmp_path: Path
) -> None:
    history = History(settings.history)
    run_ids = HISTORIES[name](history, tmp_path / "runs")
    grid = a_grid(history, tmp_path / "grid") if name == "both" else ""
    history.close()
    app, faults = still(settings), []
    async with app.run_test(size=sizes[0]) as pilot:
        async for stop in tour(pilot, *run_ids, grid=grid):
            for width, height in sizes:
                if len(sizes) > 1:
                    await pilot.resize_terminal(width, height)
                    await pilot.pause()
                faults += await stop.lasting_faults()
    assert app.defect is None
    assert not faults, "\n".join(faults)
