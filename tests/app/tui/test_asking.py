"""What a widget asks: one answer to the one who asked, the last question's, and errors once."""

import threading
from pathlib import Path

from textual.widgets import Static

from lumitui.app.job.settings import Settings
from lumitui.app.runs import Runs
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.asking import ask, forget
from lumitui.app.tui.dialogs.notice_dialogs import ErrorDialog
from lumitui.remote.site.errors import LinkError, LumiError
from tests.support.program.driven_tui import sees, until


async def test_the_last_question_of_a_key_is_answered_and_no_other(settings: Settings) -> None:
    app, held, came = LumiApp(settings), threading.Event(), list[object]()

    def slow(runs: Runs) -> str:
        held.wait(10)
        return "first"

    async with app.run_test() as pilot:
        await app.screen.mount(pane := Static())
        ask(pane, slow, came.append, key="a")
        ask(pane, lambda runs: "second", came.append, key="a")
        await until(pilot, lambda: came == ["second"], "the answer")
        ask(pane, slow, came.append, key="a")
        forget(pane, "a")
        ask(pane, slow, came.append, key="b")
        ask(pane, slow, came.append)
        held.set()
        await until(pilot, lambda: len(came) == 3, "those that nothing took the place of")
        await pilot.pause(0.2)
    assert came == ["second", "first", "first"]


async def test_who_has_gone_is_answered_nothing_and_no_error_is_shown(settings: Settings) -> None:
    app, held, came = LumiApp(settings), threading.Event(), list[object]()

    def wrong(runs: Runs) -> str:
        held.wait(10)
        raise LinkError("The link is down.", "Wait.")

    async with app.run_test() as pilot:
        await app.screen.mount(pane := Static())
        ask(pane, wrong, came.append, failed=came.append)
        await pane.remove()
        held.set()
        await until(pilot, lambda: not app.workers, "the end of the call")
        await pilot.pause(0.2)
        assert not came and not isinstance(app.screen, ErrorDialog)


async def test_an_error_is_shown_once_and_in_one_place(settings: Settings, tmp_path: Path) -> None:
    app, failed, here = LumiApp(settings), list[LumiError](), threading.get_ident()
    threads = list[int]()

    def wrong(runs: Runs) -> None:
        threads.append(threading.get_ident())
        raise LinkError("The link is down.", "Wait.")

    def broken(runs: Runs) -> None:
        raise ZeroDivisionError("by 0")

    async with app.run_test() as pilot:
        ask(app.screen, wrong, failed=failed.append, quietly=True)
        await until(pilot, lambda: len(failed) == 1, "the one who asked shows it")
        assert not isinstance(app.screen, ErrorDialog) and threads[0] != here
        ask(app.screen, wrong, failed=failed.append)
        await sees(pilot, "The link is down")
        assert len(failed) == 2
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, ErrorDialog), "the end of the dialog")
        # A defect is never kept quiet.
        ask(app.screen, broken, failed=failed.append, quietly=True)
        await sees(pilot, "internal error: ZeroDivisionError: by 0")
        assert len(failed) == 3
