"""attempts.jsonl: what it comes to, read in pieces, with attempts that were killed, and damaged."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.history.run import KILLED, AttemptRecord, merged, seconds_ended, trained
from lumitui.app.job.launch import Price
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run


def lines(*told: dict[str, object]) -> bytes:
    return b"".join(json.dumps({"job": "7", **line}).encode() + b"\n" for line in told)


FILE = lines(
    {"attempt": 1, "time": 100, "event": "began", "nodes": "nid[1-2]", "alive": None},
    {"attempt": 1, "time": 160, "event": "ended", "rc": 85, "step": 30, "next": "requeue"},
    {"attempt": 2, "time": 300, "event": "began", "nodes": "nid3", "alive": 161},
    {"attempt": 3, "time": 900, "event": "began", "nodes": "nid4", "alive": 340},
    {"attempt": 2, "time": 905, "event": "ended", "rc": 87, "step": 99, "next": "failed"},
    {"attempt": 3, "time": 950, "event": "ended", "rc": 85, "step": 70, "next": "requeue"},
    {"attempt": 3, "time": 960, "event": "refused", "said": "Access denied"},
)
RECORDS = (
    AttemptRecord(1, "7", "nid[1-2]", 100.0, 160.0, 85, 30, "requeue"),
    AttemptRecord(2, "7", "nid3", 300.0, 340.0, None, None, KILLED),
    AttemptRecord(3, "7", "nid4", 900.0, 950.0, 85, 70, "refused", "Access denied"),
)


@given(st.integers(0, FILE.count(b"\n")))
def test_pieces_of_the_file_give_the_same_as_all_of_it(cut: int) -> None:
    rows = FILE.splitlines(keepends=True)
    first = merged((), b"".join(rows[:cut]))
    assert merged(first, b"".join(rows[cut:])) == RECORDS
    assert [steps for _, steps in trained(RECORDS)] == [30, None, 40]
    assert [seconds_ended(RECORDS[:count]) for count in range(4)] == [0, 60, 100, 150]


@given(st.binary(max_size=300), st.integers(0, len(FILE)))
def test_damage_is_passed_over(noise: bytes, at: int) -> None:
    for record in merged((), FILE[:at] + noise + FILE[at:]):
        assert 1 <= record.number <= 999


def test_an_attempt_that_ends_before_it_began_took_no_time() -> None:
    ended = {"attempt": 1, "time": 40, "event": "ended", "rc": 0, "step": 3, "next": "done"}
    (record,) = merged((), FILE.splitlines(keepends=True)[0] + lines(ended))
    assert (record.started, record.ended, seconds_ended([record])) == (100, 100, 0)


def test_a_bill_counts_every_attempt_and_the_one_that_runs() -> None:
    waiting = a_run(attempts=RECORDS[:1], state=State.QUEUED, price=Price(400, "GPU-hours", 3600))
    assert waiting.billed(1000.0) == 60
    running = replace(waiting, attempts=RECORDS[:2], attempt=3, state=State.RUNNING, started=900.0)
    assert running.billed(930.0) == 60 + 40 + 30
    last = replace(RECORDS[2], end="", ended=None)
    assert replace(running, attempts=(*RECORDS[:2], last)).billed(930.0) == 130
    # A bill that grew until the poll which found the job ended would shrink then.
    assert replace(running, updated=910.0).billed(930.0) == 60 + 40 + 10
    over = replace(running, attempts=RECORDS, state=State.FAILED, ended=951.0)
    assert over.billed(2000.0) == 150
