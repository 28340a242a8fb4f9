"""Who may talk to the server: this machine's browser, with the address that the person was given.

A server on 127.0.0.1 can be reached by every user of the machine, and by every page that the
person's browser shows. Other users lack the token. Other pages lack it, too, and their requests
name another Origin, or another Host where a page's name was pointed at 127.0.0.1 (DNS rebinding).
"""

import secrets
from collections.abc import Mapping

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


class Gate:
    """The token of one server, and the checks of each request."""

    def __init__(self, port: int) -> None:
        """Make a token for the server on `port` of this machine."""
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._token, self._session = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        # A browser sends a cookie to every port of a host: two servers need two names.
        self.cookie = f"lumitui-{port}"
        self.address = f"http://127.0.0.1:{port}/?token={self._token}"
        """What the person opens."""

    @property
    def session(self) -> str:
        """The value of the cookie, which replaces the token after the first request."""
        return self._session

    def fault(self, headers: Mapping[str, str], *, page: bool) -> str:
        """Return why a request is refused before anybody asks who sent it; '' when it is not.

        Only a `page` may be opened without an Origin: browsers send none when a person follows an
        address, and always one with a WebSocket.
        """
        host, origin = headers.get("Host", ""), headers.get("Origin")
        if host not in self._hosts:
            return "This is not the name of this server."
        if origin != f"http://{host}" and not (page and origin is None):
            return "Another page asked."
        if headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and not page:
            return "Another page asked."
        return ""

    def has_token(self, token: str) -> bool:
        """Return whether an address has the token."""
        return secrets.compare_digest(token.encode(), self._token.encode())

    def has_session(self, cookie: str) -> bool:
        """Return whether a cookie is that of this server."""
        return secrets.compare_digest(cookie.encode(), self._session.encode())
