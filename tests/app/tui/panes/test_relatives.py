"""The panes of a run: Overview, Timeline and Lineage with its relatives, and its GPUs."""

import json
from dataclasses import replace
from threading import Event

import pytest

from lumitui.app.follow.sites.cluster_overviews import Clusters, RunGpus
from lumitui.app.history.run import AttemptRecord
from lumitui.app.job.settings import Settings
from lumitui.app.scale.lineage_overview import Overviews, RunOverview
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.panes.overview_pane import OverviewPane
from lumitui.app.tui.screens.run_screen import RunScreen
from lumitui.remote.scheduler.job_step import GpuReading
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import RefusedError
from tests.support.jobs.binding.binding_reports import EXACT
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import sees, until


def trained(app: LumiApp, run_id: str, parent: str | None, nodes: int, speed: float) -> None:
    """Put a run into the history that is done and has metrics."""
    run = a_run(run_id, parent=parent, state=State.DONE, job_id="7", created=1000.0 + nodes,
                submitted=1100.0, started=1200.0, ended=2200.0)  # fmt: skip
    app.runs.history.begin(replace(run, layout=replace(run.layout, nodes=nodes)))
    lines = [{"event": "start", "time": 1210.0, "world_size": 8 * nodes}]
    lines += [
        {"step": step, "loss": 1 / step, "samples_per_s": speed, "seconds": float(step)}
        for step in range(1, 20)
    ]
    app.runs.history.metrics.add(run_id, [json.dumps(line).encode() for line in lines], (0, 9))


async def test_a_run_is_shown_with_its_relatives_and_read_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = LumiApp(settings)
    trained(app, "vit-1n", None, 1, 100.0)
    trained(app, "vit-4n", "vit-1n", 4, 376.0)
    gathered: list[str] = []
    of = Overviews.of

    def counted(self: Overviews, run_id: str) -> RunOverview:
        gathered.append(run_id)
        return of(self, run_id)

    monkeypatch.setattr(Overviews, "of", counted)
    async with app.run_test(size=(120, 35)) as pilot:
        screen = RunScreen(app.runs, "vit-4n")
        app.push_screen(screen)
        await sees(pilot, "efficiency +94 % of vit-1n: 3.76 x its throughput, 1 to 4 nodes")
        await sees(pilot, "loss +[▁-▇]+ .* after 19 steps")
        await sees(pilot, r"job +7, attempt 1 {5,}\w+ +\w")  # two columns of facts
        pane = screen.query_one(OverviewPane)
        # Text keeps its width when the scrollbar comes: it is laid out again for its height only.
        assert not pane.show_vertical_scrollbar
        assert pane.scrollable_content_region.width < pane.container_size.width
        drawn = pane.query_one(".facts")
        monkeypatch.setattr(drawn, "update", lambda content: pytest.fail("drawn again"))
        # What was begun before may still change the run: a round without it comes soon.
        for _ in range(20):
            before = len(gathered)
            for _ in range(10):
                screen.draw()
            await pilot.pause(0.1)
            if len(gathered) == before:
                break
        assert len(gathered) == before, "nothing is gathered again while nothing changed"
        await pilot.press("T")
        await sees(pilot, r"\+10 s +program started on 32 ranks")
        await sees(pilot, r"\+1 s +first step 1")
        await pilot.press("right_square_bracket")
        await sees(pilot, r"  vit-4n +done +4 +376 +3.76 x +94 %")
        chosen = app.focused
        await pilot.press("tab")
        assert app.focused is not chosen, "tab moves the focus"
        await sees(pilot, r"  vit-4n +done +4 +376")  # and stays at the pane
        await pilot.press("shift+tab")
        assert app.focused is chosen
        await pilot.press("k", "enter")
        await until(pilot, lambda: getattr(app.screen, "chosen", "") == "vit-1n", "the parent")


async def test_a_run_opened_from_the_list_begins_with_what_its_preview_had_read(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, release = LumiApp(settings), Event()
    trained(app, "vit-1n", None, 1, 100.0)
    app.runs.overviews.of("vit-1n")
    of = Overviews.of

    def slow(self: Overviews, run_id: str) -> RunOverview:
        release.wait(30)
        return of(self, run_id)

    monkeypatch.setattr(Overviews, "of", slow)
    async with app.run_test(size=(100, 30)) as pilot:
        app.push_screen(RunScreen(app.runs, "vit-1n"))
        await sees(pilot, r"proof +not measured")
        release.set()


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
        await sees(pilot, "only while it runs. It is done")
        assert asked == ["runs-000002"] * 2


async def test_a_run_on_cpu_is_not_said_to_have_gpus(settings: Settings) -> None:
    app = LumiApp(settings)
    layout = replace(EXACT, nodes=2, on_cpu=True)
    app.runs.history.begin(a_run("cores-000001", state=State.RUNNING, job_id="41", layout=layout))
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(RunScreen(app.runs, "cores-000001", "gpus"))
        await sees(pilot, r"The run has no GPUs: it has 2 nodes, 16 ranks on CPU\.")


async def test_a_long_event_is_wrapped_in_a_narrow_terminal(settings: Settings) -> None:
    app = LumiApp(settings)
    record = AttemptRecord(1, "7", "nid005001", 1200.0, 2200.0, 85, 348, "used-up")
    run = a_run("vit-1n", state=State.FAILED, job_id="7", created=1000.0, attempts=(record,))
    app.runs.history.begin(run)
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(RunScreen(app.runs, "vit-1n", "timeline"))
        await sees(pilot, r"at step 348 \(348 new\); all +│\n│ +time limits are used")
