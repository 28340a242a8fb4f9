"""Errors are one sentence, and questions of a connection are asked, withdrawn and declined."""

import threading
from pathlib import Path

import pytest

from lumitui.app.settings import Settings
from lumitui.app.tui import terminal
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.dialogs.notices import ErrorDialog
from lumitui.app.tui.dialogs.question import QuestionDialog
from lumitui.app.tui.screens.new import NewScreen
from lumitui.remote.ssh.prompts import Question
from tests.support.driven_tui import (
    app_of,
    sees,
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


@pytest.mark.parametrize(("keys", "answer"), [(["s", "e", "enter"], "se"), (["escape"], None)])
async def test_a_question_of_the_connection_is_put_from_a_thread(
    settings: Settings, keys: list[str], answer: str | None
) -> None:
    answers: list[str | None] = []
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        question = Question("Verification code: [/]", secret=True, kind="otp")
        thread = threading.Thread(target=lambda: answers.append(app_of(pilot).ask(question)))
        thread.start()
        await until(pilot, lambda: isinstance(pilot.app.screen, QuestionDialog), "the question")
        await sees(pilot, r"Verification code: \[/\]")
        await pilot.press(*keys)
        await until(pilot, lambda: answers, "the answer")
        thread.join(5)
    assert answers == [answer]


async def test_a_question_that_nobody_answers_is_withdrawn(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "ANSWER_SECONDS", 0.5)
    answers: list[str | None] = []
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        question = Question("Verification code:", secret=True, kind="otp")
        thread = threading.Thread(target=lambda: answers.append(app_of(pilot).ask(question)))
        thread.start()
        await until(pilot, lambda: isinstance(pilot.app.screen, QuestionDialog), "the question")
        await until(pilot, lambda: not isinstance(pilot.app.screen, QuestionDialog), "its end")
        thread.join(5)
    assert answers == [None]


async def test_leaving_declines_a_question(settings: Settings) -> None:
    answers: list[str | None] = []
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        question = Question("Passphrase:", secret=True, kind="passphrase")
        thread = threading.Thread(target=lambda: answers.append(app_of(pilot).ask(question)))
        thread.start()
        await until(pilot, lambda: isinstance(pilot.app.screen, QuestionDialog), "the question")
        await pilot.press("ctrl+q")
    thread.join(5)
    assert not thread.is_alive()
    assert answers == [None]


async def test_a_host_key_is_trusted_only_on_purpose(settings: Settings) -> None:
    answers: list[str | None] = []
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        question = Question("SHA256:abc", secret=False, kind="host-key")
        thread = threading.Thread(target=lambda: answers.append(app_of(pilot).ask(question)))
        thread.start()
        await until(pilot, lambda: isinstance(pilot.app.screen, QuestionDialog), "the question")
        await pilot.press("enter")
        await until(pilot, lambda: answers, "the answer")
    assert answers == [None]
