"""What a poll of a site means for a run."""

import time
from dataclasses import replace

import pytest

from lumitui.app.follow.transitions import ACCOUNTING_SECONDS, HANG_SECONDS, transition
from lumitui.app.history.run import Run
from lumitui.remote.scheduler.scheduler_protocol import (
    ExitFile,
    Hang,
    JobStatus,
    NewRunFiles,
    Poll,
    State,
)
from lumitui.remote.site.states import BY_YOU
from tests.support.jobs.made_runs import a_run

NOW = 1_000_000.0
RUN = replace(a_run(), state=State.RUNNING, job_id="7")


def poll(job: JobStatus | None, files: NewRunFiles | None = None, **more: object) -> Poll:
    jobs = {RUN.id: job} if job else {}
    return Poll(jobs, {RUN.id: files or NewRunFiles()}, clock=NOW, **more)  # type: ignore[arg-type]


def job(word: str, state: State, **more: object) -> JobStatus:
    return JobStatus("7", state, word, **more)  # type: ignore[arg-type]  # keywords of a dataclass


def exit_file(rc: int, rank: int | None = None, attempt: int = 1) -> NewRunFiles:
    return NewRunFiles(exits=(ExitFile(attempt, rc, rank, NOW - 5, started=NOW - 9),))


def test_a_failed_rank_is_taken_from_the_exit_file() -> None:
    changes = transition(RUN, poll(job("FAILED", State.FAILED, ended=NOW), exit_file(7, 3)), NOW)
    assert (changes["state"], changes["rc"], changes["failed_rank"]) == (State.FAILED, 7, 3)
    assert changes["ended"] == NOW


def test_the_schedulers_state_outweighs_an_exit_file() -> None:
    # srun returns after SIGTERM, so that a job over its limit may still write an exit file.
    changes = transition(RUN, poll(job("TIMEOUT", State.TIMEOUT), exit_file(143)), NOW)
    assert changes["state"] is State.TIMEOUT


def test_the_job_that_has_the_claim_is_the_runs_whatever_the_known_one_came_to() -> None:
    # A wrapper submitted twice: job 7 ended at its first line, as job 8 has the claim.
    ended = job("COMPLETED", State.DONE, ended=NOW)
    changes = transition(RUN, poll(ended, NewRunFiles(claim="8", log_sizes={1: 9})), NOW)
    assert changes == {"job_id": "8", "log_sizes": {1: 9}}
    assert transition(RUN, gone(NewRunFiles(claim="8")), NOW) == {"job_id": "8"}


@pytest.mark.parametrize(
    ("state", "said", "reason"),
    [
        (State.RUNNING, NOW - 20, "Rank 9 hangs."),
        (State.RUNNING, None, "Rank 9 hangs."),
        (State.RUNNING, NOW - HANG_SECONDS - 1, "None"),  # the program that said it has ended
        (State.QUEUED, NOW, "None"),  # of an attempt before
        (State.DONE, NOW, "None"),
    ],
)
def test_a_rank_that_hangs_is_the_reason_of_a_running_job(
    state: State, said: float | None, reason: str
) -> None:
    files = NewRunFiles(hang=Hang("Rank 9 hangs.", said))
    changes = transition(RUN, poll(job("X", state, reason="None", nodes="n1"), files), NOW)
    assert changes["reason"] == reason


# -- the queue has forgotten the job


def gone(files: NewRunFiles | None = None, **more: object) -> Poll:
    return poll(None, files, gone=frozenset({RUN.id}), **more)


@pytest.mark.parametrize(("rc", "state"), [(0, State.DONE), (1, State.FAILED)])
@pytest.mark.parametrize("silent", ["", "Slurm accounting storage is disabled"])
def test_a_job_nobody_knows_ends_as_its_exit_file_says(rc: int, state: State, silent: str) -> None:
    changes = transition(RUN, gone(exit_file(rc), silent=silent), NOW)
    assert (changes["state"], changes["rc"]) == (state, rc)
    assert (changes["started"], changes["ended"]) == (NOW - 9, NOW - 5)
    assert (changes["word"], "from the exit file" in changes["reason"]) == ("", True)
    assert silent in changes["reason"]


def test_a_job_nobody_knows_without_an_exit_file_is_unknown_not_failed() -> None:
    changes = transition(RUN, gone(), NOW)
    assert changes["state"] is State.UNKNOWN
    # The last news is still from when the job was seen.
    assert "updated" not in changes
    seen = replace(RUN, updated=NOW)
    later = transition(seen, gone(), NOW + 86_400)["reason"]
    assert later.startswith(f"unknown since {time.strftime('%Y-%m-%d %H:%M', time.localtime(NOW))}")
    assert "folder" in transition(RUN, gone(NewRunFiles(missing=True)), NOW)["reason"]


