"""The wait of a submit for its check, which keeps the keys typed meanwhile."""

from collections.abc import Callable

from textual import events
from textual.widget import Widget
from textual.widgets import Static

UNREAD = 0.7
"""Seconds in which a fast typist has not noticed that no question opened."""


class CheckWait(Static, can_focus=True):
    """A line that has the focus while a submit waits: the keys are meant for its question."""

    _keys: list[events.Key] | None = None  # those typed since the submit, while it waits
    _left: Widget | None = None  # the focus before

    def begin(self) -> None:
        """Keep the keys from now on, unless a submit waits already."""
        if self._keys is None or self.screen.focused is not self:
            self._keys = []
            self._hold("Checking; a confirmation follows …")

    def _hold(self, words: str) -> None:
        if self.screen.focused is not self:
            self._left = self.screen.focused
        self.display = True
        self.update(words)
        self.screen.set_focus(self)

    def on_key(self, event: events.Key) -> None:
        """Keep a key; escape ends the wait."""
        if event.key == "escape":
            event.stop()
            self._keys = None
            self._release()
        elif event.is_printable:
            event.stop()
            if self._keys is not None:
                self._keys.append(events.Key(event.key, event.character))

    def end(self, ask: Callable[[], object] | None) -> None:
        """Call `ask` if a submit waits, and pass the keys on to the question that it opens.

        If it opens none, they are dropped, like those typed before the user can notice.
        """
        keys, self._keys = self._keys, None
        if keys is None or not self._release() or ask is None or not self.screen.is_active:
            return
        ask()
        if self.screen.is_active:
            self.app.call_later(self._refuse)  # after the new focus
        else:
            for key in keys:
                self.app.post_message(key)

    def _refuse(self) -> None:
        """Hold keys back from a text, which they would change."""
        field = self.screen.focused
        if field is not None and field.check_consume_key("y", "y"):
            self._hold("Not submitted")
            # A submit that began meanwhile, after an escape, still waits.
            self.set_timer(UNREAD, lambda: self._keys is None and self._release())

    def _release(self) -> bool:
        """Give the focus back; return False if the user has gone elsewhere."""
        waited = self.screen.focused is self
        if waited:
            self.screen.set_focus(self._left)
        self.display = False
        return waited
