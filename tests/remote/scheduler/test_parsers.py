"""What squeue, sacct and a run's files say, parsed: Slurm 22.05 and 24.11."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from lumitui.remote.laptop import scheduler
from lumitui.remote.scheduler.run_files import files_script, parse_exit, parse_files
from lumitui.remote.scheduler.scheduler_protocol import (
    STATES,
    ExitFile,
    JobStatus,
    NewRunFiles,
    State,
    Watch,
)
from lumitui.remote.scheduler.slurm import (
    is_of,
    parse_account,
    parse_poll,
    parse_queue,
    poll_script,
)
from lumitui.remote.site.states import BY_YOU
from lumitui.remote.transport.records import record_functions
from tests.support.replies.schedulers import ACCOUNT, ACCOUNT_24, QUEUE, QUEUE_24, RECORD, WATCHES


def test_squeue() -> None:
    jobs = {job.job_id: job for job in parse_queue(QUEUE, "M")}
    assert {job_id: job.state for job_id, job in jobs.items()} == {
        "317": State.CANCELLED,
        "269": State.FAILED,
        "282": State.FAILED,
        "318": State.QUEUED,
        "319": State.QUEUED,
        "320": State.RUNNING,
        "321": State.DONE,
    }
    assert jobs["320"] == JobStatus(
        job_id="320",
        state=State.RUNNING,
        word="RUNNING",
        submitted=1795236570.0,
        started=1795236570.0,
        ended=1795236630.0,
        nodes="nid[005002-005004]",
        partition="small-g",
        signs="b|",
    )
    assert jobs["319"].reason == "JobHeldUser"
    # No estimate yet: squeue's own word for it (squeue(1), %S).
    (job,) = parse_queue("M-job|5|PENDING|1795236573|N/A|N/A|small-g||Priority|run|", "M")
    assert (job.started, job.ended, job.reason) == (None, None, "Priority")


def test_squeue_of_24_11() -> None:
    jobs = {job.job_id: job for job in parse_queue(QUEUE_24, "M")}
    assert {job_id: (job.state, job.reason) for job_id, job in jobs.items()} == {
        "41": (State.CANCELLED, "BeginTime"),
        "40": (State.CANCELLED, ""),
        "37": (State.DONE, ""),
        "31": (State.FAILED, "NonZeroExitCode"),
        "39": (State.FAILED, "RaisedSignal:9(Killed)"),
        "42": (State.QUEUED, "BeginTime"),
        "46": (State.QUEUED, "Dependency"),
        "44": (State.QUEUED, "job requeued in held state"),
        "45": (State.RUNNING, ""),
        "36": (State.TIMEOUT, "TimeLimit"),
        "62": (State.FAILED, "BadConstraints"),  # a refused request leaves a job
    }
    assert jobs["46"].started is None
    assert jobs["36"].ended == 1795244173.0


@pytest.mark.parametrize(
    "line",
    [
        "squeue: warning: something",
        "X-job|320|RUNNING|1|1|1|small-g|nid005002|b|None",
        "M-job|320|RUNNING|1|1",
        "320|RUNNING|1|1|1|small-g|nid005002|b|None",
        "",
    ],
)
def test_a_line_that_is_no_record_is_no_job(line: str) -> None:
    assert parse_queue(line, "M") == []


def test_a_comment_may_have_bars_and_a_word_may_be_new() -> None:
    (job,) = parse_queue("M-job|1|RESTING|1|1|1|p|n|r|run|a|b|c", "M")
    assert (job.state, job.word, job.reason) == (State.UNKNOWN, "RESTING", "r")
    assert is_of(job, Watch("run", "/s/runs/run", "1"))
    assert not is_of(job, Watch("r", "/s/runs/r", "1"))


def test_sacct() -> None:
    jobs = {job.job_id: job for job in parse_account(ACCOUNT)}
    assert jobs["316"].exit_code == "3:0"
    assert (jobs["317"].state, jobs["317"].reason) == (State.CANCELLED, "by 1001")
    # Cancelled in the queue: it never ran.
    assert (jobs["318"].started, jobs["318"].ended) == (None, 1795236600.0)
    assert jobs["318"].nodes == ""
    # Of a requeued job the last record stands.
    text = f"M account 0\n{ACCOUNT}M end\n"
    poll = parse_poll(text.encode(), "M", [Watch("run-319", "/s/run-319", "319")])
    assert poll.jobs["run-319"].state is State.QUEUED
    assert jobs["320"].ended is None
    assert (jobs["322"].state, jobs["322"].exit_code) == (State.FAILED, "0:9")


def test_no_json_of_slurm_is_read() -> None:
    # It changes from release to release: 26.05 renamed `shared`, and gave another one a new type.
    sources = [path.read_text() for path in (Path(scheduler.__file__).parents[1]).rglob("*.py")]
    assert len(sources) > 50
    asked = re.compile(r"(?:squeue|sacct|scontrol|sinfo)\b[^\n]*--(?:json|yaml)(?! differs)")
    assert not [found[0] for text in sources if (found := asked.search(text))]


def test_sacct_of_24_11() -> None:
    jobs = {job.job_id: job for job in parse_account(ACCOUNT_24)}
    assert {job_id: (job.state, job.exit_code) for job_id, job in jobs.items()} == {
        "2": (State.FAILED, "1:0"),
        "34": (State.CANCELLED, "0:15"),
        "36": (State.TIMEOUT, "0:15"),
        "37": (State.DONE, "0:0"),
        "39": (State.FAILED, "0:9"),
        "40": (State.CANCELLED, "0:0"),
        "44": (State.QUEUED, "0:0"),
        "45": (State.RUNNING, "0:0"),
    }
    # Refused while it was sent: it never ran, and was nowhere.
    assert (jobs["2"].started, jobs["2"].nodes) == (None, "")
    assert (jobs["34"].reason, jobs["40"].reason) == ("", BY_YOU)


def test_a_job_that_has_the_id_by_now_is_not_the_run_s() -> None:
    """A controller that lost its state begins its ids anew."""
    at = 1795236570
    mine, other = Watch("mine", "/s/mine", "24", "c0ffee"), Watch("other", "/s/other", "24", "1")

    def seen(signs: str, rows: str = "", place: str = "") -> dict[str, State]:
        queue = f"M-job|24|RUNNING|{at}|1|1|small-g|n|None|{signs}\n"
        places = f"M places\nM-job|24|{place}\nM end\n"
        text = f"M queue 0\n{queue}M end\n{places}M account 0\n{rows}M end\n"
        poll = parse_poll(text.encode(), "M", [mine, other])
        assert poll.gone == {"mine", "other"} - {run for run in poll.jobs if not rows}
        return {run: job.state for run, job in poll.jobs.items()}

    # However near the two were submitted.
    assert seen("mine|") == {"mine": State.RUNNING}
    assert seen("other|lumitui:1") == {"other": State.RUNNING}
    assert seen("renamed|lumitui:c0ffee and more") == {"mine": State.RUNNING}
    assert seen("renamed|", place="/s/mine|/s/mine/job.sh") == {"mine": State.RUNNING}
    assert seen("renamed|", place="/s/mine|(null)") == {}
    assert seen("renamed|", place="/s/mine/code|/s/mine/job.sh") == {}
    assert seen("another|mine or not") == {}
    rows = f"24|COMPLETED|{at}|1|2|small-g|0:0|n|9|mine||/s\n"
    rows += f"24|FAILED|{at}|1|2|p|1:0|n|9|another||/s\n"
    assert seen("another|", rows) == {"mine": State.DONE}


@pytest.mark.parametrize("line", ["", "316.batch|FAILED|1|1|1||3:0|n", "sacct: error: x|y", "1|2"])
def test_a_line_that_is_no_accounting_record_is_no_job(line: str) -> None:
    assert parse_account(line) == []


def test_accounting_fills_what_the_queue_does_not_know() -> None:
    text = (
        f"login files print\nM clock\n1795236600\nM end\nM queue 0\n{QUEUE}M end\n"
        f"M account 0\n{ACCOUNT}M end\n"
    )
    watches = [*WATCHES, Watch("c", "/s/c", "316")]
    poll = parse_poll(text.encode(), "M", watches)
    assert {run: job.state for run, job in poll.jobs.items()} == {
        "a": State.CANCELLED,  # the queue's record, not accounting's
        "b": State.RUNNING,
        "c": State.FAILED,
    }
    assert poll.jobs["a"].reason == ""
    assert [signs.partition("|")[0] for signs in poll.others] == ["run-318", "run-319"]
    assert (poll.clock, poll.warning) == (1795236600.0, "")


@pytest.mark.parametrize("block", ["queue", "account"])
def test_a_failed_query_is_a_warning_and_no_job(block: str) -> None:
    poll = parse_poll(f"M {block} 1\n{QUEUE}M end\n".encode(), "M", WATCHES)
    assert poll.jobs == {}
    assert (poll.warning if block == "queue" else poll.silent).startswith("M-job")
    assert poll.gone == set()


def test_what_the_queue_does_not_know_is_gone_whatever_accounting_says() -> None:
    watches = [*WATCHES, Watch("c", "/s/c", "316"), Watch("d", "/s/d", "999")]
    text = f"M queue 0\n{QUEUE}M end\nM account 1\nSlurm accounting storage is disabled\nM end\n"
    poll = parse_poll(text.encode(), "M", watches)
    assert poll.gone == {"c", "d"}
    assert poll.silent == "Slurm accounting storage is disabled"
    assert poll.warning == ""


def test_the_state_words_of_slurm_are_known() -> None:
    # squeue(1), "JOB STATE CODES", 22.05 to 26.05; each is something a run can be.
    for word in (
        "BOOT_FAIL",
        "EXPEDITING",
        "COMPLETING",
        "DEADLINE",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "SUSPENDED",
    ):
        assert STATES[word] is not State.UNKNOWN
    going = {State.QUEUED, State.RUNNING, State.FINISHING}
    assert all(state.is_final or state in going for state in STATES.values())


# -- a run's files


def test_files() -> None:
    text = (
        b"M sizes\n   12 /s/runs/a/attempt-1.out\n  345 /s/runs/b b/attempt-2.out\n  357 total\n"
        b"M end\nM exit 1 1\n"
        b'{"rc": 7, "rank": 3, "job": "320", "attempt": 1, "ended": 1795236600}\n\nM end\n'
        b'M metrics 0\n{"step": 1}\n{"step": 2\nM end\nM binding 0\n[]\n\nM end\n'
        b'M attempts 1\n{"attempt": 1}\n{"att\nM end\n'
    )
    assert parse_files(text, "M", WATCHES) == {
        "a": NewRunFiles(log_sizes={1: 12}, metrics=b'{"step": 1}\n', binding="[]"),
        "b": NewRunFiles(
            log_sizes={2: 345},
            exits=(ExitFile(1, 7, 3, 1795236600.0, "320"),),
            attempts=b'{"attempt": 1}\n',
        ),
    }


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b"null", b'{"rc": "x"}', b"[" * 100_000, b'{"rc": Infinity, "rank": null}'],
)
def test_what_is_no_exit_file_is_none(content: bytes) -> None:
    assert parse_exit(content, 1) is None


# -- the embedded site's records


def test_a_record() -> None:
    job = scheduler.parse_record(json.dumps(RECORD))
    assert job == JobStatus(
        "7",
        State.RUNNING,
        "RUNNING",
        submitted=1.0,
        started=2.0,
        nodes="node1",
        partition="local",
        signs="r",
    )


@pytest.mark.parametrize("name", sorted(RECORD))
def test_a_record_that_lacks_something_is_none(name: str) -> None:
    short = {key: value for key, value in RECORD.items() if key != name}
    assert scheduler.parse_record(json.dumps(short)) is None


def test_a_failed_look_at_processes_is_a_warning() -> None:
    poll = scheduler.parse_poll(b"M queue 127\nsh: python: not found\n\nM end\n", "M", WATCHES)
    assert poll.warning == "sh: python: not found"
    assert poll.jobs == {}


# -- a poll's commands


def test_one_poll_has_one_queue_query_however_many_runs() -> None:
    many = [Watch(str(n), f"/s/{n}", str(n)) for n in range(50)]
    script = poll_script("M", many)
    assert script.count("$(words squeue --me") == 1
    assert script.count("$(words squeue") == 2  # the other one for jobs without their names alone
    assert script.count("$(words sacct") == 1
    assert files_script(many).count("wc -c") == 1


def _script(watches: list[Watch]) -> str:
    return f"{record_functions('M')}\n{files_script(watches)}"


def test_the_exit_file_of_a_requeued_attempt_is_read(tmp_path: Path) -> None:
    # The first attempt was killed with its node and left none.
    (tmp_path / "attempt-2.exit").write_text(
        '{"rc": 7, "rank": 3, "job": "5", "attempt": 2, "ended": 9}'
    )
    watches = [Watch("a", str(tmp_path), "5")]
    printed = subprocess.run(["sh", "-c", _script(watches)], capture_output=True)
    files = parse_files(printed.stdout, "M", watches)
    assert files["a"].exits == (ExitFile(2, 7, 3, 9.0, "5"),)


def test_metrics_that_are_known_cost_no_further_process(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "tail").write_text('#!/bin/sh\necho called >>"$CALLS"\nexec /usr/bin/tail "$@"\n')
    (programs / "tail").chmod(0o755)
    runs = []
    for name in ("known", "grown", "with space; and $(more)"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2}\n')
        runs.append(folder)
    size = (runs[0] / "metrics.jsonl").stat().st_size
    watches = [
        Watch("a", str(runs[0]), "5", metrics_offset=size),
        Watch("b", str(runs[1]), "6", metrics_offset=size // 2),
        Watch("c", str(runs[2]), "7", metrics_offset=size),
    ]
    calls = tmp_path / "calls"
    environ = {"PATH": f"{programs}:/usr/bin:/bin", "CALLS": str(calls)}
    script = _script(watches)
    printed = subprocess.run(["sh", "-c", script], capture_output=True, env=environ)
    files = parse_files(printed.stdout, "M", watches)
    assert {name: found.metrics for name, found in files.items()} == {
        "a": b"",
        "b": b'{"step": 2}\n',
        "c": b"",
    }
    assert calls.read_text() == "called\n"
