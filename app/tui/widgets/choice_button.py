"""A button that shows the chosen one of a few values; a press chooses the next."""

from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import Button

Value = TypeVar("Value")


class ChoiceButton(Button, Generic[Value]):
    """One of a few values as text, because a tick box is invisible without colours."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "press", "Next value", show=False, id="choice.next",
                tooltip="Choose the next value"),
        Binding("right", "step(1)", "Change", key_display="◂ ▸", id="choice.right",
                tooltip="Choose the next value"),
        Binding("left", "step(-1)", "Previous value", show=False, id="choice.left",
                tooltip="Choose the previous value"),
    ]  # fmt: skip

    def __init__(
        self,
        values: Sequence[tuple[Value, str]],
        *,
        id: str | None = None,  # noqa: A002 - Textual's name
    ) -> None:
        """Offer `values`, each with its label; the first is chosen."""
        super().__init__(_turnable(values[0][1]), id=id, compact=True, classes="choice")
        self._values = values
        self.value = values[0][0]
        self._step = 1

    def choose(self, value: Value) -> None:
        """Choose `value`."""
        self.value = value
        self.label = _turnable(next(words for other, words in self._values if other == value))
        self.refresh(layout=True)

    def action_step(self, step: int) -> None:
        """Press the button so that it turns by `step`."""
        self._step += step - 1  # of two quick keys, neither is turned yet
        self.press()

    def turn(self) -> None:
        """Choose the next value, or the previous one after that arrow."""
        self.choose(neighbour([value for value, _ in self._values], self.value, self._step))
        self._step = 1


def neighbour(values: Sequence[Value], chosen: object, step: int) -> Value:
    """Return the value `step` places after the chosen one, or after the first if none is chosen."""
    at = values.index(chosen) if chosen in values else 0
    return values[(at + step) % len(values)]


def _turnable(words: str) -> Text:
    """Return the label between marks that show that there are other values."""
    return Text.assemble(("◂ ", "magenta"), (words, "not bold"), (" ▸", "magenta"))
