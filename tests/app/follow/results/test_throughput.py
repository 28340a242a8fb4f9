"""Throughput as a trainer tells it: over all the time, in tokens and operations, and its parts."""

import json
from typing import Any

import pytest

from lumitui.app.explain.training_summary import Throughput
from lumitui.app.follow.results.summary import series_of, summarize
from lumitui.app.history.metric_points import MetricPoint, parse_line

START = {
    "event": "start", "world_size": 2, "global_batch": 64,
    "precision": "bf16", "peak_tflops": 312.0,
}  # fmt: skip


def points(*lines: dict[str, Any]) -> list[MetricPoint]:
    parsed = [parse_line(json.dumps(line).encode()) for line in lines]
    return [point for point in parsed if point is not None]


def step(number: int, seconds: float, **extra: float) -> dict[str, Any]:
    return {"step": number, "loss": 1.0, "samples_per_s": 128.0, "seconds": seconds} | extra


def test_a_loader_that_stalls_shows_over_all_and_not_in_the_median() -> None:
    # Steps of 0.5 s, and 4.5 s between each and the next.
    found = summarize(points(START, *(step(at, 5.0 * at) for at in range(1, 21))))
    assert found.samples_per_s == 128.0
    assert found.throughput.over_all == pytest.approx(64 / 5)


def test_the_overall_speed_is_that_of_all_attempts() -> None:
    slow = (step(at, 10.0 * at) for at in range(1, 21))
    fast = (step(20 + at, 1.0 * at) for at in range(1, 21))
    found = summarize(points(START, *slow, START, *fast))
    after = 20 - 1 - 10  # steps of each attempt after the first and the warm-up
    assert found.throughput.over_all == pytest.approx(2 * after * 64 / (after * 10 + after * 1))


def test_figures_are_those_of_the_median_and_the_last_attempt() -> None:
    slow = step(30, 9.0, tflops=77.0, mfu=0.25, tokens_per_s=32_000.0) | {"samples_per_s": 64.0}
    first = step(1, 1.0, tflops=1.0, memory_gib=90.0)
    steps = [step(at, at / 2, data_s=0.1, optimizer_s=0.05) for at in range(2, 30)]
    found = summarize(points(START, first, START, *steps, slow | {"memory_gib": 38.0}))
    told = found.throughput
    assert (told.peak_tflops, told.precision, told.memory_gib) == (312.0, "bf16", 38.0)
    assert told.tflops == pytest.approx(154.0)
    assert told.mfu == pytest.approx(0.5)
    assert told.tokens_per_s == pytest.approx(64_000)
    assert dict(told.parts) == pytest.approx({"data_s": 0.2, "optimizer_s": 0.1})


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ({"step": 1, "samples_per_s": 5.0},),
        (START, {"step": 1, "samples_per_s": 0.0, "tflops": "many"}),
        (START | {"peak_tflops": "x", "precision": 3}, {"step": 3, "mfu": 0.5, "data_s": 1.0}),
        ({"step": 1, "seconds": 1.0}, {"step": 9, "seconds": 1.0}, {"step": 10, "seconds": 0.0}),
    ],
)
def test_what_is_not_told_is_not_known(lines: tuple[dict[str, Any], ...]) -> None:
    told = summarize(points(*lines)).throughput
    assert told == Throughput(peak_tflops=told.peak_tflops, precision=told.precision)


def test_the_figures_come_before_other_numbers() -> None:
    line = step(1, 1.0, a=1.0, mfu=0.5, tflops=1.0, tokens_per_s=3.0) | {"lr": 0.1}
    names = [one.name for one in series_of(points(line))]
    assert names == ["loss", "samples_per_s", "lr", "tokens_per_s", "tflops", "mfu", "a"]
