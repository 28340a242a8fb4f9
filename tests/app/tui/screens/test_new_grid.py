"""A grid that ended in the middle is offered again: the TUI sends the rest after one yes."""

import json
import time
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from lumitui.app.history.listing.series_runs import RunSeries, SeriesMember
from lumitui.app.history.run import Run
from lumitui.app.job.settings import Settings
from lumitui.app.launch.send.preview import Preview
from lumitui.app.runs import Runs
from lumitui.app.tui.app import LumiApp
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import LinkError
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import (
    JOB,
    app_of,
    cut_off,
    sees,
    until,
)


def toasts(pilot: Pilot[int]) -> list[str]:
    return [toast.message for toast in app_of(pilot)._notifications if "Press U" in toast.message]


async def test_the_rest_of_a_grid_is_offered_after_a_failure_and_at_the_next_start(
    settings: Settings, project: Path
) -> None:
    job = project / "grid.yaml"
    job.write_text(JOB.format(launcher="srun", args="") + "grid: {env.SEED: ['1', '2', '3']}\n")
    runs, tried = Runs(settings), list[str]()
    send = runs.send

    def failing(preview: Preview, **rest: Any) -> Run:
        tried.append(preview.cell)
        if len(tried) == 2:
            raise LinkError("The link was lost.", "Look at the network.")
        return send(preview, **rest)

    runs.send = failing  # type: ignore[method-assign]
    async with LumiApp(settings, job, runs=runs).run_test(size=(80, 24)) as pilot:
        await sees(pilot, "sends 3 runs  billed nothing")
        await pilot.press("ctrl+s")
        await sees(pilot, r"requests +1 node, [\s\S]* local [\s\S]*time +at most[\s\S]*code +\d")
        await sees(pilot, "run 2 +env.SEED=2, nothing")
        await sees(pilot, "all +3 runs, nothing")
        await pilot.press("y")
        await sees(pilot, "Press U")
        await pilot.press("enter", "U")
        await sees(pilot, "Send the other 2 runs of hello-")
        await sees(pilot, "stopped +env.SEED=2: The link was lost.")
        await sees(pilot, "sent +1 of 3: hello-")
        await sees(pilot, "not sent +env.SEED=2, env.SEED=3")
        assert not cut_off(pilot)
    async with LumiApp(settings, job, runs=runs).run_test(size=(80, 24)) as pilot:
        await sees(pilot, "sends 3 runs  billed nothing")
        await pilot.press("ctrl+s")
        await sees(pilot, "earlier +hello-[0-9a-f]+: 1 of 3 runs was ")
        await sees(pilot, r"This sends all\W+runs again\.")
        assert not cut_off(pilot)
        await pilot.press("n")
    async with LumiApp(settings, runs=runs).run_test(size=(80, 24)) as pilot:  # not answered: again
        await until(pilot, lambda: toasts(pilot), "what is left")
        assert "1 of 3 runs was sent, 2 were not. Press U" in " ".join(toasts(pilot))
        await pilot.press("y")  # meant for another question: no question opens by itself
        assert not app_of(pilot).screen.is_modal and len(tried) == 2
        await pilot.press("U")
        await sees(pilot, "Send the other 2 runs of hello-")
        # What is left changes behind the question: it is asked anew, and nothing is sent.
        (left,) = runs.series.unsent()
        runs.history.begin(a_run("other-1", site="laptop", state=State.DONE))
        runs.history.series.claim(left.series.id, 3, "other-1")
        await sees(pilot, "Send the other 1 run of hello-")
        assert len(tried) == 2
        await pilot.press("y")
        await until(pilot, lambda: len(tried) == 3, "the rest")
        await until(pilot, lambda: not app_of(pilot).under_way, "the end")
        assert tried[1] == tried[2] == "env.SEED=2"
        assert runs.history.series.offered() == []
        # What can no longer be sent is said once, not at each start.
        spec = {"name": "a", "site": "gone", "partition": "p", "time": "1:00", "script": "a.py"}
        plan = json.dumps({"spec": spec, "folder": str(project), "job_file": None})
        members = (SeriesMember(1, "SEED=1", plan), SeriesMember(2, "SEED=2", plan))
        runs.history.series.begin(RunSeries("gone-1", "grid", "gone", "", time.time(), members))
        app_of(pilot).sends.ask_for_rest()
        await sees(pilot, "gone-1: 0 of 2 runs were sent")
        await sees(pilot, "gone. is not a site")
        assert runs.history.series.offered() == []
    runs.close()
