"""One contract, two schedulers: plain processes here, and Slurm over ssh on the mini cluster."""

import json
import time
from dataclasses import replace

import pytest

from lumitui.remote.scheduler.scheduler_protocol import Answer, State, Watch
from lumitui.remote.site.errors import OutcomeUnknown
from lumitui.remote.site.run_folder import SCRIPTS
from tests.support.jobs.scheduler_bench import LIMIT, Bench

pytestmark = pytest.mark.both_slurms

HOSTILE = 'it\'s | a "run" $(touch pwned) `id` [a]* ~ & ünï 🦊'


def test_a_job_runs_to_its_end(bench: Bench) -> None:
    run = bench.run(
        'echo "rank $RANK of $WORLD_SIZE in $(basename "$PWD")"; '
        '[ $RANK = 0 ] && echo "{\\"step\\": 1}" >>"$RUN_DIR/metrics.jsonl"; sleep 1',
        gpus_per_node=2,
        nodes=2,
        proof="on",
    )
    answer = run.submit()
    assert answer.state is State.QUEUED
    assert answer.job_id
    assert answer.job_id.isdecimal()
    going = run.until(State.RUNNING).jobs[run.watch.run]
    assert going.started
    assert going.ended  # by its limit
    assert 295 <= going.ended - going.started <= 305
    poll = run.until(State.DONE)
    job, files = poll.jobs[run.watch.run], poll.files[run.watch.run]
    assert job.word == "COMPLETED"
    assert job.submitted
    assert job.started
    assert job.ended
    assert job.submitted <= job.started <= job.ended
    (ended,) = files.exits
    assert (ended.attempt, ended.rc, ended.rank) == (1, 0, None)
    assert ended.job_id == answer.job_id
    assert files.metrics == b'{"step": 1}\n'
    lines = run.log().splitlines()
    assert sorted(line for line in lines if ": rank " in line) == [
        f"{rank}: rank {rank} of 4 in code" for rank in range(4)
    ]
    assert files.log_sizes == {1: len(run.log().encode())}
    # sbatch hands its umask to the log.
    assert run.here("ls -lA | grep attempt- | grep -v -e '^l' -e '^[-d]...--[-S]---' || :") == ""
    assert files.binding
    proof = json.loads(files.binding)
    assert sorted((item["rank"], item["local_rank"]) for item in proof) == [
        (0, 0),
        (1, 1),
        (2, 0),
        (3, 1),
    ]
    assert abs((poll.clock or 0) - time.time()) < 60
    assert not poll.warning


def test_the_exit_file_names_the_rank_that_failed_first(bench: Bench) -> None:
    run = bench.run(
        '[ "$RANK" = 3 ] && { echo "rank 3 gives up"; exit 7; }; exec sleep 60',
        gpus_per_node=2,
        nodes=2,
    )
    run.submit()
    poll = run.until(State.FAILED)
    (ended,) = poll.files[run.watch.run].exits
    assert (ended.rc, ended.rank) == (7, 3)
    assert poll.jobs[run.watch.run].exit_code in ("7:0", "")  # squeue does not report it
    node = "node2" if bench.kind == "process" else "nid00500[1-8]"
    run.here(f"grep -qx 'srun: error: {node}: task 3: Exited with exit code 7' attempt-1.out")
    assert "3: rank 3 gives up" in run.log()


def test_a_rank_that_was_killed_is_named_too(bench: Bench) -> None:
    # What srun said of the probe is not said of the program.
    probe = '[ "$SLURM_PROCID" = 0 ] && exit 5; exit 0'
    program = '[ "$RANK" = 1 ] && kill -9 $$; exec sleep 60'
    run = bench.run(program, probe=probe, gpus_per_node=2, proof="on")
    run.submit()
    (ended,) = run.until(State.FAILED).files[run.watch.run].exits
    assert (ended.rc, ended.rank) == (137, 1)
    assert "task 0: Exited with exit code 5" in run.log()


