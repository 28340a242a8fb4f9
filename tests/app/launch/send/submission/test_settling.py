"""A submission whose reply was lost, on both schedulers: each state of the evidence."""

import hashlib
import time
from dataclasses import replace
from typing import cast

import pytest

from lumitui.app.launch.send.settle import GRACE_SECONDS, settle, submission_of
from lumitui.app.runs import Runs
from lumitui.remote.laptop.scheduler import SUBMIT
from lumitui.remote.scheduler.scheduler_protocol import SBATCH, Answer, Scheduler, State, Submission
from lumitui.remote.site.errors import OutcomeUnknown
from lumitui.remote.site.shell_text import quote
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.scheduler_bench import LIMIT, Bench
from tests.support.servers.cluster import Cluster

pytestmark = pytest.mark.both_slurms


def test_settle_finds_the_job_by_each_evidence(bench: Bench) -> None:
    run = bench.run("echo started; exec sleep 60")
    job_id = run.submit().job_id
    found = Answer(State.QUEUED, job_id)
    assert run.settle() == found
    run.until_log("started")

    run.here("rm attempt-1.receipt")
    assert run.settle() == found
    # The claim alone, when the queue does not answer.
    if bench.kind == "slurm":
        bench.transport.before = "squeue() { echo 'Unable to contact slurm controller'; return 1; }"
    else:
        run.here("mv attempt-1.state hidden")
    assert run.settle() == found
    run.here("mv attempt-1.claim hidden-claim")
    assert run.settle().state is State.UNKNOWN
    # The queue alone.
    bench.transport.before = ""
    run.here("[ ! -f hidden ] || mv hidden attempt-1.state")
    assert run.settle(void=True) == found
    assert run.here("readlink attempt-1.claim || echo none").strip() == "none"
    run.cancel()


def test_nothing_was_sent_and_a_late_submit_does_nothing(bench: Bench) -> None:
    run = bench.run("echo trained")
    assert run.settle().state is State.NOT_SENT
    # Its reply may have been lost: the next one is as certain.
    assert run.settle().state is State.NOT_SENT
    late = run.submit()
    assert late.job_id is None
    assert late.state is not State.REFUSED
    assert run.settle(void=True).state is State.NOT_SENT
    assert bench.jobs(run) == 0


def test_a_lock_alone_is_settled_by_the_void_claim(bench: Bench) -> None:
    run = bench.run("echo trained")
    run.here("mkdir attempt-1.submit; sh -c 'echo \"$$ $(hostname)\"' >attempt-1.submit/shell")
    assert run.settle(deep=True).state is State.UNKNOWN
    assert run.settle(deep=True, void=True).state is State.NOT_SENT
    assert run.settle().state is State.NOT_SENT
    # The submission comes through after all: its job ends at once.
    submission = run.submission
    head = f"RUN={quote(submission.folder)} NAME={submission.name} TOKEN=x\n"
    late = run.here(head + (SUBMIT if bench.kind == "process" else SBATCH))
    run.watch = replace(run.watch, job_id=late.strip())
    poll = run.until(State.DONE)
    assert "belongs to job void" in run.log()
    assert "trained" not in run.log()
    assert poll.files[run.watch.run].exits == ()


def test_a_job_requeued_before_its_first_line_finds_the_run_given_up(bench: Bench) -> None:
    run = bench.run("echo trained")
    run.here("mkdir attempt-1.submit; ln -s void attempt-1.claim")
    # As Slurm starts it again after a node that failed in its prolog.
    run.here("SLURM_JOB_ID=9 SLURM_RESTART_COUNT=1 bash ./job.sh")
    assert "belongs to job void" in run.here("cat attempt-2.out")
    assert run.here("ls attempt-*.exit 2>/dev/null || echo none") == "none\n"


def test_a_young_lock_is_not_voided(bench: Bench) -> None:
    run = bench.run("true")
    run.here('mkdir attempt-1.submit; echo "1 elsewhere $(date +%s)" >attempt-1.submit/shell')
    assert run.settle(void=True, grace=60.0).state is State.UNKNOWN
    assert run.here("readlink attempt-1.claim || echo none").strip() == "none"
    run.here('echo "1 elsewhere $(($(date +%s) - 90))" >attempt-1.submit/shell')
    assert run.settle(void=True, grace=60.0).state is State.NOT_SENT