def test_only_accounting_can_say_who_ended_a_program_by_a_signal() -> None:
    fresh = transition(RUN, gone(exit_file(143)), NOW)
    assert fresh["state"] is State.UNKNOWN
    assert "exits" not in fresh
    late = replace(gone(exit_file(143)), clock=NOW + ACCOUNTING_SECONDS)
    assert transition(RUN, late, NOW)["state"] is State.FAILED


def test_accounting_that_is_late_does_not_make_a_job_run_again() -> None:
    late = job("RUNNING", State.RUNNING, started=NOW - 60, nodes="n1")
    changes = transition(RUN, replace(gone(), jobs={RUN.id: late}), NOW)
    assert (changes["state"], changes["started"]) == (State.UNKNOWN, NOW - 60)
    assert "still reports RUNNING" in changes["reason"]
    # Cancelled while it was being requeued, and no other row follows.
    requeued = job("REQUEUED", State.QUEUED, ended=NOW - 60, nodes="n1")
    assert transition(RUN, replace(gone(), jobs={RUN.id: requeued}), NOW)["state"] is State.UNKNOWN
    requeued = replace(requeued, ended=NOW - ACCOUNTING_SECONDS - 1)
    assert (
        transition(RUN, replace(gone(), jobs={RUN.id: requeued}), NOW)["state"] is State.CANCELLED
    )
    ended = job("TIMEOUT", State.TIMEOUT, ended=NOW, nodes="n1")
    assert transition(RUN, replace(gone(), jobs={RUN.id: ended}), NOW)["state"] is State.TIMEOUT


def test_nothing_changes_when_the_scheduler_could_not_be_asked() -> None:
    changes = transition(RUN, poll(None, warning="slurm_load_jobs error"), NOW)
    assert "state" not in changes
    assert "updated" not in changes
    # Not even by an exit file: the job may be running its next attempt.
    changes = transition(RUN, poll(None, exit_file(1), warning="slurm_load_jobs error"), NOW)
    assert "state" not in changes


# -- attempts


@pytest.mark.parametrize(
    ("word", "state"), [("NODE_FAIL", State.NODE_FAILED), ("PREEMPTED", State.PREEMPTED)]
)
def test_an_end_that_the_scheduler_reports_counts_at_once(word: str, state: State) -> None:
    assert transition(RUN, poll(job(word, state, ended=NOW - 1, nodes="n1")), NOW)["state"] is state


def test_files_of_an_attempt_do_not_count_for_the_next() -> None:
    files = replace(exit_file(143, attempt=1), log_sizes={1: 9, 2: 9})
    again = transition(RUN, poll(job("RUNNING", State.RUNNING, started=NOW), files), NOW)
    assert (again["attempt"], again["exits"], again["rc"]) == (2, 1, None)
    # It was killed in its second attempt, which wrote no exit file.
    second = replace(RUN, attempt=2, exits=1)
    for found in (files, NewRunFiles(log_sizes={1: 9, 2: 9})):
        ended = transition(second, poll(job("FAILED", State.FAILED, nodes="n1"), found), NOW)
        assert (ended["state"], ended["rc"], ended["failed_rank"]) == (State.FAILED, None, None)
        assert transition(second, gone(found), NOW)["state"] is State.UNKNOWN


def test_an_exit_file_older_than_the_jobs_start_is_an_earlier_attempts() -> None:
    # The second attempt ended before its first line: it has no log of its own.
    started = job("FAILED", State.FAILED, started=NOW + 60, ended=NOW + 60, nodes="n1")
    assert transition(RUN, poll(started, exit_file(143)), NOW)["rc"] is None
    soon = replace(started, started=NOW - 6)
    assert transition(RUN, poll(soon, exit_file(143)), NOW)["rc"] == 143


def test_a_job_that_waits_again_has_not_started() -> None:
    run = replace(RUN, started=NOW - 60, ended=NOW, rc=1, nodes_used="n1")
    changes = transition(
        run, poll(job("PENDING", State.QUEUED, started=NOW + 60), exit_file(143)), NOW
    )
    for name in ("started", "ended", "rc"):
        assert changes[name] is None
    assert changes["nodes_used"] == ""


def test_the_exit_file_is_read_until_it_has_decided_the_end() -> None:
    finishing = job("COMPLETING", State.FINISHING, nodes="n1")
    assert "exits" not in transition(RUN, poll(finishing, exit_file(7, 3)), NOW)
    ended = transition(RUN, poll(job("FAILED", State.FAILED, nodes="n1"), exit_file(7, 3)), NOW)
    assert ended["exits"] == 1


# -- words and times


