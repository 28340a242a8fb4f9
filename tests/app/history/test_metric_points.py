"""Lines of metrics.jsonl and of attempts.jsonl as the history keeps them."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.follow.results.summary import summarize
from lumitui.app.history import metric_points
from lumitui.app.history.history import History
from lumitui.app.history.metric_points import MetricPoint, parse_line
from lumitui.app.history.run import KILLED, AttemptRecord, merged, seconds_ended, trained
from lumitui.app.job.launch import Price
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import LumiError
from tests.support.jobs.made_runs import a_run


def test_a_step_and_an_event_are_read_as_the_trainers_write_them() -> None:
    step = parse_line(
        b'{"step": 3, "epoch": 1, "loss": 0.5, "lr": 0.1, "samples_per_s": 900.5, "seconds": 1.5}'
    )
    begin = parse_line(
        b'{"event": "start", "time": 17.5, "device": "cuda", "world_size": 8, "global_batch": 256}'
    )
    assert begin is not None
    assert step == MetricPoint("step", 3, 1, 0.5, 0.1, 900.5, 1.5)
    assert (begin.event, begin.world_size, begin.global_batch) == ("start", 8, 256)
    assert begin.extra == {"time": 17.5, "device": "cuda"}


def test_null_nan_and_words_in_place_of_numbers_are_no_numbers() -> None:
    point = parse_line(b'{"step": 1, "loss": NaN, "lr": null, "seconds": "x", "epoch": true}')
    assert point == MetricPoint(step=1)


@pytest.mark.parametrize(
    "line",
    [b"", b"{}", b"[1]", b"3", b'{"step": 1', b"\xff", b"[" * 50_000, b'{"a": "' + b"x" * 70_000],
)  # fmt: skip
def test_a_broken_line_is_no_point(line: bytes) -> None:
    assert parse_line(line) is None


def test_metrics_are_kept_in_order_and_broken_lines_counted(history: History) -> None:
    history.begin(a_run())
    lines = [b'{"step": 1}', b"half a li", b"", b'{"step": 2}\n', b"\xff"]
    assert history.metrics.add("vit-tiny-000001", lines) == 2
    assert history.metrics.add("vit-tiny-000001", [b'{"step": 3}', b"[]"]) == 1
    assert [point.step for point in history.metrics.of("vit-tiny-000001")] == [1, 2, 3]
    assert [point.step for point in history.metrics.of("vit-tiny-000001", last=2)] == [2, 3]
    assert history.metrics.of("vit-tiny-000001", last=0) == []
    assert history.metrics.broken("vit-tiny-000001") == 3
    assert (history.metrics.of("other"), history.metrics.broken("other")) == ([], 0)
    with pytest.raises(LumiError, match="no run 'other'"):
        history.metrics.add("other", [b"{}"])


def test_the_same_bytes_fetched_twice_are_added_once(history: History) -> None:
    history.begin(a_run())
    first, second = [b'{"step": 1}'], [b'{"step": 2}']
    history.metrics.add("vit-tiny-000001", first, span=(0, 12))
    history.metrics.add("vit-tiny-000001", first, span=(0, 12))
    history.metrics.add("vit-tiny-000001", second, span=(12, 24))
    history.metrics.add("vit-tiny-000001", first, span=(0, 12))
    assert [point.step for point in history.metrics.of("vit-tiny-000001")] == [1, 2]
    assert history.get("last").metrics_offset == 24


RUN = "vit-tiny-000001"


def step(number: int) -> bytes:
    return f'{{"step": {number}, "samples_per_s": 100, "seconds": {number}}}'.encode()


@pytest.mark.parametrize("at_once", [40, 999, 10_000])
def test_a_run_without_end_keeps_a_bounded_number_of_points(
    history: History, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(metric_points, "MOST_POINTS", 1000)
    monkeypatch.setattr(metric_points, "_WHOLE_ENDS", 50)
    history.begin(a_run())
    lines = [b'{"event": "start", "world_size": 8}', *map(step, range(4000))]
    lines += [b'{"event": "start", "world_size": 8}', *map(step, range(4000, 10_000))]
    size = 0
    for first in range(0, len(lines), at_once):
        some = lines[first : first + at_once]
        span = (size, size + sum(len(line) + 1 for line in some))
        history.metrics.add(RUN, some, span)
        size = span[1]
        assert history.metrics.continues(RUN, size, some[-1])
        assert not history.metrics.continues(RUN, size, step(-1))
    points = history.metrics.of(RUN)
    assert 400 <= len(points) <= 1000
    numbers = [point.step for point in points if point.step is not None]
    assert numbers == sorted(numbers)
    assert (numbers[:10], numbers[-10:]) == (list(range(10)), list(range(9990, 10_000)))
    # What a summary needs is there: each start, and the last step of each attempt (from 0 on).
    found = summarize(points)
    assert [point.event for point in points].count("start") == 2
    assert (found.steps, found.seconds, found.samples_per_s) == (10_000, 3999.0 + 9999.0, 100.0)


@pytest.mark.parametrize("event", ["start", "eval", "x"])
def test_events_without_end_are_bounded_too(
    history: History, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    monkeypatch.setattr(metric_points, "MOST_POINTS", 100)
    history.begin(a_run())
    for _ in range(20):
        history.metrics.add(RUN, [f'{{"event": "{event}"}}'.encode()] * 90)
        assert len(history.metrics.of(RUN)) <= 100


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
    # The first began at another run's checkpoint: its last step says nothing of its own steps.
    assert [steps for _, steps in trained(RECORDS, resumed=True)] == [None, None, 40]
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


def test_the_global_batch_is_the_last_that_the_run_reported(history: History) -> None:
    history.begin(a_run())
    assert history.metrics.global_batch("vit-tiny-000001") is None
    lines = [b'{"event": "start", "global_batch": 64}', b'{"event": "start", "global_batch": 32}']
    history.metrics.add("vit-tiny-000001", [*lines, b'{"step": 1}'])
    assert history.metrics.global_batch("vit-tiny-000001") == 32
