"""Notifications outside the TUI: terminal escape sequences and a webhook.

OSC 9 is iTerm2's (iterm2.com/documentation-escape-codes.html), which kitty, WezTerm, Ghostty and
Windows Terminal know too; OSC 777 is rxvt's, which foot and VTE know.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lumitui.remote.site.safe_text import log_line

if TYPE_CHECKING:
    # The settings import pydantic, which a refresh does not need.
    from lumitui.app.follow.notifications.events import Event
    from lumitui.app.follow.notifications.notification_settings import Notify, Terminal

SECONDS = 10.0
"""Timeout of a webhook request, in seconds."""
_LONGEST = 200


def sequence(words: str, how: "Terminal", environ: Mapping[str, str]) -> str:
    """Return the escape sequence that makes a terminal show `words`; '' if it is off."""
    text = log_line(words)[:_LONGEST].replace(";", ",")
    # The name comes first, because ConEmu gives OSC 9 with a leading number another meaning.
    match how:
        case "off":
            return ""
        case "osc777":
            code = f"\x1b]777;notify;lumitui;{text}\x1b\\"
        case _:
            code = f"\x1b]9;lumitui: {text}\x1b\\"
    if "TMUX" in environ:  # tmux(1), allow-passthrough
        return "\x1bPtmux;" + code.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    return code


def body(event: "Event") -> bytes:
    """Return the webhook's body: one small JSON object, with `text` as chat programs expect it."""
    fields = {
        "text": event.sentence,
        "run": event.run_id,
        "site": event.site,
        "state": str(event.state),
        "event": str(event.happened),
    }
    return json.dumps(fields).encode()


def post(event: "Event", notify: "Notify") -> str:
    """Send `event` to the webhook; return the error, or '' on success."""
    return _send(notify.webhook, body(event), "application/json")


def post_line(address: str, text: str, *, as_json: bool) -> str:
    """Send one line in the format of templates/job/notify.sh; return like `post`."""
    if as_json:
        return _send(address, json.dumps({"text": text}).encode(), "application/json")
    return _send(address, text.encode(), "text/plain")


def _send(address: str, data: bytes, kind: str) -> str:
    request = urllib.request.Request(
        address, data=data, headers={"Content-Type": kind, "User-Agent": "lumitui"}
    )
    # Requests to this machine bypass proxies.
    direct = [urllib.request.ProxyHandler({})] if address.startswith("http:") else []
    opener = urllib.request.build_opener(_NoRedirect, *direct)
    try:
        opener.open(request, timeout=SECONDS).close()
    except (OSError, ValueError, HTTPException) as error:
        # The address may contain a token, so messages show only its host.
        reason = f"{error.code}" if isinstance(error, urllib.error.HTTPError) else ""
        reason = reason or str(getattr(error, "reason", type(error).__name__))
        host = urlsplit(address).hostname or ""
        return f"The webhook at {host} failed: {log_line(reason)[:80]}."
    return ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: sends nothing to an address that the user did not enter."""

    def redirect_request(self, *values: object, **named: object) -> None:
        """Follow no redirect, which makes it an error."""
