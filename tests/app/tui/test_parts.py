"""The log's text and view, words in colour, errors and questions."""

import stat
import threading
from pathlib import Path

import pytest
from textual.widgets import Button, Input
from textual.worker import Worker

from lumitui.app.settings import Settings
from lumitui.app.tui import messages, terminal
from lumitui.app.tui.app import LumiApp
from lumitui.app.tui.screens.new import NewScreen
from lumitui.app.tui.screens.notices import ErrorDialog
from lumitui.app.tui.screens.question import QuestionDialog
from lumitui.app.tui.widgets import styled
from lumitui.app.tui.widgets.log_text import MAX_LINE, LogText
from lumitui.app.tui.widgets.log_view import KEPT_LINES, LogView
from lumitui.remote.scheduler.protocol import State
from lumitui.remote.ssh.prompts import Question
from tests.support.driven_tui import app_of, sees, submit, until

# -- the log's text


def feed(*chunks: bytes) -> list[str]:
    text, lines, partial = LogText(), list[str](), ""
    for chunk in chunks:
        grown = text.feed(chunk)
        lines, partial = [*lines, *grown.lines], grown.partial
    return [*lines, partial]


def test_a_log_may_be_cut_anywhere() -> None:
    data = "ä\tb\r\nzwei 🙂\nbar 1\rbar 2\r\x1b[1mbar 3\x1b[0m\ntail".encode()
    whole = feed(data)
    assert whole == ["ä       b", "zwei 🙂", "bar 3", "tail"]
    for at in range(len(data)):
        assert feed(data[:at], data[at:]) == whole


def test_a_line_without_an_end_does_not_grow_for_ever() -> None:
    lines = feed(*[b"x" * 10_000] * 20)
    assert max(map(len, lines)) <= MAX_LINE
    assert sum(map(len, lines)) == 200_000
    bar = feed(*[b"\r" + b"=" * 100] * 2_000)
    assert bar == ["=" * 100]


async def test_the_log_is_bounded_and_does_not_jump(settings: Settings) -> None:
    async with LumiApp(settings).run_test(size=(60, 20)) as pilot:
        view = LogView()
        await pilot.app.screen.mount(view)
        view.focus()
        view.feed(b"".join(b"line %d\n" % number for number in range(KEPT_LINES + 1000)))
        await until(pilot, lambda: view.is_vertical_scroll_end, "the end")
        assert len(view.lines) == KEPT_LINES and view.lines[0] == "line 1000"
        await pilot.press("k", "k")
        assert not view.follow
        await pilot.pause(0.1)
        first = view.lines[view.scroll_offset.y]
        view.feed(b"one more\n" * 10)
        await pilot.pause(0.2)
        assert view.lines[view.scroll_offset.y] == first, "what is read stays where it is"
        assert view.unseen == 10
        await pilot.press("G")
        await until(pilot, lambda: view.follow and view.is_vertical_scroll_end, "the end again")


async def test_long_lines_are_wrapped_on_demand(settings: Settings) -> None:
    async with LumiApp(settings).run_test(size=(60, 20)) as pilot:
        view = LogView()
        await pilot.app.screen.mount(view)
        view.focus()
        view.feed("\n".join(["kurz", "漢" * 100, "e"]).encode())
        assert view.virtual_size.height == 3
        await pilot.press("w")
        await until(pilot, lambda: view.virtual_size.height >= 6, "more rows")
        assert view.lines == ["kurz", "漢" * 100, "e"]
        await pilot.press("w")
        await until(pilot, lambda: view.virtual_size.height == 3, "three rows")


# -- words


def test_a_shortened_id_keeps_the_end_that_tells_it_apart() -> None:
    assert styled.shorten("a-very-long-name-0a1b2c", 14) == "a-very…-0a1b2c"
    assert styled.shorten("short-0a1b2c", 14) == "short-0a1b2c"


def test_every_state_has_a_colour_and_its_word() -> None:
    for state in State:
        assert styled.state_text(state).plain == str(state)


def test_the_history_is_for_its_owner_only(settings: Settings) -> None:
    app = LumiApp(settings)
    app.runs.close()
    assert stat.S_IMODE(settings.history.stat().st_mode) == 0o600


# -- errors and questions


async def test_a_mistake_of_ours_is_one_sentence(
    settings: Settings, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        runs = app_of(pilot).runs
        monkeypatch.setattr(runs, "preview", lambda *a, **k: 1 / 0)
        pilot.app.push_screen(NewScreen(runs, project / "job.yaml"))
        await until(pilot, lambda: isinstance(pilot.app.screen, ErrorDialog), "the error")
        await sees(pilot, "lumitui made a mistake: ZeroDivisionError")
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


async def test_the_launch_of_a_file_chosen_before_is_not_shown(
    settings: Settings, project: Path
) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewScreen), "the screen New")
        screen = pilot.app.screen
        screen.query_one("#path", Input).value = str(project / "job.yaml")
        screen.query_one("#path").focus()
        await pilot.press("enter")
        await sees(pilot, "asks for")
        screen.post_message(messages.PreviewMade(0, project / "fail.yaml", None))
        await pilot.pause()
        await sees(pilot, "asks for")
        assert not screen.query(".action").first(Button).disabled


async def test_a_log_is_followed_only_while_its_screen_is_there(
    settings: Settings, project: Path
) -> None:
    async with LumiApp(settings).run_test(size=(80, 24)) as pilot:
        run = await submit(pilot, "long.yaml")
        await pilot.press("l")
        await sees(pilot, "waiting")

        def streams() -> list[Worker[object]]:
            return [w for w in pilot.app.workers if w.group == "follow" and not w.is_finished]

        assert len(streams()) == 1
        await pilot.press("escape")
        await until(pilot, lambda: not streams(), "the end of the stream")
        app_of(pilot).runs.cancel(run.id)
