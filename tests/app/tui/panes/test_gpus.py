"""The pane with the GPUs of a job: read when it opens, idle ones first, or a sentence."""

from dataclasses import replace

import pytest

from lumitui.app.follow.sites.cluster_overviews import Clusters, RunGpus
from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.screens.run_screen import RunScreen
from lumitui.remote.scheduler.job_step import GpuReading
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import RefusedError
from tests.support.jobs.binding.binding_reports import EXACT
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import sees, until


async def test_the_gpus_of_a_running_job(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def gpus(_: Clusters, run_id: str) -> RunGpus:
        asked.append(run_id)
        if len(asked) > 1:
            raise RefusedError("The GPUs cannot be read: [/b] busy.", "Try again.")
        pair = [GpuReading("nid005001", 0, 480.0, 5e10, 6.9e10, 100.0)]
        pair += [GpuReading("nid005001", 2, 90.0, 1e7, 6.9e10, 0.0)]
        return RunGpus(tuple(pair), 150.0, 1_700_000_000.0)

    monkeypatch.setattr(Clusters, "gpus", gpus)
    app = LumiApp(settings)
    app.runs.history.begin(a_run("ended-000001", state=State.DONE, created=1.0))
    app.runs.history.begin(a_run("runs-000002", state=State.RUNNING, job_id="41", started=1.0))
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "runs-000002")
        await pilot.press("u")
        await sees(pilot, r"2 GPUs on 1 node, 570 W together\.")
        await sees(pilot, r"GPU 2 on nid005001 draws 90 W: idle\.")
        await sees(pilot, r"(?s)2 +90 W +10 MB of 69 GB +0 % +idle.*0 +480 W")
        await pilot.press("r")
        await sees(pilot, r"\[/b\] busy\. Try again\.")
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1, "the list")
        await pilot.press("j", "u")
        await sees(pilot, "only while it is running; it is done")
        assert asked == ["runs-000002"] * 2


async def test_a_run_on_cpu_is_not_said_to_have_gpus(settings: Settings) -> None:
    app = LumiApp(settings)
    layout = replace(EXACT, nodes=2, on_cpu=True)
    app.runs.history.begin(a_run("cores-000001", state=State.RUNNING, job_id="41", layout=layout))
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(RunScreen(app.runs, "cores-000001", "gpus"))
        await sees(pilot, r"The run has no GPUs: it has 2 nodes, 16 ranks on CPU\.")