def test_the_grace_of_a_lock_begins_anew_when_the_site_s_clock_was_set_back(bench: Bench) -> None:
    run = bench.run("true")
    run.here(
        'mkdir attempt-1.submit; echo "1 elsewhere $(($(date +%s) + 9000))" >attempt-1.submit/shell'
    )
    assert run.settle(void=True, grace=60.0).state is State.UNKNOWN
    run.here("read -r pid host since <attempt-1.submit/shell; [ $since -le $(date +%s) ]")
    assert run.settle(void=True, grace=0.0).state is State.NOT_SENT


def test_a_lock_without_its_note_is_as_old_as_its_folder(bench: Bench) -> None:
    run = bench.run("true")
    run.here("mkdir attempt-1.submit")
    assert run.settle(void=True, grace=60.0).state is State.UNKNOWN
    run.here("touch -d '2 minutes ago' attempt-1.submit")
    assert run.settle(void=True, grace=60.0).state is State.NOT_SENT


def test_a_folder_out_of_sight_proves_nothing(bench: Bench) -> None:
    run = bench.run("echo started; exec sleep 60")
    job_id = run.submit().job_id
    folder = run.submission.folder
    if bench.kind == "slurm":
        run.until_log("started")
        bench.here(f"mv {folder} {folder}-hidden")
        assert run.settle() == Answer(State.QUEUED, job_id)
        bench.here(f"mv {folder}-hidden {folder}")
    run.cancel()
    gone = bench.run("true")
    bench.here(f"rm -r {gone.submission.folder}")
    for answer in (gone.settle(), gone.settle(deep=True, void=True)):
        assert answer.state is State.UNKNOWN
        assert abs((answer.hidden_at or 0) - time.time()) < 60


class Hidden:
    """A scheduler at a site whose clock is `clock`, and where no folder and no job is."""

    clock = 1_795_000_000.0

    def settle(
        self, submission: Submission, *, deep: bool, void: bool, grace: float = 0.0
    ) -> Answer:
        assert deep and void
        return Answer(State.UNKNOWN, None, "", hidden_at=self.clock)


@pytest.mark.parametrize("ahead", [0.0, 259_200.0, -3_600.0])
def test_a_folder_out_of_sight_is_given_up_by_the_sites_clock(
    ahead: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Hidden()
    scheduler = cast(Scheduler, site)
    run = a_run("hidden", site="laptop", state=State.UNKNOWN, job_id=None, submitted=1.0)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + ahead)
    first = settle(run, scheduler)
    assert (first.state, "has been missing since" in first.message) == (State.UNKNOWN, True)
    run = replace(run, missed=first.hidden_at)
    site.clock += GRACE_SECONDS - 1
    assert settle(run, scheduler) == first
    site.clock += 1
    assert settle(run, scheduler).state is State.NOT_SENT
    site.clock -= 86_400  # set back: it begins anew
    again = settle(run, scheduler)
    assert (again.state, again.hidden_at) == (State.UNKNOWN, site.clock)


@pytest.mark.cluster
def test_where_accounting_is_switched_off_the_queue_alone_tells(
    slurm: Bench, cluster: Cluster
) -> None:
    off = cluster.root / "etc" / "no-accounting.conf"
    text = (cluster.root / "etc" / "slurm.conf").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("Accounting")]
    off.write_text("\n".join([*lines, "AccountingStorageType=accounting_storage/none"]) + "\n")
    slurm.transport.before = f"SLURM_CONF={off}; export SLURM_CONF"
    try:
        assert "storage is disabled" in slurm.transport.run("sacct -n 2>&1").text
        run = slurm.run("true")
        run.here("mkdir attempt-1.submit; echo '1 elsewhere 0' >attempt-1.submit/shell")
        assert run.settle(deep=True).state is State.UNKNOWN
        assert run.settle(deep=True, void=True).state is State.NOT_SENT
    finally:
        slurm.transport.before = ""
        off.unlink()


