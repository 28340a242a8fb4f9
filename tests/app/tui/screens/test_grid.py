"""The screen Grid: settings beside what they came to, the best marked; enter opens a run."""

from pathlib import Path

import pytest

from lumitui.app.follow.results.summary import figures_from
from lumitui.app.follow.results.sweep import StepPace, Sweep, SweepRow
from lumitui.app.history.history import History
from lumitui.app.history.metric_points import MetricPoint
from lumitui.app.history.run import Run
from lumitui.app.job.settings import Settings
from lumitui.app.tui.screens.grid_screen import GridFigures, even_decimals
from lumitui.app.tui.screens.run_screen import RunScreen
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.gallery.histories import a_grid
from tests.support.gallery.tour import still
from tests.support.program.driven_tui import keys_below, sees, until


@pytest.fixture
def grid(settings: Settings, tmp_path: Path) -> tuple[str, Run]:
    """A run of a grid in the history, and the one that has not ended."""
    history = History(settings.history)
    run_id = a_grid(history, tmp_path)
    (going,) = history.unfinished()
    history.close()
    return run_id, going


async def test_the_best_setting_is_marked_and_its_curve_has_a_letter(
    settings: Settings, project: Path, grid: tuple[str, Run]
) -> None:
    run_id, going = grid
    app = still(settings)
    async with app.run_test(size=(100, 30)) as pilot:
        app.open_run(run_id)
        await sees(pilot, "Overview")
        await pilot.press("x")
        await sees(pilot, r"No figures yet from 1 of 5 runs\.[\s\S]*─ Settings ─")
        await sees(pilot, "1 of 5 runs unfinished")
        await sees(pilot, r"  --lr=0.03 +[\d,]+ +0.5751\d* +done +\S+ +b [▁-▇]+")
        await sees(pilot, r"--lr=0.003 +[\d,]+ +1.56\d* +running +\S+ +d [▁-▇]+")
        await sees(pilot, "--lr=0.001 .*not sent")
        await sees(pilot, r"a --lr=0.1 0.9\d+ +b --lr=0.03 0.57508 +c --lr=0.01 .* smoothed 0.9")
        await sees(pilot, "A Smooth")
        await pilot.press("A")
        await sees(pilot, "smoothed 0.97")
        # Their speeds are alike, so that the losses are drawn first.
        await pilot.press(".")
        await sees(pilot, r"samples/s ─[\s\S]*last +a --lr=0.1 1340 ")
        await pilot.press(",")
        await sees(pilot, r"─ loss ─")
        app.runs.history.update(going.id, state=State.DONE)
        await sees(pilot, r"★ --lr=0.03 ")
        await pilot.press("g", "j")
        assert "+ Resubmit x2" in keys_below(pilot)
        await pilot.press("+")
        await sees(pilot, rf"Resubmit {run_id.rpartition('-')[0]}-\w+[\s\S]*nodes +2")
        await pilot.press("escape")
        await pilot.press("j", "enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen), "the run")
        await pilot.press("1")
        app.runs.history.begin(lonely := app.runs.history.get(run_id).__class__(**{
            **vars(app.runs.history.get(run_id)), "id": "alone-000001",
        }))  # fmt: skip
        app.open_run(lonely.id)
        await sees(pilot, "alone-000001")
        await pilot.press("x")
        await sees(pilot, "alone-000001 is not part of a grid")


async def test_a_narrow_terminal_shows_the_end_of_each_name_and_every_key_of_the_footer(
    settings: Settings, grid: tuple[str, Run]
) -> None:
    run_id, going = grid
    app = still(settings)
    async with app.run_test(size=(80, 24)) as pilot:
        app.open_run(going.id, "script")
        await sees(pilot, r"a All .* E Fetch .*q Quit|a All .* d Why .*q Quit")
        app.open_grid(run_id)
        await sees(pilot, rf"…\w*{run_id[-3:]} *│")


def test_a_column_has_equal_decimals_that_were_measured() -> None:
    assert even_decimals(["1.562", "0.5751", "-"], [1.56177, 0.57508, None]) == [
        "1.5618", "0.5751", "-"
    ]  # fmt: skip
    assert even_decimals(["2e-05", "0.5"], [2e-05, 0.5]) == ["2e-05", "0.5"]


def test_the_speed_is_drawn_if_the_runs_differ_in_nothing_else() -> None:
    def drawn(*paces: tuple[float | None, float | None]) -> str:
        rows = tuple(SweepRow("", pace=StepPace(samples_per_s=a, loss=b)) for a, b in paces)
        return GridFigures(Sweep("grid-1", rows, ()), {}, {}).telling

    assert drawn((2920, 4.545), (9014, 4.493), (None, None)) == "samples_per_s"
    assert drawn((2920, 4.545), (9014, 2.1)) == "loss"
    assert drawn((2920, 4.545), (2910, 4.5)) == drawn((2920, None)) == drawn() == "loss"


def test_another_metric_is_drawn_if_no_run_reports_a_loss() -> None:
    points = [MetricPoint(event="step", step=at, lr=0.1, extra={"accuracy": at / 9})
              for at in range(1, 4)]  # fmt: skip
    rows = (SweepRow("", "a", pace=StepPace(samples_per_s=9.0)), SweepRow("", "b"))
    found = GridFigures(Sweep("grid-1", rows, ()), {}, {"a": figures_from(points)})
    assert found.telling == "accuracy"
    assert list(found.curves(found.telling)) == ["a"]
