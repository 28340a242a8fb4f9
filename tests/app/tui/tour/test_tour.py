"""The tour: each stop names the keys that lead to the next one."""

from collections.abc import Iterator

import pytest

from lumitui.app.runs.tour.recorded_runs import RecordedRuns, recorded_runs
from lumitui.app.tui.tour.tour_app import TourApp
from lumitui.app.tui.tour.tour_line import line_text
from lumitui.app.tui.tour.tour_stops import STOPS
from tests.support.program.driven_tui import sees, shown, until
from tests.support.program.toured import stops


@pytest.fixture
def recorded() -> Iterator[RecordedRuns]:
    with recorded_runs() as runs:
        yield runs


def test_every_line_fits_a_terminal_of_80_columns() -> None:
    assert len(STOPS) == 8
    for number in range(len(STOPS) + 1):
        assert line_text(number, 80).cell_len <= 80, line_text(number, 80).plain


async def test_the_keys_of_each_stop_lead_to_the_next_one(recorded: RecordedRuns) -> None:
    app = TourApp(recorded)
    async with app.run_test(size=(120, 40)) as pilot:
        await sees(pilot, "lumitui: a recording")
        async for number in stops(app, pilot, 0.5):
            await sees(pilot, f"Tour {number + 1}/8" if number < len(STOPS) else "Tour end")
    assert app.defect is None


async def test_a_stop_is_completed_only_at_its_own_run(recorded: RecordedRuns) -> None:
    app, own = TourApp(recorded), recorded.history.page()[0].id
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "Tour 1/8 +enter +opens the run")
        await pilot.press("down", "down", "enter")
        await sees(pilot, rf"queued[\s\S]*Tour 1/8 +1, ↑ ↓ +choose {own}, this stop's run")
        await pilot.pause(1)
        assert app.stop == 0
        await pilot.press("1", "up", "up")
        await sees(pilot, "Tour 1/8 +enter +opens the run")
        await pilot.press("enter")
        await sees(pilot, "Tour 2/8 +l +follows")


async def test_the_keys_reach_the_end_of_the_scaling_basis(recorded: RecordedRuns) -> None:
    app, own = TourApp(recorded), recorded.history.page()[0].id
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "Tour 1/8")
        app.open_scaling(own)
        await sees(pilot, "Take 2 nodes")
        await sees(pilot, r"predicted\n[\s\S]*Tour 1/8 .*\n.* q Quit")
        words = app.screen.query_one("#words")
        await until(pilot, lambda: words.max_scroll_y > 0, "a text that is too long", 10)
        await pilot.press("down")
        await until(pilot, lambda: words.scroll_offset.y == 1, "the next line", 10)
        await pilot.press(*["pagedown"] * 15)
        await until(pilot, lambda: words.scroll_offset.y == words.max_scroll_y, "the end", 10)
        await pilot.press("up")
        await until(pilot, lambda: words.scroll_offset.y < words.max_scroll_y, "back", 10)


async def test_the_line_is_closed_and_opened_again(recorded: RecordedRuns) -> None:
    app = TourApp(recorded)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "Tour 1/8")
        await pilot.press("ctrl+t")
        await until(pilot, lambda: "Tour 1/8" not in shown(pilot), "closed")
        await pilot.press("3", "ctrl+t")
        await sees(pilot, "Tour 1/8")


async def test_a_send_is_answered_with_what_to_run_instead(recorded: RecordedRuns) -> None:
    app = TourApp(recorded)
    async with app.run_test(size=(100, 40)) as pilot:
        app.open_job(recorded.project / "vit.yaml")
        await sees(pilot, "requests 1 node")
        await pilot.press("s")
        await sees(pilot, "y Yes")
        await pilot.press("y")
        await sees(pilot, r"The tour only shows[\s\S]*This is a recording[\s\S]*lumitui demo")
    assert app.defect is None
