"""The points of metrics.jsonl: read from lines, kept in order, added once."""

import pytest

from lumitui.app.follow.results.summary import summarize
from lumitui.app.history import metric_points
from lumitui.app.history.history import History
from lumitui.app.history.metric_points import MetricPoint, parse_line
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
