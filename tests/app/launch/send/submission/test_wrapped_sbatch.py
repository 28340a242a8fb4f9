"""A site's wrapper around the submit command: neither its words nor its status prove anything."""

import time
from collections.abc import Iterator

import pytest

from lumitui.remote.scheduler.scheduler_protocol import Answer, State
from lumitui.remote.site.errors import LumiError, OutcomeUnknown, RefusedError
from tests.support.jobs.scheduler_bench import LIMIT, Bench, Run

pytestmark = pytest.mark.cluster

REAL = 'id=$(command sbatch --hold "$@"); '
WORDS = (
    "wrapper: error: quota database not reachable",
    "sbatch: error: cli_filter plugin terminated with error",
    "sbatch: error: Batch job submission failed: Invalid account or account/partition combination",
    "sbatch: error: Protocol authentication error: expired credential",
    "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy",
    "submit: error: accounting hiccup",
)


@pytest.fixture
def wrapped(slurm: Bench) -> Iterator[Bench]:
    yield slurm
    slurm.transport.before = ""


def wrap(bench: Bench, body: str) -> None:
    bench.transport.before = f"sbatch() {{ {body}; }}"


def jobs(run: Run) -> list[str]:
    """Return the ids of the run's jobs that have not ended."""
    return run.here(f"squeue --me -h -n {run.submission.name} -o %A").split()


@pytest.mark.both_slurms
@pytest.mark.parametrize(("words", "status"), list(zip(WORDS, (1, 2, 137, 1, 255, 1), strict=True)))
def test_a_job_that_was_queued_is_queued_whatever_sbatch_says(
    wrapped: Bench, words: str, status: int
) -> None:
    run = wrapped.run("true")
    wrap(wrapped, f"{REAL} echo '{words}' >&2; return {status}")
    requests = wrapped.transport.requests
    answer = run.submit()
    assert wrapped.transport.requests == requests + 1
    assert answer == Answer(State.QUEUED, jobs(run)[0])
    run.cancel()


@pytest.mark.parametrize(
    "output",
    ["", "''", "12345; echo \"$id\"", "2026; echo 5; echo \"$id\"", "$((id - 1))", "\"$id;lumi\"",
     "\"Submitted batch job $id\"", "'evidence id 1'", "'M answer id 1 1'"],
)  # fmt: skip
def test_no_number_that_a_wrapper_prints_is_the_id(wrapped: Bench, output: str) -> None:
    before, run = wrapped.run("true"), wrapped.run("true")
    wrap(wrapped, REAL + 'echo "$id"')
    before.submit()
    wrap(wrapped, REAL + (f"echo {output}" if output else ":"))
    assert run.submit() == Answer(State.QUEUED, jobs(run)[0])
    run.cancel()
    assert jobs(before) == [before.watch.job_id]
    before.cancel()


@pytest.mark.both_slurms
def test_a_refusal_is_one_request_and_takes_the_claim(wrapped: Bench) -> None:
    run = wrapped.run("true")
    wrap(wrapped, "echo 'sbatch: error: no such thing' >&2; return 1")
    requests = wrapped.transport.requests
    assert run.submit() == Answer(State.REFUSED, None, "sbatch: error: no such thing")
    assert wrapped.transport.requests == requests + 1
    assert run.here("readlink attempt-1.claim") == "void\n"


@pytest.mark.both_slurms
def test_a_job_that_appears_after_a_refusal_is_cancelled(wrapped: Bench) -> None:
    run = wrapped.run("echo trained")
    wrap(
        wrapped,
        '(sleep 2; command sbatch --hold "$@") >late 2>&1 & echo "sbatch: error: no" >&2; return 1',
    )
    assert run.submit().state is State.REFUSED
    deadline = time.monotonic() + LIMIT
    while not jobs(run):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    # A poll of other runs shows it, and settling the run once more cancels it.
    assert any(f"{run.submission.name}|" in signs for signs in wrapped.scheduler.poll([]).others)
    assert run.settle(void=True).state is State.REFUSED
    while jobs(run):
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_of_the_jobs_of_a_wrapper_that_tries_again_one_stays(wrapped: Bench) -> None:
    run = wrapped.run("true")
    wrap(wrapped, 'for i in 1 2 3; do command sbatch --hold "$@"; done; return 1')
    assert run.submit() == Answer(State.QUEUED, run.watch.job_id)
    deadline = time.monotonic() + LIMIT
    while jobs(run) != [run.watch.job_id]:
        assert time.monotonic() < deadline, jobs(run)
        time.sleep(0.2)
    run.cancel()


def test_a_queue_that_does_not_answer_leaves_it_open(wrapped: Bench) -> None:
    run = wrapped.run("true")
    wrap(wrapped, f"{REAL} echo 'sbatch: error: no' >&2; return 1")
    wrapped.transport.before += (
        "; squeue() { echo 'Unable to contact slurm controller'; return 1; }"
    )
    answer = run.submit()
    assert answer.state is State.UNKNOWN
    assert "sbatch: error: no" in answer.message and "Unable to contact" in answer.message
    assert run.here("readlink attempt-1.claim || echo none") == "none\n"
    wrapped.transport.before = ""
    assert run.settle() == Answer(State.QUEUED, jobs(run)[0])
    run.watch = run.watch.__class__(run.submission.name, run.submission.folder, jobs(run)[0])
    run.cancel()


