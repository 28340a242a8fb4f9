"""Draws an app in a browser's tab instead of on a terminal."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from textual import events, messages
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.driver import Driver
from textual.geometry import Size

LARGEST = 1000
"""Columns and rows that a tab may ask for."""
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
        self._parser = XTermParser(debug=debug)

    @property
    def is_web(self) -> bool:
        """A browser draws it."""
        return True

    def write(self, data: str) -> None:
        """Draw `data`."""
        self.drawn.put_nowait(data.encode("utf-8", "replace"))

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

    def take(self, kind: str, value: object) -> None:
        """Take what a tab sent: keys, a size, or whether it has the focus.

        Anything else is passed over: the page is ours, and what is not the page has no token.
        """
        match kind, value:
            case "stdin", str():
                for event in self._parser.feed(value):
                    self.process_message(event)
                self._loop.call_later(ESCAPE_SECONDS, self._tick)
            case "resize", {"width": int(width), "height": int(height)}:
                size = Size(*(max(1, min(LARGEST, cells)) for cells in (width, height)))
                self._size = (size.width, size.height)
                self._app.post_message(events.Resize(size, size))
            case "focus", _:
                self._app.post_message(events.AppFocus())
            case "blur", _:
                self._app.post_message(events.AppBlur())
            case _:
                pass

    def _tick(self) -> None:
        """Take an escape that nothing follows as the key."""
        for event in self._parser.tick():
            self.process_message(event)

    def leave(self) -> None:
        """End the app: its tab is gone."""
        self._app.post_message(messages.ExitApp())


def told(text: str) -> tuple[str, object]:
    """Return the kind and the value of what a tab sent; `("", None)` when it makes no sense."""
    try:
        found = json.loads(text)
    except ValueError:
        return "", None
    match found:
        case [str(kind)]:
            return kind, None
        case [str(kind), value, *_]:
            return kind, value
        case _:
            return "", None


def cells(query: Mapping[str, str], name: str, usual: int) -> int:
    """Return a number of cells of an address, or `usual`."""
    text = query.get(name, "")
    return max(1, min(LARGEST, int(text))) if text.isascii() and text.isdigit() else usual
