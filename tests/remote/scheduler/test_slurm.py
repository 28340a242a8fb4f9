"""What only Slurm has: log patterns, accounting, variables of sbatch, hidden partitions."""

import time
from functools import partial

import pytest

from lumitui.remote.scheduler.scheduler_protocol import Answer, State
from lumitui.remote.site.states import BY_YOU
from tests.support.jobs.scheduler_bench import LIMIT, Bench
from tests.support.servers.cluster import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.both_slurms]


@pytest.mark.parametrize("name", ["run %j", "run \\n", "100%"])
def test_a_folder_whose_log_slurm_cannot_write_is_refused_before(slurm: Bench, name: str) -> None:
    run = slurm.run("true", folder=name)
    answer = run.submit()
    assert answer.state is State.NOT_SENT
    assert name[-1 if name == "100%" else 4] in answer.message
    assert run.settle().state is State.NOT_SENT
    assert slurm.jobs(run) == 0


def test_a_job_that_left_the_queue_is_found_by_accounting(slurm: Bench) -> None:
    run = slurm.run("exit 3")
    answer = run.submit()
    run.until(State.FAILED)
    # A job leaves squeue MinJobAge (5 minutes) after its end: here at once.
    slurm.transport.before = "squeue() { :; }"
    try:
        poll = run.until(State.FAILED)
        job = poll.jobs[run.watch.run]
        assert job.exit_code == "3:0"
        assert job.started
        assert job.ended
        run.here("rm -f attempt-1.receipt attempt-1.claim")
        assert run.settle().state is State.UNKNOWN
        # By its name only some seconds later: until then its eligible time is unknown (22.05).
        deadline = time.monotonic() + LIMIT
        while run.settle(deep=True).state is State.UNKNOWN:
            assert time.monotonic() < deadline
            time.sleep(0.5)
        assert run.settle(deep=True, void=True) == Answer(State.QUEUED, answer.job_id)
    finally:
        slurm.transport.before = ""


def test_accounting_is_asked_from_a_day_before_the_submission_by_the_site_s_clock(
    slurm: Bench,
) -> None:
    run = slurm.run("true")
    run.submit()
    run.until(State.DONE)
    slurm.transport.before = f'squeue() {{ :; }}; sacct() {{ echo "$@" >{slurm.root}/asked; }}'
    for note, least in (("1 uan01 $(($(date +%s) - 5000))", 5000), ("", 2_592_000)):
        run.here(f'echo "{note}" >attempt-1.submit/shell')
        try:
            slurm.scheduler.poll([run.watch])
        finally:
            words = slurm.here(f"cat {slurm.root}/asked").split()
        since = words[words.index("-S") + 1]
        assert since.startswith("now-")
        assert least + 86_400 <= int(since.removeprefix("now-")) <= least + 86_460
    slurm.transport.before = ""


@pytest.mark.both_slurms
def test_accounting_says_that_its_owner_cancelled_a_job(slurm: Bench) -> None:
    run = slurm.run("sleep 60")
    run.submit()
    run.until(State.RUNNING)
    run.cancel()
    run.until(State.CANCELLED)
    slurm.transport.before = "squeue() { :; }"
    deadline = time.monotonic() + LIMIT
    poll_again = partial(slurm.scheduler.poll, [run.watch])
    try:
        # Accounting has the end before it has who ended it.
        while not any(one.reason == BY_YOU for one in poll_again().jobs.values()):
            assert time.monotonic() < deadline
            time.sleep(0.5)
    finally:
        slurm.transport.before = ""


def test_a_persons_variables_of_sbatch_change_nothing(slurm: Bench) -> None:
    """They override the lines that the preview showed: another account would be billed."""
    run = slurm.run("true")
    variables = (
        "SBATCH_ACCOUNT=project_462000002 SBATCH_WAIT=1 SBATCH_EXPORT=NONE SBATCH_TIMELIMIT=1 "
        "SLURM_EXPORT_ENV=NONE SLURM_HINT=multithread SRUN_CPUS_PER_TASK=9"
    )
    slurm.transport.before = f"export {variables}"
    try:
        answer = run.submit()
    finally:
        slurm.transport.before = ""
    assert answer.job_id, answer
    run.until(State.DONE)
    queue = f"squeue --me -h -t all -j {answer.job_id} -o '%a %l'"
    assert slurm.transport.below.run(queue).text == "project_462000001 5:00\n"


def test_a_persons_variables_hide_no_job_and_save_none_from_a_cancel(slurm: Bench) -> None:
    run = slurm.run("exec sleep 60")
    slurm.transport.before = (
        "export SQUEUE_QOS=high SQUEUE_STATES=PD SCANCEL_STATE=PENDING SCANCEL_INTERACTIVE=true"
    )
    try:
        job_id = run.submit().job_id
        run.until(State.RUNNING)
        assert run.settle().job_id == job_id
        run.cancel()
        run.until(State.CANCELLED)
    finally:
        slurm.transport.before = ""


def test_jobs_in_a_hidden_partition_are_seen(slurm: Bench, cluster: Cluster) -> None:
    run = slurm.run("exec sleep 60")
    cluster.admin("scontrol", "update", "partitionname=small-g", "hidden=yes")
    try:
        run.submit()
        poll = run.until(State.RUNNING)
        assert poll.gone == frozenset(), "accounting alone knew it"
        run.cancel()
        run.until(State.CANCELLED)
    finally:
        cluster.admin("scontrol", "update", "partitionname=small-g", "hidden=no")


def test_a_login_file_does_not_take_the_environment_from_the_ranks(slurm: Bench) -> None:
    run = slurm.run('echo "in $RUN_DIR"')
    slurm.here("echo 'export SLURM_EXPORT_ENV=NONE' >>~/.bash_profile")
    try:
        run.submit()
        run.until(State.DONE)
    finally:
        slurm.here("sed -i '/SLURM_EXPORT_ENV/d' ~/.bash_profile")
    assert f"in {run.submission.folder}" in run.log()