def test_torchrun_meets_on_loopback(processes: Bench) -> None:
    # Two agents of two workers on one machine; a task's number is then no rank's.
    run = processes.run(
        'echo "rank $RANK of $WORLD_SIZE, local $LOCAL_RANK"; sleep 1; [ "$RANK" != 3 ]',
        launcher="torchrun",
        gpus_per_node=2,
        nodes=2,
    )
    run.submit()
    (ended,) = run.until(State.FAILED, limit=90).files[run.watch.run].exits
    assert (ended.rc, ended.rank) == (1, 3)
    said = sorted(line.partition(": ")[2] for line in run.log().splitlines() if " of 4," in line)
    assert said == [f"rank {rank} of 4, local {rank % 2}" for rank in range(4)]


def test_a_second_submit_finds_the_first_ones_job(bench: Bench) -> None:
    run = bench.run("echo trained")
    first = run.submit()
    assert run.submit() == replace(first, message="")
    run.until(State.DONE)
    assert run.submit().job_id == first.job_id
    assert bench.jobs(run) == 1
    assert run.log().count("trained") == 1


@pytest.mark.parametrize(
    "harm", [*(f"echo '# changed' >>{name}" for name in SCRIPTS), "rm lumitui.sh", "rm probe.sh"]
)
def test_a_changed_script_is_not_submitted(bench: Bench, harm: str) -> None:
    run = bench.run("echo trained")
    run.here(harm)
    answer = run.submit()
    assert answer.state is State.NOT_SENT
    assert "composed" in answer.message
    assert run.here("ls -d attempt-1.* 2>/dev/null || :") == ""
    assert bench.jobs(run) == 0


def test_a_refusal_has_the_schedulers_words(bench: Bench) -> None:
    if bench.kind == "slurm":
        run, words = bench.run("true", account="project_462000002"), "Invalid account"
    else:
        run, words = bench.run("true", sbatch=["--nodes=x"]), 'Invalid numeric value "x"'
    for answer in (run.submit(), run.settle(), run.settle(deep=True, void=True)):
        assert answer.state is State.REFUSED
        assert words in answer.message
        assert "evidence" not in answer.message
    assert bench.jobs(run) == 0


def test_the_submit_step_ends_before_the_job(bench: Bench) -> None:
    run = bench.run("echo started; exec sleep 60")
    begun = time.monotonic()
    run.submit()
    assert time.monotonic() - begun < 30
    run.until_log("started")
    assert run.until(State.RUNNING).jobs[run.watch.run].state is State.RUNNING
    run.cancel()


# -- the end comes from outside


def test_cancel(bench: Bench) -> None:
    run = bench.run("echo started; exec sleep 60", gpus_per_node=2)
    run.submit()
    run.until_log("started")
    run.cancel()
    poll = run.until(State.CANCELLED)
    assert poll.files[run.watch.run].exits == ()
    run.cancel()
    assert set(bench.scheduler.cancel([replace(run.watch, job_id="99999999")])) == {run.watch.run}
    assert "CANCELLED AT" in run.log()


def test_a_cancel_before_the_job_ends_it_at_its_first_act(bench: Bench) -> None:
    run = bench.run("echo trained")
    with pytest.raises(OutcomeUnknown, match="no known job"):
        run.cancel()
    assert run.here("ls cancelled") == "cancelled\n"
    run.submit()
    poll = run.until(State.CANCELLED)
    assert poll.files[run.watch.run].cancelled and poll.files[run.watch.run].exits == ()
    assert "the run was cancelled; attempt 1 does nothing" in run.log()
    assert "trained" not in run.log()


def test_another_job_of_the_id_is_neither_followed_nor_cancelled(bench: Bench) -> None:
    """A controller that lost its state gives the id to another job, within the hour too."""
    run, other = bench.run("true"), bench.run("echo started; exec sleep 60")
    other_id = other.submit().job_id or ""
    other.until_log("started")
    stale = replace(run.watch, job_id=other_id)
    for watches in ([stale, other.watch], [other.watch, stale]):
        poll = bench.scheduler.poll(watches)
        assert poll.jobs[other.watch.run].state is State.RUNNING
        assert set(poll.jobs) == {other.watch.run}
        assert poll.gone == {stale.run}
    (words,) = bench.scheduler.cancel([stale]).values()
    assert "nothing was cancelled" in words
    assert bench.kind == "process" or f"{other_id} now belongs to another job" in words
    assert other.until(State.RUNNING).gone == frozenset()
    assert set(bench.scheduler.cancel([stale, other.watch])) == {stale.run}
    other.until(State.CANCELLED)


