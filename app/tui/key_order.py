"""Keys act in the order typed: the next one waits until the one before has done what it does.

Textual hands a key to the widget that has the focus when the key arrives. A key that opens a
dialog does so some messages later, so the keys typed right behind it would still reach the
screen below, as commands. Here each key, and each paste, waits until nothing is under way.
"""

import asyncio
from collections import deque
from collections.abc import Iterator

from textual import events
from textual.app import App
from textual.message_pump import MessagePump
from textual.screen import Screen

TURNS = 50
"""Looks at what is under way that cost the loop nothing but a turn: most keys need a few."""
LOOKS = 100
PAUSE = 0.005
"""Then so many looks, so many seconds apart. What holds the loop itself does not count."""


class OrderedKeysApp(App[int]):
    """An app whose keys and pastes act one after the other."""

    def __init__(self) -> None:
        """Start without keys."""
        super().__init__()
        self._waiting: deque[events.Key | events.Paste] = deque()
        self._next: events.Key | events.Paste | None = None
        self._turn: asyncio.Task[None] | None = None
        self._late: MessagePump | None = None
        """What was busy at the last look: it is looked at first."""

    async def on_event(self, event: events.Event) -> None:
        """Keep a key or a paste until it is its turn; the mouse and the rest need none."""
        if not isinstance(event, events.Key | events.Paste) or event.is_forwarded:
            await super().on_event(event)
        elif event is self._next:
            self._next = None
            await super().on_event(event)
        elif self._waiting or self._next is not None or self._is_busy(here=True):
            self._waiting.append(event)
            if self._turn is None or self._turn.done():
                self._turn = asyncio.create_task(self._take_turns())
        else:
            await super().on_event(event)

    async def _take_turns(self) -> None:
        """Hand over the keys that wait, each when the one before is done.

        When something hangs, the keys are not held any longer.
        """
        while self._waiting and not self._closing:
            settled = await self._settle()
            while self._waiting:
                event = self._next = self._waiting.popleft()
                if not self.post_message(event):
                    return
                if settled:
                    break
                await asyncio.sleep(PAUSE)

    async def _settle(self) -> bool:
        """Wait until nothing is under way; return whether that came about in time."""
        for look in range(TURNS + LOOKS):
            await asyncio.sleep(0 if look < TURNS else PAUSE)
            if self._next is None and not self._is_busy():
                return True
        return False

    def _is_busy(self, *, here: bool = False) -> bool:
        """Return whether a message waits or is handled; `here`: by more than the caller."""
        if self._late is not None and _busy(self._late):
            return True
        self._late = None
        if self.message_queue_size or not (here or _rests(self)):
            return True
        for screen in self.screen_stack:
            self._late = next((pump for pump in _pumps(screen) if _busy(pump)), None)
            if self._late is not None or screen._callbacks:
                return True
        return False


def _pumps(screen: Screen[object]) -> Iterator[MessagePump]:
    """Yield a screen and every widget on it."""
    pumps = [screen, *screen.walk_children()]
    yield from pumps


def _busy(pump: MessagePump) -> bool:
    """Return whether a screen or widget opens, or has messages; one that closes has none."""
    if pump._closing or pump._closed:
        return False
    return not pump._is_mounted or pump.message_queue_size > 0 or not _rests(pump)


def _rests(pump: MessagePump) -> bool:
    """Return whether a pump waits for a message: it handles none.

    Textual does not say so, but an event of asyncio knows who waits for it.
    """
    return bool(getattr(pump._message_queue.ready_event, "_waiters", True))
