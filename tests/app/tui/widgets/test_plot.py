"""The chart: any lines fit any room, its axes have round numbers, and it reads without colours."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.follow.results.summary import Curve
from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.widgets.chart import Chart, lines_of
from lumitui.app.tui.widgets.plot import AxisScale, Plot, PlotLine, labels, smoothed, sparkline
from tests.support.program.driven_tui import sees, shown

_positive = st.floats(1e-9, 1e18)
_points = st.lists(st.tuples(_positive, st.floats()), max_size=60).map(sorted)
_bars = st.lists(st.tuples(_positive, _positive, _positive).map(sorted).map(tuple), max_size=3)
_lines = st.builds(
    PlotLine, st.text(max_size=6), _points, st.just("cyan"), st.sampled_from(["", "a"]), _bars,
    st.sampled_from(["", "●"]), st.booleans(),
)  # fmt: skip


@given(st.lists(_lines, max_size=4), st.integers(0, 200), st.integers(0, 40),
       st.booleans(), st.booleans(), st.none() | _positive)  # fmt: skip
def test_any_lines_fit_any_room(
    lines: list[PlotLine], width: int, height: int, log_y: bool, log_x: bool, cursor: float | None
) -> None:
    plot = Plot(lines, width, height, log_y, log_x, cursor)
    rows = plot.rows()
    assert len(rows) in (0, height) and all(len(row.plain) <= width for row in rows)
    assert plot.stops() == sorted(set(plot.stops()))


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e9), st.integers(3, 9))
def test_ticks_are_few_round_and_within_the_axis(low: float, span: float, most: int) -> None:
    scale = AxisScale(low, low + span)
    ticks = scale.ticks(most)
    assert 1 <= len(ticks) <= most + 1
    assert all(scale.low - span / 1e6 <= tick <= scale.high + span / 1e6 for tick in ticks)
    for before, after in pairwise(ticks):
        assert f"{after - before:.0e}"[0] in "125"


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e9), st.integers(9, 40))
def test_numbers_of_an_even_axis_are_whole_rows_apart(low: float, span: float, rows: int) -> None:
    scale = AxisScale(low, low + span).even(rows)
    assert scale.low <= low and low + span <= scale.high + span / 1e6
    ticks = scale.ticks(rows // 3) if scale.step else []
    assert not scale.step or len(ticks) > 1, "one number says nothing of the distances"
    places = [(4 * rows - 1) * scale.share(tick) for tick in ticks]
    for before, after in pairwise(places):
        assert (after - before) % 4 == pytest.approx(0, abs=1e-3) or (after - before) % 4 > 3.999


def test_labels_have_the_decimals_that_tell_them_apart() -> None:
    assert labels([0.5, 1.0, 1.5]) == ["0.5", "1.0", "1.5"]
    assert labels(AxisScale(600, 9648, True).ticks(6)) == ["1,000", "2,000", "5,000"]
    assert labels([0.0, 50_000.0]) == ["0", "50,000"]


def test_a_line_is_drawn_in_its_colour_from_its_first_to_its_last_step() -> None:
    (line,) = lines_of([Curve(10, 1200, (4.0, 3.0, 2.0, 1.0))], ["loss"])
    rows = [row.plain for row in Plot([line], 40, 8).rows()]
    drawn = [row[2:] for row in rows[:-2]]
    assert drawn[0][0] > "⠀" and drawn[-1][-3] > "⠀", "falls from the left to the right"
    assert [row[:2] for row in rows if row[0] != " "] == ["4┤", "3┤", "2┤", "1┤"]
    assert rows[-1].split() == ["500", "1,000"]
    assert Plot([line], 40, 8, over="step").rows()[-1].plain.split() == ["step", "500", "1,000"]


def test_the_name_of_the_x_axis_stands_where_no_number_is() -> None:
    for first, last in ((0, 990), (0, 1000), (10, 1000), (10, 990)):
        (line,) = lines_of([Curve(first, last, (4.0, 1.0))], ["loss"])
        row = Plot([line], 60, 8, over="step").rows()[-1].plain
        numbers = Plot([line], 60, 8).rows()[-1].plain.split()
        assert sorted(row.split()) == sorted([*numbers, *["step"] * ("step" in row)])
        assert ("step" in row) == ((first, last) != (0, 1000))


def test_several_lines_have_letters_where_there_are_no_colours() -> None:
    curves = [Curve(1, 10, (0.0, 9.0)), Curve(1, 10, (9.0, 0.0)), Curve()]
    text = "\n".join(row.plain for row in Plot(lines_of(curves, "xyz"), 40, 8).rows())
    assert "a" in text and "b" in text and "c" not in text


def test_the_line_in_front_keeps_two_dashes_of_three_where_others_coincide_with_it() -> None:
    front, *others = lines_of([Curve(1, 10, (0.0, 9.0))] * 3, "xyz")
    rows = Plot([front, *(replace(line, is_behind=True) for line in others)], 80, 8).rows()
    alone = Plot([front], 80, 8).rows()
    cells = {line.name: 0 for line in (front, *others)}
    for row in rows:
        for span in row.spans:
            for line in (front, *others):
                if str(span.style) in (line.style, f"dim {line.style}"):
                    cells[line.name] += span.end - span.start
    whole = sum(
        span.end - span.start for row in alone for span in row.spans if span.style == front.style
    )
    assert 0.5 * whole < cells["x"] < 0.8 * whole
    assert cells["y"] and cells["z"], "the others are seen"


def test_lines_that_coincide_are_dashes_and_letters_are_in_the_order_of_the_ends() -> None:
    ends = (1.0, 1.0, 1.02, 1.01)
    lines = lines_of([Curve(1, 10, (9.0, end)) for end in ends], "wxyz")
    rows = Plot(lines, 80, 8).rows()
    styles = {str(span.style) for row in rows for span in row.spans}
    assert {line.style for line in lines} <= styles, "each is seen"
    letters = [(line.mark, at) for at, row in enumerate(rows[:-2]) for line in lines
               if line.mark in row.plain]  # fmt: skip
    assert [mark for mark, _ in letters] == ["c", "d", "a", "b"]


def test_smoothing_begins_at_the_curve_and_keeps_gaps() -> None:
    points = [(0.0, 4.0), (1.0, float("nan")), (2.0, 0.0)]
    assert smoothed(points, 0.5)[0] == (0.0, 4.0)
    assert smoothed(points, 0.5)[2][1] == pytest.approx(4 / 3)
    assert smoothed(points, 0.0)[2] == (2.0, 0.0)


@pytest.mark.parametrize("values", [[1e308] * 9, [1e308, -1e308, 0.0], [5e-324, 0.0], [0.0], []])
def test_losses_beyond_all_measure_are_drawn(values: list[float]) -> None:
    assert len(sparkline(values, 3)) in (0, 3)
    lines = [PlotLine("", list(enumerate(values)))]
    assert all(len(row.plain) <= 40 for row in Plot(lines, 40, 9, log_y=True).rows())


def test_a_little_curve_falls_with_its_values_and_leaves_the_warm_up_out() -> None:
    assert sparkline([3.0, 2.0, 1.0, 0.0], 4) == "▇▅▃▁"
    assert sparkline([3.0, 2.0, float("nan"), 0.0], 4) == "▇▅ ▁"
    assert sparkline([0.0, *[9.0, 8.0] * 10], 20) == "▇▁" * 10


async def test_few_points_are_smoothed_only_on_request(settings: Settings) -> None:
    app = LumiApp(settings)
    async with app.run_test(size=(80, 30)) as pilot:
        chart = Chart("loss", smoothing=2)
        await app.screen.mount(chart)
        for count in (12, 60):
            curve = Curve(1, count, tuple(1 / at for at in range(1, count + 1)))
            chart.show(lines_of([curve], ["falls"]))
            await pilot.pause()
            assert ("smoothed 0.9" in chart.render().plain) == (count == 60)
        chart.show(lines_of([Curve(1, 3, (4.0, 2.0, 1.0))], ["short"]))
        chart.focus()
        await pilot.press("A")
        await pilot.pause()
        assert "smoothed 0.6" in chart.render().plain


async def test_keys_read_values_smooth_and_change_the_axis_of_all_charts(
    settings: Settings,
) -> None:
    app = LumiApp(settings)
    async with app.run_test(size=(80, 30)) as pilot:
        charts = [Chart(name) for name in ("loss", "accuracy")]
        for chart in charts:
            chart.styles.height = 12
            await app.screen.mount(chart)
            chart.show(lines_of([Curve(1, 4, (1000.0, 100.0, 10.0, 1.0)), Curve(1, 4, (5.0,) * 4)],
                                ["falls", "stays"]))  # fmt: skip
        charts[0].focus()
        await sees(pilot, r"loss last +a falls 1 +b stays 5\n[\s\S]*accuracy last +a falls 1 ")
        await pilot.press("left", "left")
        at_three = r"loss +step 3 +a falls 10 +b stays 5\n[\s\S]*accuracy +step 3 +a falls 10 "
        await sees(pilot, at_three)
        await pilot.press("right", "right", "right")
        await sees(pilot, r"accuracy +step 4 +a falls 1 ")
        await pilot.press("Y", "A")
        await sees(pilot, r"stays 5 +log +smoothed 0.6\n[\s\S]*log +smoothed 0.6\n")
        assert "  100┤" in shown(pilot)
        await pilot.press("Y", "A", "A", "A")
        await sees(pilot, r"falls 1 +b stays 5\n")


@given(st.floats(1e-9, 1e9), st.floats(1.5, 50), st.integers(3, 40))
def test_a_label_of_a_log_axis_is_true_for_the_row_that_it_labels(
    low: float, times: float, rows: int
) -> None:
    scale = AxisScale(low, low * times, is_log=True).even(rows)
    half_a_dot = (scale.high / scale.low) ** (0.5 / (4 * rows - 1)) * (1 + 1e-9)
    assert scale.low <= low * half_a_dot and low * times <= scale.high * half_a_dot
    for tick in scale.ticks(4):
        if f"{tick:.5e}".startswith("1.00000"):
            dot = scale.share(tick) * (4 * rows - 1)
            assert dot % 4 == pytest.approx(1.5, abs=1e-3), "in the middle of four dots"
