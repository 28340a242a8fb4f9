"""When both runs of the demo have ended well, the screen that compares them opens."""

from dataclasses import replace
from pathlib import Path

from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.screens.scaling_screen import ScalingScreen
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import SPEC, a_run
from tests.support.program.driven_tui import until


async def test_the_demo_ends_with_how_it_scales(settings: Settings, project: Path) -> None:
    app = LumiApp(settings, project / "job.yaml", demo=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        history = app.runs.history
        later = {"project": str(project), "created": 4e9, "state": State.DONE, "job_id": "41"}
        first = a_run("demo-000001", **later)
        spec = SPEC.model_copy(update={"nodes": 2 * SPEC.nodes})
        layout = replace(first.layout, nodes=spec.nodes)
        second = a_run("demo-000002", parent=first.id, spec=spec, layout=layout, **later)
        history.begin(first)
        # Neither another project's, nor one that failed, nor one of the same size.
        history.begin(replace(second, id="demo-000003", project="/elsewhere"))
        history.begin(replace(second, id="demo-000004", state=State.FAILED))
        history.begin(replace(first, id="demo-000005", parent=first.id))
        await pilot.pause(1.2)
        assert not isinstance(app.screen, ScalingScreen)
        history.begin(second)
        await until(pilot, lambda: isinstance(app.screen, ScalingScreen), "how it scales")
        assert isinstance(app.screen, ScalingScreen) and app.screen.chosen == second.id
        await pilot.press("escape")
        await pilot.pause(1.2)
        assert not isinstance(app.screen, ScalingScreen), "it opens once"
