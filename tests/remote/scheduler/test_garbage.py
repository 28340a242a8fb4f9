"""Garbage instead of what squeue, sacct and a run's files say: no job is made of it."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumitui.remote.laptop import scheduler
from lumitui.remote.scheduler.run_files import parse_exit
from lumitui.remote.scheduler.scheduler_protocol import ExitFile, JobStatus
from lumitui.remote.scheduler.slurm import parse_account, parse_poll, parse_queue
from tests.support.replies.schedulers import RECORD, WATCHES

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
    assert "more than one user's job list can contain" in said
    assert (poll.gone == frozenset()) == (block == "queue")


def test_a_record_of_odd_values_is_short_text() -> None:
    deep: object = []
    for _ in range(500):
        deep = [deep]
    for value in (deep, {"a": deep}, "x" * 60_000, 10**4000, None, True, "\ud800"):
        for key in RECORD:
            found = scheduler.parse_record(json.dumps(RECORD | {key: value}))
            assert found is None or len(repr(found)) < 30_000
