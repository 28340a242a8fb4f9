"""Input fields. While one has the focus, the footer shows only the keys that work in it."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input

_TYPED = {"plus", "slash", "backslash", "at", "minus", "underscore"}
"""Keys whose names differ in Textual and Unicode: Textual does not treat them as characters."""


class LineInput(Input):
    """A one-line field."""

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Whether the key is typed here, so that no binding of the screen gets it."""
        return key in _TYPED or super().check_consume_key(key, character)


class FilterInput(LineInput):
    """The field that filters a table."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "To the runs", id="filter.done",
                tooltip="Keep the filter and go to the runs"),
        Binding("escape", "screen.back", "All runs", id="filter.end", tooltip="End filtering"),
    ]  # fmt: skip
