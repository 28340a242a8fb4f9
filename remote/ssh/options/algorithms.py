"""The algorithms of a connection: those that the configuration allows and paramiko has."""

import fnmatch
from collections.abc import Sequence

from paramiko import Transport
from paramiko.kex_curve25519 import KexCurve25519

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.config import Algorithms
from lumitui.remote.ssh.options.openssh import Table, defaults

# One AES-GCM call does the work of cipher and HMAC, which paramiko runs in Python.
GCM = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")
"""Ciphers that need no MAC."""
# RFC 8731 gave the method this name; paramiko has only its older one, `...@libssh.org`.
MORE_KEX = {"curve25519-sha256": KexCurve25519} if KexCurve25519.is_available() else {}
"""Key exchanges that paramiko has under another name."""
# paramiko's algorithms, which it publishes only for an open connection.
_OURS: dict[str, tuple[str, ...]] = {
    keyword: getattr(Transport, attribute)
    for keyword, attribute in (
        ("Ciphers", "_preferred_ciphers"),
        ("MACs", "_preferred_macs"),
        ("KexAlgorithms", "_preferred_kex"),
        ("HostKeyAlgorithms", "_preferred_keys"),
    )
}
_OURS["KexAlgorithms"] = (*MORE_KEX, *_OURS["KexAlgorithms"])


def algorithms(host: str, table: Table) -> Algorithms:
    """Return the algorithms for `host`; LinkError if paramiko has none of those allowed."""
    usable = {
        keyword: tuple(name for name in dict.fromkeys(_listed(keyword, table)) if name in ours)
        for keyword, ours in _OURS.items()
    }
    with_gcm = tuple(name for name in usable["Ciphers"] if name in GCM)
    if table.values.get("ciphers") == defaults().get("ciphers"):  # the user has not set an order
        usable["Ciphers"] = tuple(dict.fromkeys((*with_gcm, *usable["Ciphers"])))
    for keyword, names in usable.items():
        if not names and not (keyword == "MACs" and with_gcm):
            raise LinkError(
                f"The ssh configuration sets {keyword} to "
                f"{table.written(keyword.lower()) or 'an empty list'} for {host}, but lumitui "
                "supports none of these.",
                f"Also allow one of these for this host: {', '.join(_OURS[keyword])}.",
            )
    return Algorithms(
        ciphers=usable["Ciphers"],
        macs=usable["MACs"],
        kex=usable["KexAlgorithms"],
        host_keys=usable["HostKeyAlgorithms"],
        known_first=_in_openssh_s_order(table),
        public_keys=tuple(_listed("PubkeyAcceptedAlgorithms", table)),
        rsa_bits=table.number("requiredrsasize", 1024),
    )


def _in_openssh_s_order(table: Table) -> bool:
    """Return whether HostKeyAlgorithms is OpenSSH's list, perhaps with names removed or added.

    Then OpenSSH first requests the types of the host's known keys; it uses a list in the user's own
    order unchanged (`ssh_kex2` in sshconnect2.c).
    """
    names = _listed("HostKeyAlgorithms", table)
    kept = [name for name in _own("HostKeyAlgorithms") if name in names]
    return names[: len(kept)] == kept


def _own(keyword: str) -> list[str]:
    return defaults()[keyword.lower()][0].split(",")


def _listed(keyword: str, table: Table) -> list[str]:
    """Return the names that an option allows; for two options OpenSSH prints patterns.

    An empty list, the result of `-*`, allows nothing.
    """
    words = list(filter(None, (table.written(keyword.lower()) or "").split(",")))
    if any(set(word) & set("*?!") for word in words):
        return [name for name in _own(keyword) if _matches(name, words)]
    return words


def _matches(name: str, patterns: Sequence[str]) -> bool:
    """Return whether a list of patterns matches `name`; any pattern with `!` excludes it."""
    if any(p.startswith("!") and fnmatch.fnmatchcase(name, p[1:]) for p in patterns):
        return False
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
