"""The screen Compare: facts, curves and scripts of several runs, told apart without colour."""

import json
from dataclasses import replace

from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import sees, shown


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
        await sees(pilot, r"loss +0.03448 +0.03333 +0.967 x")
        await sees(
            pilot, r"─ loss ─+╮[ │\n]+a vit-1n 0.03\d+ +b vit-4n 0.03\d+[ │]*\n[\s\S]* 5 +10 +15 "
        )
        await sees(pilot, r"\+#SBATCH --nodes=4")
        await sees(pilot, "The code of vit-1n is unknown:")
        assert "samples/s" not in shown(pilot), "what has no values is not shown"
        await pilot.press("escape")
        app.open_compare(("vit-1n",))
        await sees(pilot, "1 run cannot be compared")
