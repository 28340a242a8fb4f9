"""Notices outside the TUI: escape sequences of terminals, the desktop's programs, a webhook.

OSC 9 is iTerm2's (iterm2.com/documentation-escape-codes.html), which kitty, WezTerm, Ghostty and
Windows Terminal know too; OSC 777 is rxvt's, which foot and VTE know.
"""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any

from lumitui.app.follow.notifications.events import Event
from lumitui.app.follow.notifications.notification_settings import Notify, Terminal
from lumitui.remote.site.safe_text import log_line

SECONDS = 10.0
"""How long a webhook or a program may take."""
_LONGEST = 200


def sequence(words: str, how: Terminal, environ: Mapping[str, str]) -> str:
    """Return the escape sequence that lets a terminal show `words`; '' where none is wanted."""
    text = log_line(words)[:_LONGEST].replace(";", ",")
    # The name comes first: OSC 9 that begins with a number means something else to ConEmu.
    match how:
        case "off":
            return ""
        case "osc777":
            found = f"\x1b]777;notify;lumitui;{text}\x1b\\"
        case _:
            found = f"\x1b]9;lumitui: {text}\x1b\\"
    if "TMUX" in environ:  # tmux(1), allow-passthrough
        return "\x1bPtmux;" + found.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    return found


def desktop_command(words: str, platform: str = sys.platform) -> list[str]:
    """Return the command line that shows `words` on the desktop."""
    text = log_line(words)[:_LONGEST]
    if platform == "darwin":
        # The text is an argument of the script, not a part of it.
        show = 'display notification (item 1 of words) with title "lumitui"'
        script = f"on run words\n{show}\nend run"
        return ["osascript", "-e", script, text]
    return ["notify-send", "--app-name=lumitui", "--", "lumitui", text]


def show_on_desktop(words: str, platform: str = sys.platform) -> str:
    """Show `words` on the desktop; return why it could not, '' when it did."""
    command = desktop_command(words, platform)
    if shutil.which(command[0]) is None:
        return f"{command[0]} is not installed; remove `desktop:` from the settings."
    try:
        with _started(command) as process:
            said = log_line(_first_words(process).decode("utf-8", "replace").strip())
    except OSError as error:
        return f"{command[0]} failed: {error}."
    if process.returncode == -signal.SIGKILL:
        return f"{command[0]} did not end within {SECONDS:g} s."
    return "" if process.returncode == 0 else f"{command[0]} failed: {said or process.returncode}."


@contextmanager
def _started(command: list[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a program; end it, and what it started, when it takes too long."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _first_words(process: "subprocess.Popen[bytes]") -> bytes:
    """Return the beginning of a program's errors; what it writes behind that nobody reads."""
    assert process.stderr is not None
    said, deadline = b"", time.monotonic() + SECONDS
    with process.stderr as errors:
        while len(said) < _LONGEST:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([errors], [], [], left)[0]:
                break
            data = os.read(errors.fileno(), _LONGEST)
            if not data:
                break
            said += data
    return said[:_LONGEST]


def body(event: Event) -> bytes:
    """Return what a webhook is sent: one small JSON object, `text` as chat programs want it."""
    said = {
        "text": event.sentence,
        "run": event.run_id,
        "site": event.site,
        "state": str(event.state),
        "event": str(event.happened),
    }
    return json.dumps(said).encode()


def post(event: Event, notify: Notify) -> str:
    """Send `event` to the webhook; return why it could not be sent, '' when it was."""
    request = urllib.request.Request(
        notify.webhook,
        data=body(event),
        headers={"Content-Type": "application/json", "User-Agent": "lumitui"},
    )
    # What is meant for this machine goes through no proxy.
    direct = [urllib.request.ProxyHandler({})] if notify.webhook.startswith("http:") else []
    watched = _Watched()
    opener = urllib.request.build_opener(_NoRedirect, watched, *direct)
    # The time limit of a socket begins anew with each byte.
    guard = threading.Timer(SECONDS, watched.cut)
    guard.daemon = True
    guard.start()
    reason = ""
    try:
        opener.open(request, timeout=SECONDS).close()
    except (OSError, ValueError, HTTPException) as error:
        # The address may hold a token: only its host is named.
        reason = f"{error.code}" if isinstance(error, urllib.error.HTTPError) else ""
        reason = reason or str(getattr(error, "reason", type(error).__name__))
    finally:
        guard.cancel()
    if watched.late:  # http.client takes an answer that is cut for a whole one
        reason = f"no answer within {SECONDS:g} s"
    return (
        f"The webhook at {notify.webhook_host} failed: {log_line(reason)[:80]}." if reason else ""
    )


class _Watched(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    """Opens connections that can be cut."""

    def __init__(self) -> None:
        super().__init__()
        self.late = False
        self._made: list[HTTPConnection] = []

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        """Open a connection, and keep it."""
        return self.do_open(self._kept(HTTPConnection), req)

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        """Open an encrypted connection, and keep it."""
        return self.do_open(self._kept(HTTPSConnection), req)

    def _kept(self, kind: type[HTTPConnection]) -> Callable[..., HTTPConnection]:
        def make(*given: Any, **named: Any) -> HTTPConnection:
            self._made.append(kind(*given, **named))
            return self._made[-1]

        return make

    def cut(self) -> None:
        """End the connections, which have had their time."""
        self.late = True
        for connection in self._made:
            with suppress(OSError, AttributeError):  # it has ended, or not begun
                connection.sock.shutdown(socket.SHUT_RDWR)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Another address than the one that the user wrote gets nothing."""

    def redirect_request(self, *given: object, **named: object) -> None:
        """Follow no redirect; the answer is an error then."""
