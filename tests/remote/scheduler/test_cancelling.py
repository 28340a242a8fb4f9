"""A cancel in Slurm counts only when the queue confirms it, and an id alone ends nobody."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import OutcomeUnknown
from tests.support.jobs.scheduler_bench import Bench, Run

pytestmark = [pytest.mark.cluster, pytest.mark.both_slurms]

AWAY = "Unable to contact slurm controller (connect failure)"


@pytest.fixture
def running(slurm: Bench) -> Iterator[Run]:
    """A run whose job runs."""
    run = slurm.run("echo trained; exec sleep 100")
    run.submit()
    run.until_log("trained")
    yield run
    slurm.transport.before = ""
    slurm.here(f"scancel {run.watch.job_id}")


@pytest.mark.parametrize(
    "squeue",
    [
        ":",
        f"echo 'slurm_load_jobs error: {AWAY}' >&2; return 1",
        'command squeue "$@" | head -c -20',
        'command squeue "$@" | head -c 40',
        'command squeue "$@"; return 1',
        "echo 'Fehler: Die Warteschlange antwortet nicht.'",
        "echo '8001|RUNNING'",
    ],
)
def test_a_job_is_cancelled_without_a_list_of_jobs_and_that_is_not_confirmed(
    running: Run, squeue: str
) -> None:
    running.bench.transport.before = f"squeue() {{ {squeue}; }}"
    with pytest.raises(OutcomeUnknown, match="squeue gave no list of jobs"):
        running.cancel()
    running.bench.transport.before = ""
    running.until(State.CANCELLED)
    assert running.here("ls cancelled") == "cancelled\n"
    assert running.cancel() == frozenset()


def test_words_of_squeue_beside_a_whole_list_change_nothing(running: Run) -> None:
    words = "squeue: warning: the license of the cluster ends soon"
    running.bench.transport.before = f'squeue() {{ echo "{words}" >&2; command squeue "$@"; }}'
    assert running.cancel() == frozenset()


def test_a_revoked_job_is_not_cancelled_for_good(running: Run) -> None:
    """A federation's word for a job that another of its clusters runs."""
    running.bench.transport.before = 'squeue() { command squeue "$@" | sed s/RUNNING/REVOKED/; }'
    poll = running.bench.scheduler.poll([running.watch])
    assert poll.jobs[running.watch.run].state is State.UNKNOWN
    running.bench.transport.before += '; scancel() { echo "$@" >>asked; }'
    with pytest.raises(OutcomeUnknown, match=r"still lists job [0-9]* as REVOKED"):
        running.cancel()


def test_without_a_mark_a_job_that_is_being_ended_may_start_again(running: Run) -> None:
    running.bench.transport.before = (
        'squeue() { command squeue "$@" | sed s/CANCELLED/COMPLETING/; }'
    )
    running.here("mv ../$(basename $PWD) ../away")
    try:
        with pytest.raises(OutcomeUnknown, match="no mark could be made"):
            running.cancel()
    finally:
        running.bench.here(f"mv {running.bench.root}/away {running.submission.folder}")


def test_a_stranger_s_job_in_the_run_s_folder_with_its_id_goes_on(running: Run) -> None:
    """A controller that lost its state gave the id to a job that was started by hand there."""
    options = "-A project_462000001 -p small-g -t 5 -n 1 --mem=100M -o /dev/null -J plot"
    other = running.here(f"sbatch --parsable {options} --wrap 'exec sleep 100'").strip()
    stale = replace(running, watch=replace(running.watch, run="lost-000001", token="none"))
    stale.watch = replace(stale.watch, job_id=other)
    try:
        running.cancel()
        running.here("rm attempt-1.claim")  # the folder is now the lost run's
        (words,) = running.bench.scheduler.cancel([stale.watch]).values()
        assert f"{other} now belongs to another job (plot), which keeps running" in words
        said = running.here(f"squeue -h -t all -j {other} -o %T").strip()
        assert said in ("PENDING", "RUNNING")
    finally:
        running.here(f"scancel {other}")


def test_a_stranger_s_job_that_has_the_run_s_name_alone_goes_on(running: Run) -> None:
    options = "-A project_462000001 -p small-g -t 5 -n 1 --mem=100M -o /dev/null --chdir=/tmp"
    named = f"--job-name={running.watch.run}"
    other = running.here(f"sbatch --parsable {options} {named} --wrap 'exec sleep 100'").strip()
    try:
        running.cancel()
        said = running.here(f"squeue -h -t all -j {other} -o %T").strip()
        assert said in ("PENDING", "RUNNING")
    finally:
        running.here(f"scancel {other}")


def test_the_name_is_checked_where_the_queue_does_not_answer(running: Run, slurm: Bench) -> None:
    stale = replace(running.watch, run="lost-000001", token="none", folder=f"{slurm.root}/none")
    slurm.transport.before = "squeue() { :; }"
    with pytest.raises(OutcomeUnknown):
        slurm.scheduler.cancel([stale])
    slurm.transport.before = ""
    assert running.until(State.RUNNING)
