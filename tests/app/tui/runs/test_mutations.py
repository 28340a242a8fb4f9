"""A send and a cancel are asked for first, shown while under way, and finished before leaving."""

import asyncio
import sys
import threading
import time
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.app import App
from textual.widgets import Static
from textual.worker import Worker

from lumitui.app.history.run import Run
from lumitui.app.job.settings import Settings
from lumitui.app.runs import Runs
from lumitui.app.tui import messages
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs import sending
from lumitui.app.tui.dialogs.confirm_dialog import Confirm
from lumitui.app.tui.dialogs.notice_dialogs import ErrorDialog
from lumitui.app.tui.dialogs.resubmit_dialog import ResubmitDialog
from lumitui.app.tui.dialogs.sending import SendingDialog
from lumitui.app.tui.screens.new_screen import NewScreen
from lumitui.app.tui.screens.run_screen import RunScreen
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import LinkError
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import (
    ended,
    kept,
    runs_of,
    screen_lines,
    sees,
    sent,
    shown,
    until,
)


async def test_a_hidden_send_is_seen_and_not_repeated_by_a_slip(
    settings: Settings, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = LumiApp(settings, project / "long.yaml")
    released, real = threading.Event(), app.runs.send

    def slow(*args: Any, **kwargs: Any) -> Run:
        assert released.wait(60)
        return real(*args, **kwargs)

    monkeypatch.setattr(app.runs, "send", slow)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "requests")
        await pilot.press("s", "y")
        await until(pilot, lambda: isinstance(app.screen, SendingDialog), "the send")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, NewScreen), "the New screen")
        assert "sending hello" in screen_lines(app)[0]
        await pilot.press("s", "y")
        await sees(pilot, "hello is already being sent")
        assert len(app.under_way) == 1
        assert isinstance(app.screen, Confirm) and app.screen.focused is not None
        assert app.screen.focused.id == "no"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, NewScreen), "the New screen again")
        await pilot.press("1")
        assert "sending hello" in screen_lines(app)[0]
        released.set()
        await until(pilot, lambda: not app.under_way, "the end of the send")
        await until(pilot, lambda: "sending hello" not in shown(pilot), "a bar without it")
        (run,) = runs_of(pilot)
        await pilot.press("c", "y")
        assert (await ended(pilot, run.id)).state is State.CANCELLED
        # Once it is over, the next send is asked about as ever.
        app.push_screen(NewScreen(app.runs, project / "job.yaml"))
        await sees(pilot, "requests")
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        assert "already" not in shown(pilot)


@pytest.mark.slow
async def test_two_sends_that_fail_are_two_errors_to_close(
    settings: Settings, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = LumiApp(settings, project / "job.yaml")
    first, second = threading.Event(), threading.Event()
    waiting = [first, second]

    def fail(*args: Any, **kwargs: Any) -> Run:
        assert waiting.pop(0).wait(60)
        raise LinkError("The connection was cut.", "Submit it again.")

    monkeypatch.setattr(app.runs, "send", fail)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "requests")
        await pilot.press("s", "y")
        await until(pilot, lambda: isinstance(app.screen, SendingDialog), "the first send")
        await pilot.press("escape", "s")
        for words in ("1 node, 2 ranks", "twice"):
            await sees(pilot, words)
            await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, SendingDialog), "the second send")
        first.set()
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog), "an error above it")
        second.set()
        await until(pilot, lambda: not app.under_way, "the end of both")
        for _ in range(2):
            await until(pilot, lambda: isinstance(app.screen, ErrorDialog), "an error")
            await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, NewScreen), "the New screen")
        assert app.defect is None


async def test_a_question_stays_true_and_keeps_its_keys(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, asked = LumiApp(settings), list[str]()
    monkeypatch.setattr(app, "tick", lambda *, asked=False: None)
    history = app.runs.history
    history.begin(a_run("one-000001", state=State.QUEUED, job_id="41"))
    history.begin(a_run("two-000002", state=State.RUNNING, job_id="42", created=2000.0))

    def cancel(run_id: str, warn: object) -> Run:
        asked.append(run_id)
        raise LinkError(f"{run_id} is not cancelled: The link is down.", "Look.")

    monkeypatch.setattr(app.runs, "cancel", cancel)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, "one-000001")
        await pilot.press("j", "c")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        await pilot.press("enter")  # no is the default
        await until(pilot, lambda: not app.screen.is_modal, "the runs")
        assert not asked
        await pilot.press("c")
        await sees(pilot, "Cancel one-000001.*")
        await sees(pilot, "state +queued")
        app.show_error(LinkError("The poll failed.", "Wait."))
        app.show_error(LinkError("The fetch failed.", "Wait."))
        await pilot.pause()
        assert isinstance(app.screen, Confirm), "an error waits until the question is answered"
        history.update("one-000001", state=State.RUNNING)
        await sees(pilot, "state +running")
        history.update("one-000001", state=State.DONE)
        for words in ("The poll failed", "The fetch failed"):
            await until(pilot, lambda: isinstance(app.screen, ErrorDialog), "an error")
            await sees(pilot, words)
            await pilot.press("enter")
        await pilot.press("c")
        await sees(pilot, "one-000001 has ended: done")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog), "an error")
        await pilot.press("enter")
        assert not asked
        await pilot.press("k", "c", "y")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog), "why it failed")
        box = app.screen.query_one(".dialog")
        await until(pilot, lambda: box.region.width == 80, "a box with no cut words beside it")
        await sees(pilot, "two-000002 is not cancelled: The link is down")
        await sees(pilot, "Press c again when somewhere is back")
        assert not app.under_way


