"""The line of keys at the bottom; a mouse can press each."""

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Footer, Static
from textual.widgets._footer import FooterKey, FooterLabel

ROOMY = 100
"""Cells of a terminal with three blanks between two keys; a narrower one has two."""
LAST = ("help", "escape", "quit")
"""The keys at the right end of every footer, in their order; where room lacks, others are cut."""


class Keys(Footer):
    """The footer, rebuilt only when its keys change.

    Textual's own is made again whenever the focus moves: a fifth of what a key costs. It is made by
    a callback on the screen on top, which is lost when that screen closes first; here the line
    makes itself.
    """

    _made: tuple[object, ...] | None = None
    """The displayed keys; None before the first time."""
    _room = 0
    """Cells of the terminal at that time."""

    def bindings_changed(self, screen: Screen[object]) -> None:
        """Make the keys of `screen` again if they are others than those on the screen.

        A terminal without the focus keeps the keys of the widget that had it.
        """
        if screen.app.app_focus or self._made is None:
            self._bindings_ready = True
            if _shown_keys(screen) != self._made:
                self.refresh(recompose=True)

    def compose(self) -> ComposeResult:
        """Yield the actions that fit completely, then the way to the help and the ways out."""
        if not self._bindings_ready:
            return
        self._made = _shown_keys(self.screen)
        self._room = self.app.size.width
        room = self._room - 1  # as far from the left as all else
        gap = 3 if self._room >= ROOMY else 2  # one blank is within a key and its word
        self.set_class(gap == 3, "-roomy")
        ends: dict[str, FooterKey] = {}
        for active in self.screen.active_bindings.values():
            if active.binding.show and _last(active.binding):
                display = self.app.get_key_display(active.binding)
                room -= cell_len(f"{display} {active.binding.description}") + gap
        for key in super().compose():
            label = f"{key.content}" if isinstance(key, FooterLabel) else ""  # of a group of keys
            if isinstance(key, FooterKey):
                if last := _last(key):
                    ends[last] = key
                    continue
                label = f"{key.key_display} {key.description}"
            room -= cell_len(label)
            if room >= 0:
                room -= gap * bool(label)
                yield key
        yield Static(classes="space")
        yield from (ends[last] for last in LAST if last in ends)

    def on_resize(self) -> None:
        """Make the keys again where others fit."""
        if self._made is not None and self.app.size.width != self._room:
            self.refresh(recompose=True)


def _last(key: Binding | FooterKey) -> str:
    """Return which of `LAST` a key is, or ""."""
    return next((last for last in LAST if last == key.key or key.action == f"app.{last}"), "")


def _shown_keys(screen: Screen[object]) -> tuple[object, ...]:
    """Return everything that the footer depends on."""
    return tuple(
        (active.binding, active.enabled, active.tooltip)
        for active in screen.active_bindings.values()
        if active.binding.show
    )


def footer() -> Footer:
    """Return the line of keys. A dialog has its own, which covers the one of the screen below."""
    return Keys(compact=True, show_command_palette=False)
