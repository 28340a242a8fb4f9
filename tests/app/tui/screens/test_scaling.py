"""The screens that compare runs: how a run scales, and several side by side."""

import json
from dataclasses import replace

import pytest
from textual.widgets import Input

from lumitui.app.job.settings import Settings
from lumitui.app.scale.scaling.studies import ScalingQuestion
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.resubmit_dialog import ResubmitDialog
from lumitui.app.tui.screens.runs_screen import RunsScreen
from lumitui.app.tui.screens.scaling_screen import ScalingScreen, asked_work
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.trained_runs import lines_of, train, trained
from tests.support.program.driven_tui import cut_off, sees, shown, until


async def test_a_lineage_is_compared_drawn_and_a_size_recommended(settings: Settings) -> None:
    app = LumiApp(settings)
    runs = train(app.runs.history, {1: 1000.0, 2: 1940.0})
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: runs[0].id in shown(pilot), "the runs")
        await pilot.press("S")
        await until(pilot, lambda: isinstance(app.screen, ScalingScreen), "the screen")
        await sees(pilot, r"1,940 +1,900-1,980 +97 %.* vit-2n-000002\n")
        await sees(pilot, r"~6,\d+")
        await sees(pilot, "● measured")
        await sees(pilot, "Take 1 node")
        assert not cut_off(pilot) and not app.screen.show_vertical_scrollbar
        await pilot.press("D", "1", "s", "enter")
        await sees(pilot, "No size up to 16 nodes stays within 1 s")
        app.screen.query_one("#deadline", Input).value = "soon"
        await sees(pilot, "'soon' is not a duration")
        app.screen.query_one("#deadline", Input).value = ""
        await pilot.press("B", "minus", "1")
        await sees(pilot, "'-1' is not an amount")
        app.screen.query_one("#budget", Input).value = ""
        await pilot.press("enter", "W")
        app.screen.query_one("#samples", Input).value = "1000000"
        await sees(pilot, r"are for 1,000,000 samples;")
        # A third size arrives: the screen says so by itself.
        new = trained("vit-4n-000004", 4, runs[0].id)
        app.runs.history.begin(new)
        app.runs.history.metrics.add(new.id, lines_of([3500.0] * 20, 32, 1024, 60_000))
        await sees(pilot, r"4 +32 +3,500")
        await pilot.resize_terminal(120, 24)
        await sees(pilot, r"1,940 +1,900-1,980 +1.94 x +97 %")
        await pilot.resize_terminal(40, 10)
        await sees(pilot, "nodes +GPUs")
        await pilot.press("enter", "escape")
        await until(pilot, lambda: isinstance(app.screen, RunsScreen), "the way back")


async def test_a_goal_decides_the_size_that_plus_opens(settings: Settings) -> None:
    app = LumiApp(settings)
    runs = train(app.runs.history, {1: 1000.0, 2: 1940.0, 4: 3700.0})
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: runs[0].id in shown(pilot), "the runs")
        app.open_scaling(runs[0].id)
        for work, deadline, nodes in (("", "", "2"), ("1000000", "500s", "4")):
            await until(pilot, lambda: isinstance(app.screen, ScalingScreen), "the screen")
            await sees(pilot, "Take ")
            app.screen.query_one("#samples", Input).value = work
            app.screen.query_one("#deadline", Input).value = deadline
            await sees(pilot, "Take 4" if deadline else "Take 1")
            await pilot.press("+")
            await until(pilot, lambda: isinstance(app.screen, ResubmitDialog), "the dialog")
            assert app.screen.query_one("#nodes", Input).value == nodes
            await pilot.press("escape")


async def test_a_range_has_both_ends_and_a_long_id_an_ellipsis(settings: Settings) -> None:
    app = LumiApp(settings)
    train(app.runs.history, {1: 17_200.0, 2: 9_210.0})
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("S")
        await sees(pilot, r"○ range [\d.,]+-[\d.,]+ ")
        await sees(pilot, r"★ 1 +8 +17,200 .* (vit-1n-000001|vi\S*…\S*001)\n")


def test_work_is_read_as_people_write_it() -> None:
    assert asked_work("") == ScalingQuestion() and asked_work("1,000") == ScalingQuestion(
        samples=1000
    )
    assert asked_work("epoch") == asked_work(" 1 epoch") == ScalingQuestion(epochs=1)
    assert asked_work("3 epochs") == ScalingQuestion(epochs=3)
    assert asked_work("10x") == ScalingQuestion(times=10)
    assert asked_work("0.5 x") == ScalingQuestion(times=0.5)
    for wrong in ("0", "0x", "x", "0 epochs", "-1", "many", "1" * 16):
        with pytest.raises(InputError, match="is not a number of samples"):
            asked_work(wrong)


async def test_runs_are_shown_beside_each_other(settings: Settings) -> None:
    app = LumiApp(settings)
    for number, nodes in enumerate((1, 4)):
        run = a_run(f"vit-{nodes}n", state=State.DONE, job_id="7", created=float(number))
        spec = run.spec.model_copy(update={"nodes": nodes})
        app.runs.history.begin(replace(run, spec=spec, script=f"#SBATCH --nodes={nodes}\n[b]\n"))
        steps = [{"step": at, "loss": 1 / (at + number)} for at in range(1, 30)]
        app.runs.history.metrics.add(run.id, [json.dumps(one).encode() for one in steps], (0, 9))
    async with app.run_test(size=(80, 50)) as pilot:
        app.open_compare(("vit-1n", "vit-4n"))
        await sees(pilot, "a vit-1n +done.*\n│ +b vit-4n +done")
        await sees(pilot, r" a +b +b / a │?[\s\S]*nodes +1 +4 +4 x ")
        await sees(pilot, r"loss +0.034483 +0.033333 +0.967 x")
        values = r"last  a vit-1n 0.03\d+ +b vit-4n 0.03\d+"
        await sees(pilot, rf"─ loss ─+╮[ │\n]+{values}[ │]*\n[\s\S]* 5 +10 +15 ")
        await sees(pilot, r"\+#SBATCH --nodes=4")
        await sees(pilot, "The code of vit-1n is unknown:")
        assert "samples/s" not in shown(pilot), "what has no values is not shown"
        await pilot.press("escape")
        app.open_compare(("vit-1n",))
        await sees(pilot, "1 run cannot be compared")