async def test_a_log_is_followed_only_while_it_is_shown_and_leaving_is_quick(
    settings: Settings, project: Path
) -> None:
    app = LumiApp(settings)

    def streams() -> list[Worker[object]]:
        return [
            item for item in app.workers if item.group.startswith("follow") and not item.is_finished
        ]

    async with app.run_test(size=(80, 24)) as pilot:
        run = await sent(pilot, "long.yaml")
        await sees(pilot, "hello")
        await pilot.press("l")
        await sees(pilot, "waiting")
        assert len(streams()) == 1
        await pilot.press("escape")
        await until(pilot, lambda: not streams(), "the end of the stream")
        await pilot.press("l")
        await sees(pilot, "waiting")
        assert len(streams()) == 1
        await pilot.press("q")
        left = time.monotonic()
    try:
        assert app.return_code == 0
        while any(busy(thread) for thread in threading.enumerate()):
            assert time.monotonic() - left < 5, "a worker kept the program alive"
            time.sleep(0.05)
    finally:
        again = Runs(settings)
        again.cancel(run.id)
        again.close()


def busy(thread: threading.Thread) -> bool:
    """Whether a thread is still reading the log."""
    stack = traceback.walk_stack(sys._current_frames().get(thread.ident or 0))
    return any(frame.f_code.co_filename.endswith("follow_log.py") for frame, _ in stack)


async def test_leaving_while_a_screen_opens_is_no_error(settings: Settings, project: Path) -> None:
    app = LumiApp(settings)
    async with app.run_test(size=(80, 24)):
        run = kept(app)
        app.push_screen(NewScreen(app.runs))
        app.push_screen(RunScreen(app.runs, run.id))
        app.push_screen(ResubmitDialog(run, 2))
        app.exit(0)
    assert app.return_code == 0


async def test_leaving_waits_for_a_send(
    settings: Settings, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = LumiApp(settings)
    heard, released, real = threading.Event(), threading.Event(), app.runs.send

    def slow(*args: Any, **kwargs: Any) -> Run:
        kwargs["report"]("begin", "asking")
        assert heard.wait(60)
        kwargs["report"]("sync", "sending the code")
        assert released.wait(60)
        return real(*args, **kwargs)

    def noted(message: str, **options: Any) -> None:
        said.append(message)  # a toast is gone after seconds, a slow machine may miss it

    said: list[str] = []
    monkeypatch.setattr(app, "notify", noted)
    monkeypatch.setattr(app.runs, "send", slow)
    monkeypatch.setattr(app.runs, "silence", lambda site: 20.0)
    monkeypatch.setattr(sending, "UNANSWERED_SECONDS", 0.5)
    async with app.run_test(size=(80, 24)) as pilot:
        app.under_way.append("cancelling r-000001")
        await pilot.press("q")
        await sees(pilot, "Quit when it is finished")
        app.under_way.clear()
        app.screen.post_message(messages.HistoryChanged())
        await until(pilot, lambda: not isinstance(app.screen, Confirm), "nothing to wait for")
        await until(
            pilot, lambda: "Finished: cancelling r-000001. Press q to quit." in said, "over"
        )
        app.push_screen(NewScreen(app.runs, project / "job.yaml"))
        await sees(pilot, "requests")
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, Confirm), "the question")
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, SendingDialog), "the send")
        await sees(pilot, r"now +asking +no answer for \d+ s")
        heard.set()
        await sees(pilot, r"now +sending the code +no answer for \d+ s")
        app.kept = app.runs.drafts.open(project / "long.yaml")
        await pilot.press("q")
        await sees(pilot, "Quit when it is finished and lose the edits")
        await sees(pilot, r"in progress +sending hello[^$]+not saved +long\.yaml")
        await pilot.press("ctrl+q", "y")
        await until(pilot, lambda: isinstance(app.screen, SendingDialog), "one question in all")
        assert app.is_running and len(app.under_way) == 1
        released.set()
        await until(pilot, lambda: not app.is_running, "the end")
    assert app.return_code == 0, "the edits are not asked about again"
    again = Runs(settings)
    (run,) = again.history.page()
    assert run.job_id, "it was sent before the program ended"
    again.close()


def test_a_transfer_is_shown_and_counts_as_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(_shown(monkeypatch))


async def _shown(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(sending, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    app: App[None] = App()
    async with app.run_test(size=(80, 24)) as pilot:
        dialog = SendingDialog("vit", lambda: 1000.0)
        await app.push_screen(dialog)
        line = "staging DATA [##......]  25% 750 MB of 3.0 GB 22 MB/s 1m40 left"
        for done in range(4):
            clock[0] += 2.0
            dialog.report("sync", f"{line} {done}")
            await pilot.pause()
        text = str(dialog.query_one("#steps", Static).render())
        assert f"now   {line} 3" in text and "no answer" not in text
        clock[0] += 5.0
        dialog._draw()
        await pilot.pause()
        assert "no answer for 5 s" in str(dialog.query_one("#steps", Static).render())
