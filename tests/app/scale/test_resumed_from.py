"""A resubmission names the run it continues from only when there was something to continue."""

import json
from pathlib import Path

import pytest

from lumitui.app.history.run import Run
from lumitui.app.job.spec import JobSpec
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import RefusedError
from lumitui.remote.site.run_folder import RECORD
from tests.support.jobs.small_jobs import finish, hello_project
from tests.support.program.command_line import LAPTOP


@pytest.fixture
def failed(runs: Runs, tmp_path: Path) -> Run:
    job = JobSpec.model_validate(
        {**LAPTOP, "env": {"FAIL_RANK": "0"}, "resume": ["--resume"], "proof": "off"}
    )
    run = finish(runs, runs.send(runs.preview(job, hello_project(tmp_path / "work"))))
    assert run.state is State.FAILED
    return run


def recorded(run: Run) -> object:
    return json.loads(Path(run.folder, RECORD).read_text())["resumed_from"]


@pytest.mark.parametrize("saved", [False, True])
def test_it_continues_only_from_what_was_saved(runs: Runs, failed: Run, saved: bool) -> None:
    folder = Path(failed.folder, "checkpoints")
    folder.mkdir()
    if saved:
        (folder / "last.pt").write_text("step 7")
    made = runs.plan_resubmission(failed.id)
    assert made.plan.start == "checkpoint"
    again = runs.resubmit(made)
    expected = failed.id if saved else None
    assert (again.parent, again.resumed_from) == (failed.id, expected)
    assert runs.history.get(again.id).resumed_from == expected
    assert recorded(again) == expected
    finish(runs, again)
    assert Path(again.folder, "checkpoints", "last.pt").exists() == saved
    assert not list(Path(again.folder).glob(".record*"))


def test_who_insists_on_a_checkpoint_is_refused_without_one(runs: Runs, failed: Run) -> None:
    Path(failed.folder, "checkpoints").mkdir()
    with pytest.raises(RefusedError, match="no checkpoints"):
        runs.resubmit(runs.plan_resubmission(failed.id, start="checkpoint"))
