"""The `+` key on a real Slurm: a run on one node becomes a run on two, proved on sixteen ranks."""

from pathlib import Path

from textual.widgets import Button

from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.resubmit import ResubmitDialog
from lumitui.app.tui.screens.run import RunScreen
from lumitui.app.tui.widgets.log.log_view import LogView
from lumitui.remote.scheduler.protocol import State
from tests.support.driven_tui import app_of, ended, runs_of, sees, until
from tests.support.home import Home
from tests.support.servers.cluster import Cluster

JOB = """name: sixteen
site: minilumi
account: {account}
partition: standard-g
time: "00:05:00"
launcher: srun
script: where.py
"""

SCRIPT = """
import os
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], sorted(os.sched_getaffinity(0)))
print("[rank0]: Traceback is only a word here, [/] too", flush=True)
"""


async def test_plus_makes_two_nodes_of_one(cluster: Cluster, home: Home, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "where.py").write_text(SCRIPT)
    job = project / "job.yaml"
    job.write_text(JOB.format(account=cluster.account))
    home.add_cluster(cluster)
    async with LumiApp(home.settings, job).run_test(size=(100, 30)) as pilot:
        history = app_of(pilot).runs.history
        await sees(pilot, "1 node, 8 ranks, 8 GPUs")
        await pilot.press("s", "y")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "the run", 60)
        (first,) = runs_of(pilot)
        assert (await ended(pilot, first.id)).state is State.DONE

        await pilot.press("1", "+")
        await until(pilot, lambda: isinstance(pilot.app.screen, ResubmitDialog), "the dialog")
        await sees(pilot, "nodes +1 +2")
        await sees(pilot, "ranks +8 +16")
        button = pilot.app.screen.query_one("#yes", Button)
        await until(pilot, lambda: not button.disabled, "a plan that can be sent")
        await pilot.press("enter", "enter")
        await until(pilot, lambda: len(runs_of(pilot)) == 2, "a second run", 60)
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "its screen", 60)
        child = runs_of(pilot)[0]
        assert (child.parent, child.layout.world_size) == (first.id, 16)
        await pilot.press("l")
        view = pilot.app.screen.query_one(LogView)
        assert (await ended(pilot, child.id)).state is State.DONE
        ranks = [f"rank {rank} of 16" for rank in range(16)]
        await until(
            pilot, lambda: all(rank in "\n".join(view.lines) for rank in ranks), "sixteen ranks"
        )
        assert "[rank0]: Traceback is only a word here, [/] too" in "\n".join(view.lines)
        await until(pilot, lambda: history.get(child.id).binding, "the proof")
        await pilot.press("p")
        await sees(pilot, "proved")
        table = app_of(pilot).runs.proof(history.get(child.id))
        assert "proved" in str(table)
