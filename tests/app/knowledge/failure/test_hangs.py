"""A rank that does not move: what is said of the run while it lasts, and after its end."""

from dataclasses import replace

import pytest

from lumitui.app.explain import row_words, run_overview
from lumitui.app.job.spec import JobSpec
from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import RunEnd
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.failed_logs import why
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import hello_job

NOW = 1_000_000.0
SENTENCE = "Rank 9 on nid005002 has not moved for 62 s; the others wait at step 812."
HUNG = a_run(state=State.RUNNING, job_id="7", started=NOW - 99, updated=NOW, reason=SENTENCE)
TIMEOUT = (
    "[rank{0}]:[E1121 03:01:02.123 ProcessGroupNCCL.cpp:632] [Rank {0}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
    "Timeout(ms)=600000) ran for 600026 milliseconds before timing out."
)


BUNDLED: JobSpec = hello_job().model_copy(update={"script": None, "trainer": "ddp"})


def test_a_running_job_says_everywhere_which_rank_hangs() -> None:
    rows = dict(run_overview.rows(HUNG, NOW, None, None, None))
    assert rows["reason"] == row_words.news(HUNG, NOW) == HUNG.hang == SENTENCE
    assert rows["next"] == run_overview.HANGS
    assert diagnose(RunEnd(State.RUNNING, "RUNNING", SENTENCE))[0].sentence == SENTENCE
    for other in (replace(HUNG, reason="None"), replace(HUNG, state=State.FAILED)):
        assert other.hang == ""
    assert diagnose(RunEnd(State.RUNNING, "RUNNING", "None")) == []


@pytest.mark.parametrize("rc", [1, 88])  # torchrun makes 1 of every code
def test_a_training_that_ended_itself_names_the_rank_that_hung(rc: int) -> None:
    log = f"0: {SENTENCE} The training ends, because `hang:` is set.\n"
    log += "srun: error: nid005001: task 0: Exited with exit code 88\n"
    found = why(log, rc=rc, rank=0, spec=BUNDLED)[0]
    assert (found.id, found.rank) == ("hung", 9)
    assert found.sentence.endswith(f"so it ended itself. Its last report: {SENTENCE}")


def test_a_training_in_which_all_ranks_hung_ended_itself_too() -> None:
    log = "0: No rank has moved for 62 s, at step 8; none is behind. The training ends, because "
    assert why(f"{log}`hang:` is set.\n", rc=1, rank=0, spec=BUNDLED)[0].id == "hung"


def test_a_collective_that_timed_out_names_the_rank_that_hung() -> None:
    log = f"0: {SENTENCE}\n" + "".join(f"{rank}: {TIMEOUT.format(rank)}\n" for rank in (0, 1))
    found = why(log, spec=BUNDLED)[0]
    assert found.id == "collective-timeout" and found.sentence.endswith(SENTENCE)
    moved = log.replace("0: [rank0]", "0: Rank 9 on nid005002 moves again.\n0: [rank0]")
    assert SENTENCE not in why(moved, spec=BUNDLED)[0].sentence


def test_a_rank_that_reports_a_timeout_is_not_blamed_and_its_abort_is_no_second_cause() -> None:
    abort = "5: Fatal Python error: Aborted\nsrun: error: acn01: task 5: Aborted (core dumped)\n"
    report = f"5: {TIMEOUT.format(5)}\n"
    (found,) = why(report + abort, rank=5, world_size=8, spec=BUNDLED)
    assert (found.id, found.rank, found.node) == ("collective-timeout", None, "")
    assert [one.id for one in why(abort + report)] == ["killed-by-signal", "collective-timeout"]


def test_a_rank_that_moved_again_is_no_reason_for_a_later_failure() -> None:
    log = f"0: {SENTENCE}\n0: Rank 9 on nid005002 moves again.\n3: ValueError: no\n"
    assert all(found.id != "hung" for found in why(log, rank=3, spec=BUNDLED))
