"""What a run's metrics come to: a summary, the curve of its loss, each number over its steps."""

import json
import math
import sys

from hypothesis import example, given
from hypothesis import strategies as st

from lumitui.app.explain import run_facts
from lumitui.app.explain.training_summary import Summary
from lumitui.app.follow.results.summary import (
    MOST_SERIES,
    Curve,
    curve,
    series_of,
    summarize,
    thinned_curve,
)
from lumitui.app.history.metric_points import MetricPoint, parse_line


def points(*lines: dict[str, object]) -> list[MetricPoint]:
    parsed = [parse_line(json.dumps(line).encode()) for line in lines]
    assert None not in parsed
    return [point for point in parsed if point is not None]


def steps(first: int, count: int, speed: float) -> list[dict[str, object]]:
    return [
        {
            "step": n,
            "epoch": 1,
            "loss": 1 / max(n, 1),
            "lr": 0.1,
            "samples_per_s": speed,
            "seconds": n,
        }
        for n in range(first, first + count)
    ]


def start(world_size: int = 8) -> dict[str, object]:
    return {"event": "start", "world_size": world_size, "global_batch": 32 * world_size}


def test_the_summary_leaves_the_warm_up_out() -> None:
    found = summarize(points(start(), *steps(1, 5, 10.0), *steps(6, 2, 1000.0)))
    assert found.samples_per_s == 1000.0
    assert (found.steps, found.last_loss) == (7, 1 / 7)
    assert (found.world_size, found.global_batch, found.seconds) == (8, 256, 7)


def test_a_run_shorter_than_the_warm_up_has_its_own_speed() -> None:
    assert summarize(points(*steps(1, 3, 50.0))).samples_per_s == 50.0


def test_of_a_step_trained_twice_the_later_counts_and_seconds_add_up() -> None:
    again = [line | {"loss": 9.0} for line in steps(8, 2, 1000.0)]
    found = summarize(points(start(), *steps(1, 10, 1000.0), start(), *again))
    assert (found.steps, found.last_loss, found.seconds) == (9, 9.0, 19)


def test_speeds_are_those_of_the_last_world_size() -> None:
    found = summarize(points(start(8), *steps(1, 20, 100.0), start(16), *steps(21, 20, 190.0)))
    assert (found.samples_per_s, found.world_size) == (190.0, 16)


def test_the_last_accuracy_told_stands_and_the_end_line_does_not_hide_it() -> None:
    found = summarize(
        points({"event": "eval", "step": 5, "test_accuracy": 0.9},
               {"event": "end", "step": 5, "test_accuracy": None})
    )  # fmt: skip
    assert found.test_accuracy == 0.9


def test_nothing_is_an_empty_summary() -> None:
    assert summarize([]) == Summary(0, None, None, None, None, None, None)


def test_a_step_without_loss_leaves_no_loss() -> None:
    assert summarize(points({"step": 1, "loss": 1.0}, {"step": 2})).last_loss is None


_value = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.none())
_name = st.sampled_from(["event", "step", "loss", "samples_per_s", "world_size", "seconds", "x"])
_line = st.binary() | st.dictionaries(_name, _value).map(lambda data: json.dumps(data).encode())


@given(st.lists(_line, max_size=30))
def test_garbage_never_raises(lines: list[bytes]) -> None:
    parsed = [point for line in lines if (point := parse_line(line)) is not None]
    found = summarize(parsed)
    assert found.samples_per_s is None or math.isfinite(found.samples_per_s)


def test_a_step_that_is_written_again_counts_once() -> None:
    points = [MetricPoint(step=step, loss=9.0) for step in (1, 2, 3)]
    points += [MetricPoint(event="start"), MetricPoint(step=2, loss=2.0)]
    points += [MetricPoint(step=3, loss=1.0), MetricPoint(event="eval", step=3, loss=7.0)]
    assert curve(points) == Curve(1, 3, (9.0, 2.0, 1.0))
    assert curve([MetricPoint(event="start")]) == Curve()


@example([sys.float_info.max] * 3, 1)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)), st.integers(1, 50))
def test_thinned_values_stay_between_the_bounds(values: list[float], most: int) -> None:
    found = thinned_curve(values, most)
    assert len(found) == min(len(values), most)
    assert all(map(math.isfinite, found))
    if values and len(values) <= most:
        assert found == tuple(values)
    assert not values or max(found) == max(values)


def test_a_peak_of_one_step_stays_in_a_long_curve() -> None:
    values = [45.0, *[8.0] * 1000, 0.5, *[7.0] * 1000]
    assert (thinned_curve(values, 100)[0], min(thinned_curve(values, 100))) == (45.0, 0.5)
    assert thinned_curve([0.0, 1.0] * 100, 10)[1:] == (0.5,) * 9


@given(
    first=st.sampled_from([0, 1]),
    trained=st.integers(1, 60),
    again=st.integers(0, 20),
    speed=st.floats(0.1, 1e6),
)
def test_the_steps_are_those_that_were_trained(
    first: int, trained: int, again: int, speed: float
) -> None:
    """A trainer may count from 0 or 1; a resumed attempt writes some steps again."""
    back = min(again, trained)
    repeated = steps(first + trained - back, back, speed)
    found = summarize(points(start(), *steps(first, trained, speed), start(), *repeated))
    assert found.steps == trained
    drawn = curve(points(*steps(first, trained, speed)))
    assert drawn.last_step - drawn.first_step + 1 == trained
    assert run_facts.metrics(found, 0)[0] == ("steps", str(trained))


LINES = (
    b'{"event": "start", "world_size": 8}',
    b'{"step": 1, "loss": 2.0, "lr": 0.1, "samples_per_s": 900, "acc": 0.2, "seconds": 3}',
    b'{"step": 2, "loss": 1.0, "lr": 0.1, "samples_per_s": 950, "acc": 0.6, "note": "text"}',
    b'{"event": "eval", "test_accuracy": 0.7}',
    b'{"step": 2, "loss": 0.5, "acc": 0.5}',
)


def test_each_number_is_a_series_and_the_later_line_of_a_step_counts() -> None:
    points = [point for line in LINES if (point := parse_line(line))]
    series = {one.name: one for one in series_of(points)}
    assert list(series) == ["loss", "samples_per_s", "lr", "test_accuracy", "acc"]
    loss, acc = series["loss"], series["acc"]
    assert (loss.last, loss.low, loss.high) == (0.5, 0.5, 2.0)
    assert loss.curve.values == (2.0, 0.5) and acc.curve.values == (0.2, 0.5)
    assert series["test_accuracy"].curve.first_step == 2, "its line has no step of its own"
    bounds = [(one.last, one.low, one.high) for one in (acc, series["lr"])]
    assert bounds == [(0.5, 0.2, 0.5), (0.1, 0.1, 0.1)]


def test_a_trainer_that_writes_hundreds_of_numbers_shows_the_first() -> None:
    line = '{"step": 1, "loss": 1, ' + ", ".join(f'"n{at:03d}": {at}' for at in range(300)) + "}"
    point = parse_line(line.encode())
    assert point is not None
    names = [one.name for one in series_of([point])]
    assert names[:2] == ["loss", "n000"] and len(names) == MOST_SERIES
