"""The log: its bytes become bounded, safe lines, which follow the end only while on the screen."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Size

from lumitui.app.follow.log_follower import LogBegan, LogEvent, LogGrew, LogHeard, LogLost
from lumitui.app.job.settings import Settings
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.panes.log_pane import LogPane, LogPlace
from lumitui.app.tui.screens.run_screen import RunScreen
from lumitui.app.tui.widgets.log import log_view
from lumitui.app.tui.widgets.log.log_view import LogView
from lumitui.app.tui.widgets.log.log_window import KEPT_LINES
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import sees, shown, until


async def test_the_log_is_bounded_and_does_not_jump(settings: Settings) -> None:
    async with LumiApp(settings).run_test(size=(60, 20)) as pilot:
        view = LogView()
        await pilot.app.screen.mount(view)
        view.focus()
        await pilot.pause()
        view.feed(b"".join(b"line %d\n" % number for number in range(KEPT_LINES + 1000)))
        view.scroll_end(animate=False, force=True, immediate=True)  # before there is a bar
        await until(pilot, lambda: view.is_vertical_scroll_end, "the end")
        await until(pilot, lambda: view.vertical_scrollbar.position == view.scroll_y, "its bar")
        assert len(view.lines) == KEPT_LINES and view.lines[0] == "line 1000"
        await pilot.press("k", "k")
        assert not view.follow
        await pilot.pause(0.1)
        first = view.lines[view.scroll_offset.y]
        view.feed(b"one more\n" * 10)
        await pilot.pause(0.2)
        assert view.lines[view.scroll_offset.y] == first, "what is read stays where it is"
        assert view.window.unseen == 10
        await pilot.press("G")
        await until(pilot, lambda: view.follow and view.is_vertical_scroll_end, "the end again")


async def test_a_log_that_opens_while_the_app_ends_is_no_error(settings: Settings) -> None:
    class NeverComposed(LogPane):
        def compose(self) -> ComposeResult:
            return ()

    app = LumiApp(settings)
    async with app.run_test(size=(60, 20)) as pilot:
        app.log_places["vit-1"] = LogPlace(1, None, 3, "loss")
        await app.screen.mount(pane := NeverComposed("vit-1"))
        await pilot.pause()
        assert pane.check_action("rank", (1,)) is False


async def test_a_jump_wins_over_the_end_that_a_followed_log_was_going_to(
    settings: Settings,
) -> None:
    async with LumiApp(settings).run_test(size=(60, 20)) as pilot:
        view = LogView()
        await pilot.app.screen.mount(view)
        lines = [b"line %d\n" % number for number in range(500)]
        view.feed(b"".join(lines))
        await until(pilot, lambda: view.is_vertical_scroll_end, "the end")
        view.action_to_end()  # it scrolls when the screen has been drawn
        assert view.go_to(len(b"".join(lines[:100])))
        await pilot.pause(0.1)
        assert "line 100" in [line.text for line in view.on_screen()] and not view.follow
        view.action_to_end()
        await until(pilot, lambda: view.is_vertical_scroll_end, "the end again")


async def test_a_jump_to_a_cause_shows_the_traceback_above_it(settings: Settings) -> None:
    async with LumiApp(settings).run_test(size=(60, 30)) as pilot:
        view = LogView()
        await pilot.app.screen.mount(view)
        lines = [b"line %d\n" % number for number in range(500)]
        view.feed(b"".join(lines))
        await until(pilot, lambda: view.scroll_y and view.is_vertical_scroll_end, "the end")
        view.thirds = 2
        view.go_to(len(b"".join(lines[:100])))
        await pilot.pause(0.1)
        shown_lines = [line.text for line in view.on_screen()]
        assert shown_lines.index("line 100") == view.scrollable_content_region.height * 2 // 3


async def test_long_lines_are_wrapped_on_demand(settings: Settings) -> None:
    async with LumiApp(settings).run_test(size=(60, 20)) as pilot:
        view = LogView()
        await pilot.app.screen.mount(view)
        view.focus()
        view.feed(b"kurz\n")
        await until(pilot, lambda: not view.offers("toggle_wrap"), "no key: nothing is cut")
        view.feed("\n".join(["漢" * 100, "e"]).encode())
        await until(pilot, lambda: view.virtual_size.height == 3, "a row for each line")
        await pilot.press("w")
        await until(pilot, lambda: view.virtual_size.height >= 6, "more rows")
        assert view.lines == ["kurz", "漢" * 100, "e"] and view.offers("toggle_wrap")
        await pilot.press("w")
        await until(pilot, lambda: view.virtual_size.height == 3, "three rows")


async def test_enter_opens_one_fold_after_the_other_then_closes_all_and_a_jump_opens_its_own(
    settings: Settings,
) -> None:
    noise = [
        b"cpu-bind=MASK - nid1, task 0 0 [1]: mask 0xfe set\n" * 4,
        b"0: nid1:7:9 [0] NCCL INFO Channel 00/32\n" * 5,
    ]
    async with LumiApp(settings).run_test(size=(60, 20)) as pilot:
        view = LogView()
        await pilot.app.screen.mount(view)
        view.focus()
        view.feed(b"first\n" + b"between\n".join(noise) + b"last\n")

        def has(rows: int) -> Callable[[], bool]:
            return lambda: view.virtual_size.height == rows

        await until(pilot, has(5), "two folds")
        await sees(pilot, r"(?s)first.*▸ 4 lines of cpu-bind.*between.*▸ 5 lines of NCCL.*last")
        for rows in (8, 12, 5):
            await pilot.press("enter")
            await until(pilot, has(rows), f"{rows} rows")
        assert view.go_to(6 + len(noise[0]) + 8 + 10), "into the second fold"
        await until(pilot, has(9), "it alone is open")


class OnePane(App[int]):
    """An app with nothing but the pane; of the log comes what a test tells."""

    def __init__(self) -> None:
        super().__init__()
        self.pane, self.log_places = LogPane("demo-000000"), dict[str, LogPlace]()
        self.ending = threading.Event()
        self.runs = SimpleNamespace(show_log=self._show_log)
        self.followed: list[int] = []
        """From which byte the log was asked for, each time."""

    def compose(self) -> ComposeResult:
        yield self.pane

    def on_unmount(self) -> None:
        self.ending.set()

    def tell(self, event: LogEvent, request: int = 1) -> None:
        self.pane.tell(request, event)

    def _show_log(
        self, run_id: str, *, attempt: int | None, offset: int, stop: Callable[[], bool]
    ) -> Iterator[LogEvent]:
        self.followed.append(offset)
        while not stop():
            time.sleep(0.01)
        yield from ()


async def test_news_still_on_its_way_does_not_stop_the_log_from_being_followed_again() -> None:
    app = OnePane()
    async with app.run_test() as pilot:
        app.pane.follow()
        await until(pilot, lambda: len(app.followed) == 1, "the first request")
        app.tell(LogBegan(1, 0))
        app.tell(LogGrew(b"one\n", 4))
        await pilot.pause()
        app.pane.unfollow()
        app.tell(LogGrew(b"two\n", 8))
        await pilot.pause()
        app.pane.follow()
        await until(pilot, lambda: len(app.followed) == 2, "the second request")
        assert app.followed[1] == 4, "what was dropped comes again"
        assert app.pane.query_one(LogView).lines == ["one"]


@pytest.mark.parametrize(("lines", "soon"), [
    (b"3: loss 0.1\n", False), (b"3: error: a bad file, skipped\n", False),
    (b"slurmstepd: error: *** STEP 71.0 ON nid1 CANCELLED AT 2026 ***\n", True),
    (b"srun: error: nid1: task 3: Exited with exit code 1\n", True),
    (b"3: [rank3]: Traceback (most recent call last):\n", True),
])  # fmt: skip
async def test_a_log_that_shows_the_end_has_its_site_polled_soon(
    settings: Settings, lines: bytes, *, soon: bool
) -> None:
    app = LumiApp(settings)
    async with app.run_test(size=(80, 24)) as pilot:
        run = replace(a_run("demo-000000"), state=State.RUNNING)
        app.runs.history.begin(run)
        screen = RunScreen(app.runs, run.id, "log")
        await app.push_screen(screen)
        await until(pilot, lambda: screen.query(LogView), "the log")
        pane, asked = screen.query_one(LogPane), list[str]()
        app.schedule.hasten = lambda name, now: asked.append(name)  # type: ignore[method-assign]
        pane.tell(pane._number, LogBegan(1, 0))
        for part in (lines, lines):
            pane.tell(pane._number, LogGrew(part, len(part)))
        await pilot.pause()
        assert asked == ([run.site] if soon else []), "once"
        pane.tell(pane._number, LogLost(time.time(), ""))
        await pilot.pause()
        assert app.schedule.site(run.site).failing_since is not None, "for the title bar"


async def test_the_line_below_a_log_says_what_its_link_is_like_and_the_lines_stay() -> None:
    app = OnePane()
    async with app.run_test(size=(80, 24)) as pilot:
        app.pane.follow()
        await until(pilot, lambda: app.followed, "the request")
        tell = app.tell
        await sees(pilot, r"waiting for an answer \ds")
        assert "live" not in shown(pilot), "nothing was heard yet"
        tell(LogLost(time.time() - 12, "It refused."))
        await sees(pilot, "◌ reconnecting 1[23]s: It refused")
        tell(LogBegan(1, 0))
        tell(LogGrew(b"one\n", 4))
        await sees(pilot, "● live")
        await sees(pilot, "following")
        app.pane._grown -= 47
        await sees(pilot, "● live .*no new line for 40s")
        tell(LogHeard(time.time() - 2))
        await sees(pilot, "● live [23]s ago")
        tell(LogLost(time.time() - 180, ""))
        await sees(pilot, r"○ offline since \d\d:\d\d")
        assert "following" not in shown(pilot) and app.pane.query_one(LogView).lines == ["one"]
        tell(LogGrew(b"", 4))
        await sees(pilot, r"● live  last lines of 1 \(4 B\)")
        app.pane.draw(replace(a_run("ended-000001"), state=State.DONE))
        await sees(pilot, "reading its end  last lines of 1")
        assert "live" not in shown(pilot) and "following" not in shown(pilot)


async def test_a_log_opens_at_its_newest_lines_and_its_line_says_so_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_view, "BETWEEN", 60.0)
    app = OnePane()
    async with app.run_test(size=(80, 24)) as pilot:
        app.pane.follow()
        await sees(pilot, r"waiting for an answer \ds")
        log = b"".join(b"line %d\n" % number for number in range(1, 101))
        app.tell(LogBegan(1, 0))
        app.tell(LogGrew(log, len(log)))
        await sees(pilot, r"(?s)line 99\n.*line 100\n.*live  last lines of 100 \(")


async def test_a_log_that_grows_all_the_time_is_drawn_now_and_then(settings: Settings) -> None:
    async with LumiApp(settings).run_test(size=(60, 20)) as pilot:
        view, draws = LogView(), list[int]()
        await pilot.app.screen.mount(view)
        view.feed(b"".join(b"line %d\n" % number for number in range(100)))
        await until(pilot, lambda: view.is_vertical_scroll_end, "the end")
        set_size = view.set_virtual_size

        def counted(size: Size) -> bool:
            draws.append(1)
            return set_size(size)

        view.set_virtual_size = counted  # type: ignore[method-assign]
        for number in range(100):
            view.feed(b"more %d\n" % number)
        await until(pilot, lambda: view.scroll_offset.y == 200 - view.size.height, "the last line")
        assert len(draws) <= 3
