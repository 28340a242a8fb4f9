"""What a look at a site means for a run."""

from dataclasses import replace

import pytest

from lumitui.app.following import REQUEUE_SECONDS, judge
from lumitui.app.records import Run
from lumitui.remote.scheduler import ExitFile, JobStatus, Poll, RunFiles, State
from tests.runs_made import a_run

NOW = 1_000_000.0
RUN = replace(a_run(), state=State.RUNNING, job_id="7")


def poll(job: JobStatus | None, files: RunFiles | None = None, **more: object) -> Poll:
    jobs = {job.job_id: job} if job else {}
    return Poll(jobs, {RUN.id: files or RunFiles()}, clock=NOW, **more)  # type: ignore[arg-type]


def job(word: str, state: State, **more: object) -> JobStatus:
    return JobStatus("7", state, word, **more)  # type: ignore[arg-type]  # keywords of a dataclass


def exit_file(rc: int, rank: int | None = None, attempt: int = 1) -> RunFiles:
    return RunFiles(exits=(ExitFile(attempt, rc, rank, NOW - 5),))


def test_a_failed_rank_is_taken_from_the_exit_file() -> None:
    changes = judge(RUN, poll(job("FAILED", State.FAILED, ended=NOW), exit_file(7, 3)), NOW)
    assert (changes["state"], changes["rc"], changes["failed_rank"]) == (State.FAILED, 7, 3)
    assert changes["ended"] == NOW


def test_the_schedulers_state_outweighs_an_exit_file() -> None:
    # srun returns after SIGTERM, so that a job over its limit may still write an exit file.
    changes = judge(RUN, poll(job("TIMEOUT", State.TIMEOUT), exit_file(143)), NOW)
    assert changes["state"] is State.TIMEOUT


@pytest.mark.parametrize(("rc", "state"), [(0, State.DONE), (1, State.FAILED)])
def test_a_job_nobody_knows_is_judged_by_its_exit_file(rc: int, state: State) -> None:
    assert judge(RUN, poll(None, exit_file(rc)), NOW)["state"] is state


def test_a_job_nobody_knows_without_an_exit_file_is_unknown_not_failed() -> None:
    assert judge(RUN, poll(None), NOW)["state"] is State.UNKNOWN


def test_nothing_changes_when_the_scheduler_could_not_be_asked() -> None:
    changes = judge(RUN, poll(None, warning="slurm_load_jobs error"), NOW)
    assert "state" not in changes
    assert "updated" not in changes


@pytest.mark.parametrize("word", ["NODE_FAIL", "PREEMPTED"])
def test_a_job_that_may_be_requeued_has_not_ended_yet(word: str) -> None:
    state = State.NODE_FAILED if word == "NODE_FAIL" else State.PREEMPTED
    fresh = judge(RUN, poll(job(word, state, ended=NOW - 1)), NOW)
    assert not fresh["state"].is_final
    old = judge(RUN, poll(job(word, state, ended=NOW - REQUEUE_SECONDS - 1)), NOW)
    assert old["state"] is state


def test_the_end_of_a_running_jobs_time_is_not_its_end() -> None:
    changes = judge(RUN, poll(job("RUNNING", State.RUNNING, started=NOW, ended=NOW + 60)), NOW)
    assert "ended" not in changes
    assert changes["started"] == NOW


def test_a_second_attempt_is_noticed_by_its_log() -> None:
    files = RunFiles(log_sizes={1: 10, 2: 5})
    changes = judge(RUN, poll(job("RUNNING", State.RUNNING), files), NOW)
    assert changes["attempt"] == 2


def test_a_run_without_news_says_so() -> None:
    unrelated: Run = replace(RUN, id="other-000000")
    changes = judge(unrelated, poll(job("RUNNING", State.RUNNING)), NOW)
    assert changes["state"] is State.RUNNING
    assert "attempt" not in changes
