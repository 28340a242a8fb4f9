"""The footer with the keys, which the mouse can press."""

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding
from textual.screen import Screen
from textual.widgets import Footer, Static
from textual.widgets._footer import FooterKey, FooterLabel

ROOMY = 100
"""Minimum cells of a terminal for three blanks between keys; narrower ones have two."""
LAST = ("help", "escape", "quit")
"""The keys at the right end of every footer, in order; if space is short, others are cut."""


class Keys(Footer):
    """The footer, rebuilt only when its keys change.

    Textual rebuilds its footer whenever the focus moves, which takes a fifth of a key's time. It
    does so in a callback of the top screen, which is lost if that screen closes first; this footer
    rebuilds itself.
    """

    _made: tuple[object, ...] | None = None  # the displayed keys; None before the first build
    _room = 0  # cells of the terminal at the last build

    def bindings_changed(self, screen: Screen[object]) -> None:
        """Rebuild the keys of `screen` if they differ from the displayed ones.

        While the terminal lacks the focus, the last focused widget's keys stay.
        """
        if screen.app.app_focus or self._made is None:
            self._bindings_ready = True
            if _shown_keys(screen) != self._made:
                self.refresh(recompose=True)

    def compose(self) -> ComposeResult:
        """Yield the actions that fit completely, then help, back and quit."""
        if not self._bindings_ready:
            return
        self._made = _shown_keys(self.screen)
        self._room = self.app.size.width
        room = self._room - 1  # the usual left margin
        gap = 3 if self._room >= ROOMY else 2  # a key and its word share one blank
        self.set_class(gap == 3, "-roomy")
        ends: dict[str, FooterKey] = {}
        fitting = _fitting(self.screen)
        actions = {active.binding.action for active in fitting}
        for active in fitting:
            if _last(active.binding):
                display = self.app.get_key_display(active.binding)
                room -= cell_len(f"{display} {active.binding.description}") + gap
        for key in super().compose():
            if isinstance(key, FooterKey) and key.action not in actions:
                continue
            label = f"{key.content}" if isinstance(key, FooterLabel) else ""  # of a group of keys
            if isinstance(key, FooterKey):
                key.add_class("-compact", update=False)  # later, it would be styled again
                if last := _last(key):
                    ends[last] = key
                    continue
                label = f"{key.key_display} {key.description}"
            room -= cell_len(label)
            if room > 0:  # the last keys have another blank before them
                room -= gap * (label.rstrip() == label != "")  # keys of a group stand close
                yield key
        yield Static(classes="space")
        yield from (ends[last] for last in LAST if last in ends)

    def on_resize(self) -> None:
        if self._made is not None and self.app.size.width != self._room:
            self.refresh(recompose=True)


def _last(key: Binding | FooterKey) -> str:
    return next((last for last in LAST if last == key.key or key.action == f"app.{last}"), "")


def _fitting(screen: Screen[object]) -> list[ActiveBinding]:
    """Return the keys to show, without those that a widget's `offers` finds useless now.

    They still work: each says why it cannot help, and a key that is disabled says nothing.
    """
    return [
        active
        for active in screen.active_bindings.values()
        if active.binding.show
        and getattr(active.node, "offers", lambda action: True)(active.binding.action)
    ]


def _shown_keys(screen: Screen[object]) -> tuple[object, ...]:
    return tuple((one.binding, one.enabled, one.tooltip) for one in _fitting(screen))


def footer() -> Footer:
    """Return the footer. A dialog has its own, which covers that of the screen below."""
    return Keys(compact=True, show_command_palette=False)
