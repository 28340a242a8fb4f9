"""Keys that act in typing order: each waits until the previous one is done.

Textual hands a key to the widget that has the focus when the key arrives. A key opens a dialog only
after some further messages, so keys typed right after it would still reach the screen below as
commands. Here, each key or paste waits until the app is idle.
"""

import asyncio
from collections import deque
from collections.abc import Iterator

from textual import events
from textual.app import App
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

TURNS = 50
"""Number of idle checks that take only one turn of the loop; most keys need a few."""
LOOKS = 100
PAUSE = 0.005
"""Number of further checks, and their interval in seconds, excluding work in the loop."""
MOVES = frozenset({"j", "k", "up", "down", "left", "right", "pageup", "pagedown"})
"""Keys that only move a cursor."""
_ACTS = (events.Key, events.Paste, events.MouseDown, events.MouseUp)
"""User input that may open something."""


class OrderedKeysApp(App[int]):
    """An app whose keys and pastes act one after another."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: deque[events.Key | events.Paste] = deque()
        self._released: deque[events.Key | events.Paste] = deque()
        """Keys and pastes whose turn has come: they are in the app's queue again."""
        self._was_plain = False  # whether the last key could only move the cursor or type text
        self._typed_in: Widget | None = None  # the field that received the last key
        self._quiet = False
        """Whether all user input has taken effect; False until the first screen is shown."""
        self._turns: asyncio.Task[None] | None = None
        self._late: MessagePump | None = None  # the last busy object, which is checked first

    async def on_event(self, event: events.Event) -> None:
        """Queue a key or paste until its turn; a click acts immediately, but keys wait for it."""
        if event.is_forwarded or not isinstance(event, _ACTS):
            await super().on_event(event)
        elif self._released and event is self._released[0]:
            self._released.popleft()
            await super().on_event(event)
        else:
            if isinstance(event, events.Key | events.Paste) and not self._is_free_for(event):
                self._waiting.append(event)
            else:
                self._quiet = False
                self._acts_now(event)
                await super().on_event(event)
            if self._turns is None or self._turns.done():
                self._turns = asyncio.create_task(self._take_turns())

    def _is_free_for(self, event: events.Event) -> bool:
        """Return whether a new key may act immediately."""
        if self._waiting or self._released:
            return False
        return self._quiet or self._goes_with_last(event)

    def _goes_with_last(self, event: events.Event) -> bool:
        """Return whether a key and the previous one only move or type: neither opens anything.

        A held cursor key is drawn as often as time allows.
        """
        return self._was_plain and self._is_plain(event)

    @property
    def is_typed_in(self) -> bool:
        """Whether the last key was typed into the field that has the focus."""
        return self._typed_in is not None and self.focused is self._typed_in

    def _acts_now(self, event: events.Event) -> None:
        """Record the kind and the field of a key that is passed on."""
        self._was_plain = self._is_plain(event)
        self._typed_in = self.focused if self._is_typed(event) else None

    def _is_typed(self, event: events.Event) -> bool:
        if self.focused is None or not isinstance(event, events.Key):
            return False
        return self.focused.check_consume_key(event.key, event.character)

    def _is_plain(self, event: events.Event) -> bool:
        if not isinstance(event, events.Key):
            return False
        # In a field, a key like `down` goes to another widget, which gets the keys after it.
        return self._is_typed(event) or (event.key in MOVES and not isinstance(self.focused, Input))

    async def _take_turns(self) -> None:
        """Pass on waiting keys, each once the previous one is done.

        If work hangs, the keys are passed on anyway.
        """
        while not self._closing:
            settled = await self._settle()
            if not self._waiting:
                self._quiet = True
                return
            first = True
            while self._waiting and (
                first or not settled or self._goes_with_last(self._waiting[0])
            ):
                first, event = False, self._waiting.popleft()
                self._acts_now(event)
                self._released.append(event)
                if not self.post_message(event):
                    return

    async def _settle(self) -> bool:
        """Wait until all work is done; return whether it was done in time."""
        for look in range(TURNS + LOOKS):
            await asyncio.sleep(0 if look < TURNS else PAUSE)
            if not self._released and not self._is_busy():
                return True
        return False

    def _is_busy(self) -> bool:
        """Return whether a message is waiting or being handled, or a widget is opening."""
        if self._late is not None and _busy(self._late):
            return True
        self._late = None
        if self.message_queue_size or not _rests(self):
            return True
        pumps = (pump for screen in self.screen_stack for pump in _pumps(screen))
        self._late = next((pump for pump in pumps if _busy(pump)), None)
        # Only the top screen's callbacks count: a screen below keeps its own until it is shown.
        return self._late is not None or any(screen._callbacks for screen in self.screen_stack[-1:])


def _pumps(screen: Screen[object]) -> Iterator[MessagePump]:
    yield screen
    yield from screen.walk_children()


def _busy(pump: MessagePump) -> bool:
    """Return whether a screen or widget is opening or has messages; ignores closing ones."""
    if pump._closing or pump._closed:
        return False
    return not pump._is_mounted or pump.message_queue_size > 0 or not _rests(pump)


def _rests(pump: MessagePump) -> bool:
    """Return whether a pump is idle.

    Textual does not expose this, but its asyncio event lists its waiters.
    """
    return bool(getattr(pump._message_queue.ready_event, "_waiters", True))