def test_silence_is_no_refusal(wrapped: Bench) -> None:
    for body in (":", "return 1", "echo 'sbatch: error: Socket timed out' >&2; return 1"):
        run = wrapped.run("true")
        wrap(wrapped, body)
        assert run.submit().state is State.UNKNOWN
        assert run.here("readlink attempt-1.claim || echo none") == "none\n"
        assert run.settle(void=True).state is State.NOT_SENT


def test_an_id_without_a_job_is_explained(wrapped: Bench) -> None:
    run = wrapped.run("true")
    wrap(wrapped, "echo 987654")
    answer = run.submit()
    words = "sbatch printed '987654', but no job of the run was found"
    assert (answer.state, answer.message) == (State.UNKNOWN, words)
    assert run.settle(void=True).state is State.NOT_SENT


def test_fifty_megabytes_of_words_are_cut(wrapped: Bench) -> None:
    run = wrapped.run("true")
    wrap(wrapped, "{ echo begin; yes no | head -c 50000000; echo end; } >&2; return 1")
    received = run.submit()
    assert received.state is State.REFUSED
    assert len(received.message) <= 4000
    assert received.message.startswith("begin") and received.message.endswith("end")
    assert int(run.here("cat attempt-1.submit/err | wc -c")) <= 100_000


def test_a_site_that_renames_jobs_and_drops_comments_is_followed_by_the_folder(
    wrapped: Bench,
) -> None:
    run = wrapped.run("exec sleep 60")
    wrap(wrapped, 'command sbatch "$@" --job-name=batch --comment=')
    job_id = run.submit().job_id
    assert job_id
    run.until_log("")
    poll = run.until(State.RUNNING)
    assert (poll.jobs[run.watch.run].job_id, poll.gone) == (job_id, frozenset())
    assert run.cancel() == frozenset()
    run.until(State.CANCELLED)
    # Accounting knows the folder too.
    wrapped.transport.before = "squeue() { :; }"
    assert wrapped.scheduler.poll([run.watch]).jobs[run.watch.run].state is State.CANCELLED


def again(run: Run, *options: str) -> str:
    """Submit the run once more, as a wrapper does that tries again later; return the job's id."""
    name = run.submission.name
    return run.here(
        f'sbatch --parsable {" ".join(options)} --chdir="$PWD" --job-name={name} '
        '--output="$PWD/attempt-1.out" job.sh'
    ).strip()


def until_none(run: Run) -> None:
    deadline = time.monotonic() + LIMIT
    while jobs(run):
        assert time.monotonic() < deadline, jobs(run)
        time.sleep(0.2)


@pytest.mark.both_slurms
def test_cancel_ends_every_job_of_the_run_and_those_to_come(wrapped: Bench) -> None:
    run = wrapped.run("true")
    wrap(wrapped, f'{REAL} echo "$id"')
    run.submit()
    again(run, "--hold")
    assert len(jobs(run)) == 2
    assert run.cancel() == frozenset()
    until_none(run)
    assert run.here("readlink attempt-1.claim") == f"{run.watch.job_id}\n"
    again(run)
    run.until_log(f"belongs to job {run.watch.job_id}")


@pytest.mark.both_slurms
def test_the_job_that_has_the_claim_is_followed_and_cancelled(wrapped: Bench) -> None:
    run = wrapped.run("sleep 60")
    wrap(wrapped, f'{REAL} echo "$id"')
    known = run.submit().job_id or ""
    assert not wrapped.scheduler.poll([run.watch]).files[run.submission.name].claim
    other = again(run)
    deadline = time.monotonic() + LIMIT
    while run.here("readlink attempt-1.claim || :").strip() != other:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert wrapped.scheduler.poll([run.watch]).files[run.submission.name].claim == other
    assert sorted(jobs(run)) == sorted([known, other])
    assert run.cancel() == frozenset()
    until_none(run)


@pytest.mark.parametrize(
    ("scancel", "error", "words"),
    [
        ("echo 'scancel: error: no such thing' >&2; return 1", RefusedError, "did not end the job"),
        (":", OutcomeUnknown, "still lists job .* as PENDING"),
    ],
)
def test_a_scancel_that_ends_nothing_is_no_success(
    wrapped: Bench, scancel: str, error: type[LumiError], words: str
) -> None:
    run = wrapped.run("true")
    wrap(wrapped, f'{REAL} echo "$id"')
    run.submit()
    wrapped.transport.before = f"scancel() {{ {scancel}; }}"
    with pytest.raises(error, match=words):
        run.cancel()
    wrapped.transport.before = 'scancel() { command scancel "$@"; return 1; }'
    assert run.cancel() == frozenset()
    until_none(run)
