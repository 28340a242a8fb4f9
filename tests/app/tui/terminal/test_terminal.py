"""Errors are one sentence, and questions of a connection are asked, withdrawn and declined."""

import asyncio
import signal
import threading
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from lumitui.app.job.settings import Settings
from lumitui.app.tui import terminal
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.confirm_dialog import Confirm
from lumitui.app.tui.dialogs.line_dialog import LineDialog
from lumitui.app.tui.dialogs.notice_dialogs import ErrorDialog
from lumitui.app.tui.screens.new_screen import NewScreen
from lumitui.app.tui.terminal import ask_person
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import LumiError
from lumitui.remote.ssh.prompts import LoginQuestion
from tests.support.jobs.made_runs import a_run
from tests.support.program.driven_tui import (
    app_of,
    keys_below,
    sees,
    shown,
    until,
)


async def test_a_mistake_of_ours_is_one_sentence(
    settings: Settings, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        runs = app_of(pilot).runs
        monkeypatch.setattr(runs.drafts, "check", lambda *a, **k: 1 / 0)
        pilot.app.push_screen(NewScreen(runs, project / "job.yaml"))
        await until(pilot, lambda: isinstance(pilot.app.screen, ErrorDialog), "the error")
        await sees(pilot, "lumitui failed with an internal error: ZeroDivisionError")
        await pilot.press("enter")
        assert pilot.app.is_running


async def test_a_second_signal_ends_the_process_at_once(settings: Settings) -> None:
    app = LumiApp(settings)
    async with app.run_test(size=(80, 24)):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, app._end, signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        app._end(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and app.return_value == 143


async def test_a_question_of_the_connection_is_answered_declined_or_withdrawn(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[str | None] = []
    threads: list[threading.Thread] = []
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:

        async def ask(question: LoginQuestion) -> None:
            answers.clear()
            threads.append(thread := threading.Thread(
                target=lambda: answers.append(ask_person(app_of(pilot), question)))
            )  # fmt: skip
            thread.start()
            await until(pilot, lambda: asks(pilot), "a question")

        async def answer() -> str | None:
            await until(pilot, lambda: answers, "the answer")
            await until(pilot, lambda: not asks(pilot), "its end")
            return answers[0]

        code = LoginQuestion("Verification code: [/]", secret=True, kind="otp")
        await ask(code)
        await sees(pilot, r"Verification code: \[/\]")
        await pilot.press("s", "e", "enter")
        assert await answer() == "se"
        await ask(code)
        await pilot.press("escape")
        assert await answer() is None
        # A host key is trusted only on purpose, with the keys of every other question.
        monkeypatch.setattr("lumitui.app.tui.dialogs.confirm_dialog.PAUSE", 0.0)
        key = f"SHA256:{'abc' * 14}"
        trust = LoginQuestion(f"{key}\nIs it? (yes/no)", secret=False, kind="host-key")
        for keys, word in (("enter", None), ("n", None), ("y", "yes"), ("right enter", "yes")):
            await ask(trust)
            await until(pilot, lambda: "y Yes n No" in keys_below(pilot), "the keys")
            await sees(pilot, key)
            assert "yes/no" not in shown(pilot)
            await pilot.press(*keys.split())
            assert await answer() == word
        with monkeypatch.context() as patch:
            patch.setattr(terminal, "ANSWER_SECONDS", 0.5)
            await ask(code)
            assert await answer() is None, "nobody answered"
        await ask(LoginQuestion("Passphrase:", secret=True, kind="passphrase"))
        await pilot.press("ctrl+q")
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()
    assert answers == [None], "leaving declines"


async def test_an_error_waits_until_the_field_is_left_in_which_somebody_types(
    settings: Settings,
) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        app = app_of(pilot)
        app.runs.history.begin(a_run("typed-000001", state=State.DONE))
        app.history_changed()
        await sees(pilot, "typed-000001")
        await pilot.press("slash", "t", "y")
        app.show_error(LumiError("The site is away.", "Look at the network."))
        await pilot.press("p", "q")
        assert not isinstance(app.screen, ErrorDialog)
        assert app.screen.query_one("#filter", Input).value == "typq"
        assert "The site is away. More when you leave the field." in notices(app)
        await pilot.press("backspace", "enter")
        await until(pilot, lambda: isinstance(app.screen, ErrorDialog), "the error")
        await sees(pilot, "Look at the network")


def asks(pilot: Pilot[int]) -> bool:
    return isinstance(pilot.app.screen, LineDialog | Confirm)


def notices(app: LumiApp) -> list[str]:
    return [notice.message for notice in app._notifications]
