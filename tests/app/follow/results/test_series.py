"""Every number of metrics.jsonl over its steps."""

from lumitui.app.follow.results.summary import MOST_SERIES, series_of
from lumitui.app.history.metric_points import parse_line

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