def test_the_time_limit_of_processes(processes: Bench) -> None:
    _time_limit(processes, "00:00:04", "USR1@2")


@pytest.mark.slow
@pytest.mark.cluster
def test_the_time_limit_of_slurm(slurm: Bench) -> None:
    # Slurm counts whole minutes, and sends the signal up to a minute early.
    _time_limit(slurm, "00:01:00", "USR1@10", limit=150)


def _time_limit(bench: Bench, time: str, signal: str, limit: float = LIMIT) -> None:
    run = bench.run(
        'trap "echo got USR1" USR1; trap "echo got TERM; exit 0" TERM; echo started; '
        "while :; do sleep 0.2; done",
        gpus_per_node=2,
        time=time,
        signal=signal,
    )
    run.submit()
    poll = run.until(State.TIMEOUT, limit=limit)
    job = poll.jobs[run.watch.run]
    assert job.word == "TIMEOUT"
    assert poll.files[run.watch.run].exits == ()
    log = run.log()
    for rank in range(2):
        assert f"{rank}: got USR1" in log
        assert f"{rank}: got TERM" in log
    assert log.index("got USR1") < log.index("DUE TO TIME LIMIT")


# -- one poll of many runs


def test_many_runs_are_one_request(bench: Bench) -> None:
    first, second, third = (bench.run(f"echo trained {number}") for number in range(3))
    for run in (first, second, third):
        run.submit()
    for run in (first, second, third):
        run.until(State.DONE)
    first.here("printf '%s\\n' '{\"step\": 1}' '{\"step\": 2}' >metrics.jsonl")
    first.here("printf '{\"step\": 3' >>metrics.jsonl")
    gone = Watch("gone", f"{bench.root}/no-such-run", "99999998")
    watches = [first.watch, second.watch, replace(third.watch, exits=1), gone]
    before = bench.transport.requests
    poll = bench.scheduler.poll(watches)
    assert bench.transport.requests == before + 1
    assert set(poll.jobs) == {run.watch.run for run in (first, second, third)}
    files = poll.files[first.watch.run]
    assert files.metrics == b'{"step": 1}\n{"step": 2}\n'
    assert len(files.exits) == 1
    assert poll.files[third.watch.run].exits == ()
    assert poll.files["gone"].missing
    assert not files.missing
    # What is here is not asked for again; the half line comes when it is whole.
    later = replace(first.watch, metrics_offset=len(files.metrics), exits=1)
    assert bench.scheduler.poll([later]).files[first.watch.run].metrics == b""
    first.here("printf ', \"loss\": 0.5}\\n' >>metrics.jsonl")
    again = bench.scheduler.poll([later]).files[first.watch.run]
    assert again.metrics == b'{"step": 3, "loss": 0.5}\n'
    assert again.exits == ()


def test_what_a_run_writes_is_never_taken_for_structure(bench: Bench) -> None:
    run = bench.run("true")
    run.submit()
    run.until(State.DONE)
    foreign = "lumitui-0000 exit 0 1\n{}\nlumitui-0000 end\nevidence id 5\n"
    run.here("cat >metrics.jsonl; cp metrics.jsonl attempt-2.exit", foreign.encode())
    files = bench.scheduler.poll([run.watch]).files[run.watch.run]
    assert files.metrics == foreign.encode()
    assert [item.attempt for item in files.exits] == [1]


def test_a_folder_may_have_any_name(bench: Bench) -> None:
    # %j and \\ have a meaning in the log's path for Slurm alone.
    folder = HOSTILE + (" %j 100% \\n" if bench.kind == "process" else "")
    run = bench.run(
        'echo "in $PWD"; echo "{}" >>"$RUN_DIR/metrics.jsonl"', folder=folder, proof="on"
    )
    answer = run.submit()
    assert answer.state is State.QUEUED
    assert run.settle() == Answer(State.QUEUED, answer.job_id)
    files = run.until(State.DONE).files[run.watch.run]
    assert [item.rc for item in files.exits] == [0]
    assert files.metrics == b"{}\n"
    assert files.binding
    assert f"in {run.submission.folder}/code" in run.log()
    assert files.log_sizes == {1: len(run.log().encode())}
    assert run.here("ls; ls ..").count("pwned") == 1  # in the folder's own name
