"""The wait of a submit for its check."""

import pytest
from textual.app import App, ComposeResult
from textual.widgets import Button, Input

from lumitui.app.tui.widgets import check_wait
from lumitui.app.tui.widgets.check_wait import CheckWait


class Waiting(App[None]):
    """An app with one wait."""

    def compose(self) -> ComposeResult:
        """Yield the wait, hidden."""
        wait = CheckWait()
        wait.display = False
        yield wait
        yield Button("Other")


async def test_a_new_submit_outlives_the_words_on_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check_wait, "UNREAD", 0.3)
    asked: list[str] = []
    async with Waiting().run_test() as pilot:
        wait = pilot.app.query_one(CheckWait)
        wait.begin()
        wait.end(lambda: asked.append("refused"))
        await pilot.pause()
        await pilot.press("escape")
        wait.begin()
        await pilot.pause(0.6)
        assert wait.has_focus and wait.display
        wait.end(lambda: asked.append("asked"))
        await pilot.pause()
    assert asked == ["refused", "asked"]


async def test_a_second_submit_waits_after_the_user_left_the_first() -> None:
    asked: list[str] = []
    async with Waiting().run_test() as pilot:
        wait = pilot.app.query_one(CheckWait)
        wait.begin()
        await pilot.press("tab")
        assert not wait.has_focus
        wait.begin()
        await pilot.pause()
        assert wait.has_focus
        wait.begin()  # a held key
        wait.end(lambda: asked.append("asked"))
        await pilot.pause()
        assert asked == ["asked"] and pilot.app.query_one(Button).has_focus


async def test_a_submit_after_a_refused_one_gives_the_focus_back() -> None:
    async with Waiting().run_test() as pilot:
        wait, field = pilot.app.query_one(CheckWait), Input()
        await pilot.app.mount(field)
        field.focus()
        await pilot.pause()
        wait.begin()
        wait.end(lambda: None)
        await pilot.pause()
        assert wait.has_focus and "Not submitted" in str(wait.render())
        wait.begin()
        await pilot.pause()
        wait.end(lambda: None)
        await pilot.pause()
        await pilot.press("escape")
        assert field.has_focus and not wait.display
