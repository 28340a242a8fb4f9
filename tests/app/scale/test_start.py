"""Where a resubmitted run begins, by how its parent ended."""

import pytest

from lumitui.app.history.run import AttemptRecord
from lumitui.app.job.launch import Launch
from lumitui.app.scale.run_plan import StartPoint, choose_start
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run

SAVED = AttemptRecord(1, "7", "nid1", 100.0, 160.0, 85, 350, "requeue")
LOST = AttemptRecord(1, "7", "nid1", 100.0, 160.0, end="killed")


@pytest.mark.parametrize(
    ("attempts", "start", "said"),
    [
        ((SAVED,), "checkpoint", ["a-1 was cancelled: it resumes from its last checkpoint."]),
        ((LOST,), "scratch", []),
        ((), "scratch", []),
    ],
)
def test_a_chain_cancelled_between_attempts_continues_from_its_checkpoint(
    attempts: tuple[AttemptRecord, ...], start: StartPoint, said: list[str]
) -> None:
    run = a_run("a-1", state=State.CANCELLED, attempts=attempts)
    launch = Launch(run.spec, run.script, run.layout, run.price, can_resume=True)
    notes: list[str] = []
    assert choose_start(run, launch, None, notes) == start
    assert notes == said
