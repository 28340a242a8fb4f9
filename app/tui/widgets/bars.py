"""The line of keys at the bottom; a mouse can press each."""

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Footer
from textual.widgets._footer import FooterKey, FooterLabel


class Keys(Footer):
    """The line of keys, made again only when its keys change.

    Textual's own is made again whenever the focus moves: a fifth of what a key costs.
    """

    _made: tuple[object, ...] = ()
    _room = 0
    """Cells of the terminal that they were made for."""

    def bindings_changed(self, screen: Screen[object]) -> None:
        """Make the keys of `screen` again if they are others than those that stand here."""
        keys = tuple(
            (active.binding, active.enabled, active.tooltip)
            for active in screen.active_bindings.values()
            if active.binding.show
        )
        if keys != self._made and screen.app.app_focus and self.is_attached:
            self._made = keys
            super().bindings_changed(screen)

    def compose(self) -> ComposeResult:
        """Yield the keys that can be read whole."""
        room = self._room = self.app.size.width
        for key in super().compose():
            label = f"{key.content}" if isinstance(key, FooterLabel) else ""  # of a group of keys
            if isinstance(key, FooterKey):
                label = f"{key.key_display} {key.description}"
            room -= cell_len(label)
            if room < 0:
                return
            room -= bool(label)  # between two keys
            yield key

    def on_resize(self) -> None:
        """Make the keys again where others fit."""
        if self.app.size.width != self._room:
            self.call_after_refresh(self.recompose)


def footer() -> Footer:
    """Return the line of keys. A dialog has its own, which covers the one of the screen below."""
    return Keys(compact=True, show_command_palette=False)
