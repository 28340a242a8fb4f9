"""Which algorithms a connection may use: what the configuration allows, of what paramiko has."""

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
# RFC 8731 gave the method this name; paramiko knows its older one, `...@libssh.org`, only.
MORE_KEX = {"curve25519-sha256": KexCurve25519} if KexCurve25519.is_available() else {}
"""Key exchanges that paramiko has under another name."""
# What paramiko has; it publishes this only of a connection that is open.
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
    """Return the algorithms for `host`.

    Raises:
        LinkError: the configuration allows none of those that paramiko has.
    """
    found = {
        keyword: tuple(name for name in dict.fromkeys(_listed(keyword, table)) if name in ours)
        for keyword, ours in _OURS.items()
    }
    with_gcm = tuple(name for name in found["Ciphers"] if name in GCM)
    if _is_usual("Ciphers", table):  # the user wants no other order
        found["Ciphers"] = tuple(dict.fromkeys((*with_gcm, *found["Ciphers"])))
    for keyword, names in found.items():
        if not names and not (keyword == "MACs" and with_gcm):
            raise LinkError(
                f"The ssh configuration sets {keyword} to "
                f"{table.written(keyword.lower()) or 'an empty list'} for {host}, and lumitui has "
                "none of these.",
                f"Also allow one of these for this host: {', '.join(_OURS[keyword])}.",
            )
    return Algorithms(
        ciphers=found["Ciphers"],
        macs=found["MACs"],
        kex=found["KexAlgorithms"],
        host_keys=found["HostKeyAlgorithms"],
        known_first=_in_openssh_s_order(table),
        public_keys=tuple(_listed("PubkeyAcceptedAlgorithms", table)),
        rsa_bits=table.number("requiredrsasize", 1024),
    )


def _in_openssh_s_order(table: Table) -> bool:
    """Whether HostKeyAlgorithms is OpenSSH's list, perhaps with names left out or added.

    Then OpenSSH requests the types first that it knows of the host; a list in an order of the
    user's own is used as it is (`ssh_kex2` in sshconnect2.c).
    """
    given = _listed("HostKeyAlgorithms", table)
    kept = [name for name in _own("HostKeyAlgorithms") if name in given]
    return given[: len(kept)] == kept


def _is_usual(keyword: str, table: Table) -> bool:
    return table.values.get(keyword.lower()) == defaults().get(keyword.lower())


def _own(keyword: str) -> list[str]:
    return defaults()[keyword.lower()][0].split(",")


def _listed(keyword: str, table: Table) -> list[str]:
    """Return the names that an option allows; in two of them OpenSSH leaves patterns.

    An empty list, which is what `-*` leaves, allows nothing.
    """
    words = list(filter(None, (table.written(keyword.lower()) or "").split(",")))
    if any(set(word) & set("*?!") for word in words):
        return [name for name in _own(keyword) if _matches(name, words)]
    return words


def _matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a list of patterns has `name`; one with `!` leaves it out, wherever it stands."""
    if any(p.startswith("!") and fnmatch.fnmatchcase(name, p[1:]) for p in patterns):
        return False
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
