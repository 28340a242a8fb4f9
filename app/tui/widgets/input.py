"""Input fields. While a field has the focus, the footer shows only the keys that work in it."""

import os
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Key
from textual.suggester import Suggester
from textual.widgets import Input

_TYPED = {"plus", "slash", "backslash", "at", "minus", "underscore"}
"""Keys with different names in Textual and Unicode: Textual does not treat them as characters."""

_OF_SCREEN = {"question_mark", "space"}


class LineInput(Input):
    """A one-line field."""

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Return whether the field uses the key, so that the screen's bindings ignore it."""
        return key in _TYPED or super().check_consume_key(key, character)


class FigureInput(LineInput):
    """A field for a number or a time. Neither contains `?` or a space: these are the screen's."""

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Return whether the field uses the key."""
        return key not in _OF_SCREEN and super().check_consume_key(key, character)

    def on_key(self, event: Key) -> None:
        """Leave the screen's keys to it."""
        if event.key in _OF_SCREEN:
            event.prevent_default()


class FilterInput(LineInput):
    """The field that filters a table."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "To the runs", id="filter.done",
                tooltip="Keep the filter and go to the runs"),
        Binding("escape", "screen.back", "All runs", id="filter.end", tooltip="End filtering"),
    ]  # fmt: skip


class JobFileSuggester(Suggester):
    """Completes the path of a folder or YAML file."""

    def __init__(self) -> None:
        """Disable the cache, because the folder's files change."""
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        """Return the first path that begins with `value`, or None."""
        head, tail = os.path.split(value)
        try:
            names = sorted(os.listdir(os.path.expanduser(head) or "."))
        except (OSError, ValueError):
            return None
        for name in names:
            if not name.startswith(tail) or (name.startswith(".") and not tail):
                continue
            path = os.path.join(head, name)
            if os.path.isdir(os.path.expanduser(path)):
                return f"{path}/"
            if name.endswith((".yaml", ".yml")):
                return path
        return None
