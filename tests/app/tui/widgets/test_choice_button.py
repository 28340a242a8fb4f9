"""A button that turns through values."""

from textual import on
from textual.app import App, ComposeResult
from textual.widgets import Button

from lumitui.app.tui.widgets.choice_button import ChoiceButton


class Choosing(App[None]):
    """An app with one choice."""

    def compose(self) -> ComposeResult:
        """Yield the choice of a letter."""
        yield ChoiceButton([(letter, letter) for letter in "abcde"], id="letter")

    @on(Button.Pressed)
    def _chosen(self, event: Button.Pressed) -> None:
        assert isinstance(event.button, ChoiceButton)
        event.button.turn()


async def test_quick_arrows_turn_a_choice_once_each() -> None:
    async with Choosing().run_test() as pilot:
        choice = pilot.app.query_one(ChoiceButton)
        choice.action_step(-1)
        choice.action_step(-1)
        await pilot.pause()
        assert choice.value == "d"
        choice.action_step(-1)
        choice.action_step(1)
        choice.action_step(1)
        await pilot.pause()
        assert choice.value == "e"
