"""Garbage and failing commands instead of Slurm's answers: nothing is concluded from them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumitui.remote.laptop import scheduler
from lumitui.remote.scheduler.run_files import parse_exit, poll_files
from lumitui.remote.scheduler.run_folders import read_folders
from lumitui.remote.scheduler.scheduler_protocol import ExitFile, JobStatus, NewRunFiles, Watch
from lumitui.remote.scheduler.slurm import Slurm, parse_account, parse_poll, parse_queue
from lumitui.remote.transport.local import Local
from tests.support.replies.schedulers import ACCOUNT, RECORD, WATCHES

LINE = '{"step": 1}\n'


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder before all others in the site's PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def program(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


NONSENSE = ["99999 99999", "slurm_load_jobs error: Unable to contact", "\ufffd\x01", "M-job|317|"]


@pytest.mark.parametrize("words", NONSENSE)
def test_words_that_list_no_job_are_a_failed_squeue(words: str) -> None:
    text = f"M queue 0\n{words}\nM end\nM account 0\n{ACCOUNT}M end\n"
    poll = parse_poll(text.encode(), "M", WATCHES)
    assert poll.gone == frozenset() and poll.jobs == {} and poll.others == ()
    assert poll.warning == f"squeue lists no job, but prints: {words}"


@pytest.mark.parametrize("words", ["", "squeue: warning: a plugin is old"])
def test_an_empty_queue_has_no_job_any_more(words: str) -> None:
    poll = parse_poll(f"M queue 0\n{words}\nM end\n".encode(), "M", WATCHES)
    assert poll.gone == {"a", "b"} and poll.warning == ""


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_a_squeue_that_prints_without_end_is_ended(programs: Path, stream: str) -> None:
    program(programs, "squeue", f'echo $$ >"$0.pid"; exec yes 999999999 {stream}')
    poll = Slurm(Local()).poll(WATCHES)
    assert "too much for one user's job list" in poll.warning and poll.gone == frozenset()
    pid = (programs / "squeue.pid").read_text().strip()
    assert not Path("/proc", pid).exists()


def test_a_squeue_that_fails_or_ends_well_is_told_apart(programs: Path) -> None:
    program(programs, "sacct", "exit 0")
    for body, warning in (
        ("echo no controller >&2; exit 1", "no controller"),
        ("exit 3", "squeue failed"),
        ("exit 0", ""),
        ("kill -9 $$", "Killed"),
    ):
        program(programs, "squeue", body)
        poll = Slurm(Local()).poll(WATCHES)
        assert poll.warning.endswith(warning) and bool(poll.warning) == bool(warning)
        assert poll.gone == (frozenset() if warning else {"a", "b"}), body


def test_a_sacct_that_prints_without_end_is_silent(programs: Path) -> None:
    program(programs, "squeue", "exit 0")
    program(programs, "sacct", "exec yes 9 >&2")
    poll = Slurm(Local()).poll(WATCHES)
    assert poll.gone == {"a", "b"} and "sacct prints too much" in poll.silent


@pytest.mark.parametrize("broken", ["wc", "tail", "head", "all"])
@pytest.mark.parametrize("body", ["exit 127", "exit 0"])
def test_metrics_are_not_rewritten_where_the_tools_do_not_work(
    programs: Path, tmp_path: Path, broken: str, body: str
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "metrics.jsonl").write_text(3 * LINE)
    for name in ("wc", "tail", "head") if broken == "all" else (broken,):
        program(programs, name, body)
    watch = Watch("a", str(run), "5", metrics_offset=2 * len(LINE))
    found = poll_files(Local(), [watch])["a"]
    assert not found.metrics_anew
    if broken != "wc":
        assert found == NewRunFiles()


def test_a_wc_that_prints_without_end_is_ended(programs: Path, tmp_path: Path) -> None:
    program(programs, "wc", "exec yes 9")
    (tmp_path / "metrics.jsonl").write_text(3 * LINE)
    watch = Watch("a", str(tmp_path), "5", metrics_offset=2 * len(LINE))
    found = poll_files(Local(), [watch])["a"]
    assert not found.metrics_anew and found.log_sizes == {}


@pytest.mark.parametrize("name", ["stat", "date", "readlink"])
@pytest.mark.parametrize("body", ["exec yes x", "exit 127"])
def test_a_run_s_folder_is_read_where_a_tool_does_not_work(
    programs: Path, tmp_path: Path, name: str, body: str
) -> None:
    program(programs, name, body)
    for number in (1, 2):
        (tmp_path / f"r{number}").mkdir()
        (tmp_path / f"r{number}" / "job.sh").touch()
    paths = [str(tmp_path / "r1"), str(tmp_path / "r2")]
    found = read_folders(Local(), paths)
    assert [folder.path for folder in found] == paths
    assert all(folder.job_id is None for folder in found)
    assert all((folder.age is None) == (name != "readlink") for folder in found)


OPENINGS = ["exit 0 1", "exit x y", "metrics 0", "metrics ²", "missing 9", "queue 0", "account 0"]
OPENINGS += ["clock", "sizes", "end", "end", "end"]
LINES = ["12 /s/runs/a/attempt-1.out\n", "² /s/runs/a/attempt-².out\n"]
LINES += ["320|RUNNING|²|1|1|p|0:0|n\n"]
PIECES = ("M", "M-job", "|", "\n", " ", "RUNNING", "²", "7", "{}", *LINES)
FIELDS = st.sampled_from([*(f"M {words}\n" for words in OPENINGS), *PIECES])
GARBAGE = st.one_of(st.text(), st.lists(FIELDS, max_size=30).map("".join))


@pytest.mark.parametrize("parse", [parse_poll, scheduler.parse_poll])
@settings(max_examples=30)
@given(text=GARBAGE)
def test_a_poll_never_raises_and_never_invents_a_job(
    parse: Callable[..., object], text: str
) -> None:
    poll = parse(text.encode("utf-8", "surrogatepass"), "M", WATCHES)
    jobs = getattr(poll, "jobs", {})
    assert set(jobs) <= {watch.run for watch in WATCHES}
    assert all(job.job_id in text for job in jobs.values())


@given(GARBAGE)
def test_no_line_without_the_marker_is_a_job(text: str) -> None:
    for job in parse_queue(text, "another"):
        assert f"another-job|{job.job_id}|" in text


@given(GARBAGE)
def test_accounting_lists_numbers_only(text: str) -> None:
    assert all(job.job_id.isdecimal() for job in parse_account(text))


@given(st.binary())
def test_any_bytes_are_an_exit_file_or_none(content: bytes) -> None:
    found = parse_exit(content, 1)
    assert found is None or isinstance(found, ExitFile)


@settings(max_examples=40)
@given(st.one_of(st.text(), st.recursive(st.none(), st.lists).map(json.dumps)))
def test_any_line_is_a_record_or_none(line: str) -> None:
    found = scheduler.parse_record(line)
    assert found is None or isinstance(found, JobStatus)


@pytest.mark.parametrize("block", ["queue", "account"])
def test_a_list_of_a_million_jobs_counts_for_nothing(block: str) -> None:
    """Of a list that is cut, every job beyond the cut would look as if it had ended."""
    line = b"M-job|%d|RUNNING|1|2|3|gpu|nid1|None|name|comment\n"
    many = b"".join(line % number for number in range(200_000))
    queue = b"M queue 0\n\nM end\n" if block == "account" else b""
    poll = parse_poll(queue + f"M {block} 0\n".encode() + many + b"M end\n", "M", WATCHES)
    assert poll.jobs == {} and poll.others == ()
    said = poll.warning if block == "queue" else poll.silent
    assert "too much for one user's job list" in said
    assert (poll.gone == frozenset()) == (block == "queue")


def test_a_record_of_odd_values_is_short_text() -> None:
    deep: object = []
    for _ in range(500):
        deep = [deep]
    for value in (deep, {"a": deep}, "x" * 60_000, 10**4000, None, True, "\ud800"):
        for key in RECORD:
            found = scheduler.parse_record(json.dumps(RECORD | {key: value}))
            assert found is None or len(repr(found)) < 30_000
