"""Draws an app in a browser's tab instead of on a terminal."""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from textual import events, messages
from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.driver import Driver
from textual.geometry import Size
from textual.message import Message

from lumitui.app.tui.loop.key_order import OrderedKeysApp

WIDEST, HIGHEST = 600, 250
"""Columns and rows that a tab may ask for: a large screen has 550 by 155 in a small font."""
PIECE = 32
"""Characters that are taken at once: a key is an event of 1 to 2 KB, and takes 1 ms."""
MOST_WAITING = 16
"""Events of an app that wait before its tab has to wait; other tabs wait for these, too."""
MOST_KEYS = 1024
"""Characters of a message without a paste: nobody types more at once."""
LARGEST_PASTE = 1 << 18
"""Characters of a paste; one that does not end is dropped."""
MOST_DRAWN = 4 << 20
"""Bytes that a tab may leave unread: some full screens."""
RESIZE_SECONDS = 0.1
"""Of the sizes that come in this time the last one counts."""
ESCAPE_SECONDS = 0.15
"""How long the parser waits for the rest of a sequence; longer than its own limit of 0.1."""
_BEGIN = "\x1b[?1049h\x1b[?1000h\x1b[?1003h\x1b[?1015h\x1b[?1006h\x1b[?25l\x1b[?2004h"
"""The other screen, the mouse, no cursor, and pastes in brackets: as Textual's own drivers do."""


class TabDriver(Driver):
    """Puts what an app draws into a queue, and gives it what a tab sends."""

    def __init__(
        self,
        app: App[Any],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        """Draw `app`; the first size comes from the tab."""
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self.drawn: asyncio.Queue[bytes | None] = asyncio.Queue()
        """What the tab has not got yet; None: the app has ended."""
        self._parser = XTermParser()
        self._unparsed = 0
        """Characters since the last paste ended: the parser may keep all of them."""
        self._undrawn = 0
        self._ticking: asyncio.TimerHandle | None = None
        self._resizing: asyncio.TimerHandle | None = None

    @property
    def is_web(self) -> bool:
        """A browser draws it."""
        return True

    def write(self, data: str) -> None:
        """Draw `data`; a tab that reads nothing for too long ends."""
        if self._undrawn > MOST_DRAWN:
            return
        drawn = data.encode("utf-8", "replace")
        self._undrawn += len(drawn)
        self.drawn.put_nowait(drawn)
        if self._undrawn > MOST_DRAWN:
            self.leave()

    def sent(self, data: bytes) -> None:
        """Note that the tab has got `data`."""
        self._undrawn -= len(data)

    def start_application_mode(self) -> None:
        """Take the tab's terminal."""
        self.write(_BEGIN)
        size = Size(*(self._size or (80, 24)))
        self._app.post_message(events.Resize(size, size))

    def disable_input(self) -> None:
        """Take no more input."""

    def stop_application_mode(self) -> None:
        """End the tab's terminal."""
        self.drawn.put_nowait(None)

    @property
    def is_behind(self) -> bool:
        """Whether the app has so much to do that its tab must wait."""
        waiting = self._app.message_queue_size
        if isinstance(self._app, OrderedKeysApp):
            waiting += self._app.keys_waiting
        return waiting > MOST_WAITING

    def take(self, kind: str, value: object) -> None:
        """Take what a tab sent: a piece of its keys, a size, or whether it has the focus.

        Anything else is passed over: the page is ours, and what is not the page has no session.
        """
        match kind, value:
            case "stdin", str():
                self._feed(value.encode("utf-8", "replace").decode())  # half a character is none
                self._tick_later()
            case "resize", {"width": int(width), "height": int(height)}:
                self._size = max(1, min(WIDEST, width)), max(1, min(HIGHEST, height))
                if self._resizing is None:
                    self._resizing = self._loop.call_later(RESIZE_SECONDS, self._resize)
            case "focus", _:
                self._app.post_message(events.AppFocus())
            case "blur", _:
                self._app.post_message(events.AppBlur())
            case _:
                pass

    def _feed(self, text: str) -> None:
        self._unparsed += len(text)
        try:
            for event in self._parser.feed(text):
                if isinstance(event, events.Paste):
                    self._unparsed = 0
                self._handle(event)
        except (ArithmeticError, LookupError, ValueError, ParseError):
            self._parser = XTermParser()  # a sequence that no terminal sends, like a width of 0
        if self._unparsed > LARGEST_PASTE:  # who typed as much loses half a key at most
            self._parser, self._unparsed = XTermParser(), 0

    def _handle(self, event: Message) -> None:
        """Hand an event to the app; sizes come with `resize` alone, where they have limits."""
        if not isinstance(event, events.Resize | messages.InBandWindowResize):
            self.process_message(event)

    def _resize(self) -> None:
        self._resizing = None
        size = Size(*(self._size or (80, 24)))
        self._app.post_message(events.Resize(size, size))

    def _tick_later(self) -> None:
        if self._ticking is not None:
            self._ticking.cancel()
        self._ticking = self._loop.call_later(ESCAPE_SECONDS, self._tick)

    def _tick(self) -> None:
        """Take an escape that nothing follows as the key; not between two pieces of keys."""
        if self.is_behind:
            self._tick_later()
            return
        for event in self._parser.tick():
            self._handle(event)

    def leave(self) -> None:
        """End the app: its tab is gone."""
        self._app.post_message(messages.ExitApp())


def told(text: str) -> tuple[str, object]:
    """Return the kind and the value of what a tab sent; `("", None)` when it makes no sense."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return "", None
    match found:
        case [str(kind)]:
            return kind, None
        case [str(kind), value, *_]:
            return kind, value
        case _:
            return "", None


def cells(query: Mapping[str, str], name: str, usual: int, most: int) -> int:
    """Return a number of cells of an address, or `usual`."""
    text = query.get(name, "")
    return max(1, min(most, int(text))) if re.fullmatch("[0-9]{1,6}", text) else usual


def pieces(kind: str, value: object) -> Iterator[object]:
    """Yield what a tab sent, keys in pieces."""
    if kind != "stdin" or not isinstance(value, str):
        yield value
        return
    if "\x1b[200~" not in value:
        value = value[:MOST_KEYS]
    for start in range(0, len(value), PIECE):
        yield value[start : start + PIECE]