@pytest.mark.cluster
def test_an_accounting_that_does_not_answer_leaves_it_open(slurm: Bench) -> None:
    run = slurm.run("true")
    run.here("mkdir attempt-1.submit; echo '1 elsewhere 0' >attempt-1.submit/shell")
    slurm.transport.before = "sacct() { echo 'Connection refused'; return 1; }"
    try:
        answer = run.settle(deep=True, void=True)
    finally:
        slurm.transport.before = ""
    assert (answer.state, answer.message) == (State.UNKNOWN, "Connection refused")
    assert run.here("readlink attempt-1.claim || echo none").strip() == "none"


@pytest.mark.cluster
def test_accounting_finds_a_job_cancelled_before_it_was_eligible(slurm: Bench) -> None:
    run = slurm.run("true")
    command = SBATCH.replace("sbatch ", "sbatch --begin=now+1day ", 1)
    head = f"RUN={quote(run.submission.folder)} NAME={run.submission.name} TOKEN=x\n"
    job_id = run.here(f"mkdir attempt-1.submit\n{head}{command}").strip()
    run.cancel()
    slurm.transport.before = "squeue() { :; }"  # it has forgotten the job
    try:
        deadline = time.monotonic() + LIMIT
        while (answer := run.settle(deep=True)).job_id is None:
            assert time.monotonic() < deadline, answer
            time.sleep(0.5)
    finally:
        slurm.transport.before = ""
    assert answer == Answer(State.QUEUED, job_id)


def test_a_submit_step_that_still_works_is_not_voided(bench: Bench) -> None:
    run = bench.run("true")
    run.here(
        "mkdir attempt-1.submit; sleep 60 >/dev/null 2>&1 </dev/null & "
        'echo "$! $(hostname)" >attempt-1.submit/shell'
    )
    assert run.settle(void=True).state is State.UNKNOWN
    assert run.here("readlink attempt-1.claim || echo none").strip() == "none"
    run.here("read -r pid host <attempt-1.submit/shell; kill $pid")
    deadline = time.monotonic() + LIMIT
    while (answer := run.settle(void=True)).state is State.UNKNOWN:
        assert time.monotonic() < deadline  # until init has taken note of its end
        time.sleep(0.2)
    assert answer.state is State.NOT_SENT


def test_what_sbatch_left_open_is_not_a_refusal(bench: Bench) -> None:
    run = bench.run("true")
    words = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
    run.here("mkdir attempt-1.submit; echo 1 >attempt-1.submit/rc; : >attempt-1.submit/out")
    run.here("cat >attempt-1.submit/err", words.encode())
    answer = run.settle(deep=True)
    assert answer.state is State.UNKNOWN
    assert answer.message == words
    assert run.settle(deep=True, void=True).state is State.NOT_SENT


def test_an_id_that_is_another_job_s_by_now_is_not_cancelled(
    cluster_runs: Runs, cluster: Cluster
) -> None:
    """A controller that lost its state begins its ids anew."""
    runs, told = cluster_runs, list[str]()
    sleeper = "sbatch --parsable -A project_462000001 -p small-g --wrap 'sleep 300'"
    other = cluster.login(sleeper).stdout.strip()
    now = time.time()
    lost = a_run(
        "lost-000001", site="minilumi", state=State.RUNNING, job_id=other,
        submitted=now - 90_000, folder="/tmp/nowhere", snapshot=None,
    )  # fmt: skip
    runs.history.begin(lost)
    try:
        with pytest.raises(OutcomeUnknown, match="It is unknown how lost-000001 ended"):
            runs.cancel("lost-000001", warn=told.append)
        run = runs.history.get("lost-000001")
        assert (run.state, run.job_id) == (State.UNKNOWN, other)
        assert (
            f"id {other} now belongs to another job" in told[0]
            and "nothing was cancelled" in told[0]
        )
        assert cluster.login(f"squeue -h -j {other} -o %t").stdout.strip() in ("PD", "R", "CF")
    finally:
        cluster.login(f"scancel {other}")


@pytest.mark.parametrize("beside", [{}, {"machinery": "m\n", "probe": "p\n"}])
def test_a_submission_is_known_by_all_that_the_job_runs(beside: dict[str, str]) -> None:
    """An older run has nothing beside its script."""
    run = a_run(script="s\n", **beside)
    composed = "s\n" + "".join(beside.values())
    assert submission_of(run).script_sha256 == hashlib.sha256(composed.encode()).hexdigest()
