"""Runs compared by their throughput."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.explain.training_summary import Summary, TrainedRun, speedups


def summary(speed: float | None, world_size: int | None) -> Summary:
    return Summary(10, 0.1, speed, None, 10.0, world_size, None)


def test_runs_are_compared_with_the_first_that_has_a_throughput() -> None:
    rows = speedups(
        [
            TrainedRun("none", 1, summary(None, 8)),
            TrainedRun("one", 1, summary(1000.0, 8)),
            TrainedRun("four", 4, summary(3160.0, 32)),
            TrainedRun("nodes", 2, summary(1500.0, None)),
        ]
    )
    assert [row.run for row in rows] == ["none", "one", "four", "nodes"]
    assert (rows[0].speed_up, rows[0].efficiency) == (None, None)
    assert (rows[1].speed_up, rows[1].efficiency) == (1.0, 100.0)
    assert rows[2].speed_up == pytest.approx(3.16)
    assert rows[2].efficiency == pytest.approx(79.0)
    assert rows[3].efficiency == pytest.approx(75.0)


_summaries = st.builds(
    summary,
    st.none() | st.floats(min_value=0, allow_infinity=False),
    st.none() | st.integers(0, 10**6),
)


@given(st.lists(st.builds(TrainedRun, st.text(), st.integers(0, 10**6), _summaries)))
def test_odd_summaries_never_raise(runs: list[TrainedRun]) -> None:
    assert [row.run for row in speedups(runs)] == [item.run for item in runs]