def test_a_job_cancelled_while_it_waited_never_started() -> None:
    # squeue gives the time of the cancel as its start, and still the reason why it waited.
    waited = job("CANCELLED", State.CANCELLED, started=NOW, ended=NOW, reason="Priority")
    changes = transition(RUN, poll(waited), NOW)
    assert (changes["started"], changes["ended"]) == (None, NOW)
    assert changes["reason"] == "before it started"
    again = transition(RUN, poll(waited, exit_file(85)), NOW)
    assert again["reason"] == "before attempt 2 started", "it has trained"


def test_a_job_that_its_owner_cancelled_says_so_whatever_squeue_calls_it() -> None:
    mine = replace(RUN, state=State.RUNNING, reason=BY_YOU)
    finishing = job("COMPLETING", State.FINISHING, nodes="n1", reason="None")
    assert transition(mine, poll(finishing), NOW)["reason"] == BY_YOU
    gone = job("CANCELLED", State.CANCELLED, nodes="n1", started=NOW - 60, ended=NOW, reason="None")
    assert transition(mine, poll(gone), NOW)["reason"] == BY_YOU
    failed = job("FAILED", State.FAILED, nodes="n1", reason="NonZeroExitCode")
    assert transition(mine, poll(failed), NOW)["reason"] == "NonZeroExitCode", "it ended before"


@pytest.mark.parametrize("code", [1, 127, 137, 200, 255])
def test_an_exit_code_above_128_stays_whole(code: int) -> None:
    # 25.11: before, sacct showed 137 as 9 of a signal.
    ended = replace(job("FAILED", State.FAILED, nodes="n1"), exit_code=f"{code}:0")
    assert transition(RUN, poll(ended), NOW)["rc"] == code


def test_a_step_out_of_memory_is_the_runs_end() -> None:
    files = NewRunFiles(exits=(ExitFile(1, 137, 3, NOW - 5, oom=True),))
    changes = transition(RUN, poll(job("FAILED", State.FAILED, nodes="n1"), files), NOW)
    assert (changes["state"], changes["rc"], changes["failed_rank"]) == (
        State.OUT_OF_MEMORY,
        137,
        3,
    )
    assert "task 3 ran out of memory" in changes["reason"]


def test_the_time_limit_of_a_running_job_is_not_its_end() -> None:
    changes = transition(RUN, poll(job("RUNNING", State.RUNNING, started=NOW, ended=NOW + 60)), NOW)
    assert changes["ended"] is None
    assert changes["started"] == NOW


def test_expected_start_and_end_are_kept_until_they_have_come() -> None:
    queued = replace(RUN, state=State.QUEUED)
    waits = job("PENDING", State.QUEUED, started=NOW + 60, ended=NOW + 3660, reason="Resources")
    changes = transition(queued, poll(waits), NOW)
    assert (changes["started"], changes["ended"]) == (None, None)
    assert (changes["expected_start"], changes["expected_end"]) == (NOW + 60, NOW + 3660)
    runs = job("RUNNING", State.RUNNING, started=NOW, ended=NOW + 3600, nodes="n1")
    changes = transition(queued, poll(runs), NOW)
    assert (changes["started"], changes["ended"]) == (NOW, None)
    assert (changes["expected_start"], changes["expected_end"]) == (None, NOW + 3600)
    done = job("COMPLETED", State.DONE, started=NOW, ended=NOW + 9, nodes="n1")
    changes = transition(queued, poll(done), NOW)
    assert changes["ended"] == NOW + 9
    assert (changes["expected_start"], changes["expected_end"]) == (None, None)


def test_a_second_attempt_is_noticed_by_its_log() -> None:
    files = NewRunFiles(log_sizes={1: 10, 2: 5})
    changes = transition(RUN, poll(job("RUNNING", State.RUNNING), files), NOW)
    assert changes["attempt"] == 2


@pytest.mark.parametrize("new", [None, "[]"])
def test_a_second_attempt_does_not_have_the_proof_of_the_first(new: str | None) -> None:
    known = replace(RUN, binding="[first]")
    files = NewRunFiles(log_sizes={1: 10, 2: 5}, binding=new)
    assert transition(known, poll(job("RUNNING", State.RUNNING), files), NOW)["binding"] == new
    same = transition(
        known, poll(job("RUNNING", State.RUNNING), NewRunFiles(log_sizes={1: 10})), NOW
    )
    assert "binding" not in same


def test_a_run_without_news_says_so() -> None:
    unrelated: Run = replace(RUN, id="other-000000")
    assert transition(unrelated, poll(job("RUNNING", State.RUNNING)), NOW) == {}
    changes = transition(RUN, poll(job("RUNNING", State.RUNNING)), NOW)
    assert changes["state"] is State.RUNNING
    assert "attempt" not in changes
