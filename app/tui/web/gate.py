"""Who may talk to the server: this machine's browser, with the address that the user was given.

A server on 127.0.0.1 can be reached by every user of the machine, and by every page that the
user's browser shows. Other users lack the token. Other pages lack it, too, and their requests
name another Origin, or another Host where a page's name was pointed at 127.0.0.1 (DNS rebinding).

There is no cookie: a browser sends one to every port of a host, so to other users' servers, too.
The token is behind the address's `#`, which no browser sends. The page exchanges it, once, for the
session, which it keeps for its own tab and origin (sessionStorage) and names to the WebSocket.
"""

import secrets
from collections.abc import Callable, Mapping

SAFE_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self';"
        " img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Sent with every answer. `unsafe-inline`: the terminal in the page sets the style of its cells."""


PROTOCOL = "lumitui"
"""The WebSocket's subprotocol; the session is offered beside it, and never selected."""


class Gate:
    """The tokens of one server, and the checks of each request."""

    def __init__(self, port: int, used: Callable[[str], None] = lambda address: None) -> None:
        """Make a token for the server on `port`; `used` gets the next address after each one."""
        # `localhost` is a name for ::1, too, where the same port may be somebody else's.
        self._host = f"127.0.0.1:{port}"
        self._session = secrets.token_urlsafe(32)
        self._used = used
        self._renew()

    def _renew(self) -> None:
        self._token = secrets.token_urlsafe(32)
        self.address = f"http://{self._host}/#{self._token}"
        """What the user opens, in one tab."""

    def fault(self, headers: Mapping[str, str], *, page: bool) -> str:
        """Return why a request is refused before anybody asks who sent it; '' when it is not.

        Only a `page` may be opened without an Origin: browsers send none when a user follows an
        address, and always one with a WebSocket or a POST.
        """
        host, origin = headers.get("Host", ""), headers.get("Origin")
        if host != self._host:
            return "This is not the name of this server."
        if origin != f"http://{host}" and not (page and origin is None):
            return "Another page asked."
        if headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and not page:
            return "Another page asked."
        return ""

    def exchange(self, token: bytes) -> str:
        """Return the session for the token, which ends with that; '' for any other."""
        if not secrets.compare_digest(token, self._token.encode()):
            return ""
        self._renew()
        self._used(self.address)
        return self._session

    def end_session(self) -> None:
        """Let nobody in with the session any more: a page that floods would come again and again.

        The user opens a new address; tabs that are open stay.
        """
        self._session = secrets.token_urlsafe(32)
        self._renew()
        self._used(self.address)

    def has_session(self, protocols: str) -> bool:
        """Return whether the subprotocols that a WebSocket offers have the session."""
        offered = [name.strip().encode() for name in protocols.split(",")]
        return any(secrets.compare_digest(name, self._session.encode()) for name in offered)
