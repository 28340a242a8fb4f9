"""Addresses for POST notifications, which no one on the way may read."""

import ipaddress
from urllib.parse import urlsplit


def check_webhook(value: str) -> None:
    """Raise ValueError, without the address, unless it is https, or http on this machine."""
    # urlsplit drops line ends, and other programs end a host at `\\` or a word at a quote.
    if not value.isascii() or not value.isprintable() or set(value) & set(' \\"<>'):
        raise ValueError(
            "it has a character that is invalid in an address; write https://HOST/PATH"
        )
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if not host or parts.scheme not in ("https", "http"):
        raise ValueError("it is not an address; write https://HOST/PATH")
    if "@" in parts.netloc:
        raise ValueError(
            "it has a user name or a password before the host; write https://HOST/PATH"
        )
    if parts.scheme == "http" and not _is_loopback(host):
        raise ValueError("only https is allowed, so that nobody can intercept it")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
