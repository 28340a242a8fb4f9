"""Which algorithms a connection may use: what the configuration allows, of what paramiko has."""

import fnmatch
from collections.abc import Sequence

from paramiko import Transport
from paramiko.kex_curve25519 import KexCurve25519

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.config import Algorithms
from lumitui.remote.ssh.options.option_table import Table
from lumitui.remote.ssh.options.rows import ROWS

# One AES-GCM call does the work of cipher and HMAC, which paramiko runs in Python.
GCM = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com")
"""Ciphers that need no MAC."""
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
# RFC 8731 gave the method this name; paramiko knows its older one, `...@libssh.org`, only.
MORE_KEX = {"curve25519-sha256": KexCurve25519}
"""Key exchanges that paramiko has under another name."""
if KexCurve25519.is_available():
    _OURS["KexAlgorithms"] = (*MORE_KEX, *_OURS["KexAlgorithms"])


def algorithms(host: str, table: Table) -> Algorithms:
    """Return the algorithms for `host`.

    Raises:
        LinkError: the configuration allows none of those that paramiko has.
    """

    def common(keyword: str, ours: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name in _listed(keyword, table) if name in ours))

    ciphers, macs = common("Ciphers", _OURS["Ciphers"]), common("MACs", _OURS["MACs"])
    with_gcm = tuple(name for name in ciphers if name in GCM)
    if _is_usual("Ciphers", table):
        ciphers = (*with_gcm, *(name for name in ciphers if name not in GCM))
    found = {
        "Ciphers": ciphers,
        "MACs": macs,
        **{word: common(word, _OURS[word]) for word in ("KexAlgorithms", "HostKeyAlgorithms")},
    }
    for keyword, names in found.items():
        if not names and not (keyword == "MACs" and with_gcm):
            raise LinkError(
                f"The ssh configuration sets {keyword} to "
                f"{table.written(keyword.lower()) or 'an empty list'} for {host}, and lumitui has "
                "none of these.",
                f"Allow one of these, too, for this host: {', '.join(_OURS[keyword])}.",
            )
    bits = table.one("requiredrsasize")
    return Algorithms(
        ciphers=found["Ciphers"],
        macs=found["MACs"],
        kex=found["KexAlgorithms"],
        host_keys=found["HostKeyAlgorithms"],
        known_first=_in_openssh_s_order(table),
        public_keys=tuple(_listed("PubkeyAcceptedAlgorithms", table)),
        rsa_bits=int(bits) if bits.isdecimal() else 1024,
    )


def _in_openssh_s_order(table: Table) -> bool:
    """Whether HostKeyAlgorithms is OpenSSH's list, perhaps with names left out or added.

    Then OpenSSH requests the types first that it knows of the host; a list in an order of the
    person's own is used as it is (`ssh_kex2` in sshconnect2.c).
    """
    given = _listed("HostKeyAlgorithms", table)
    own = ROWS["HostKeyAlgorithms"].default.split(",")
    kept = [name for name in own if name in given]
    if given[: len(kept)] == kept:
        return True
    return _is_usual("HostKeyAlgorithms", table)


def _is_usual(keyword: str, table: Table) -> bool:
    """Whether a list is OpenSSH's own: the person wants no other order."""
    given = table.written(keyword.lower())
    usual = table.defaults().get(keyword.lower(), ())  # other versions have another order
    return given in (None, ROWS[keyword].default, *usual)


def _listed(keyword: str, table: Table) -> list[str]:
    """Return the names that an option allows; `+`, `-`, `^` change OpenSSH's own list.

    `ssh -G` prints the list that results; the signs come where paramiko reads the configuration.
    Patterns come from both. An empty list, which is what `-*` leaves, allows nothing.
    """
    given, own = table.written(keyword.lower()), ROWS[keyword].default.split(",")
    if given is None:
        return own
    text = given.strip(" \t")
    sign, names = (text[0], text[1:]) if text[:1] in ("+", "-", "^") else ("", text)
    words = [word for word in names.split(",") if word]
    if sign == "-":
        return [name for name in own if not _matches(name, words)]
    if any(set(word) & set("*?!") for word in words):
        words = [name for name in own if _matches(name, words)]
    return {"": words, "+": [*own, *words], "^": [*words, *own]}[sign]


def _matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a list of patterns has `name`; one with `!` leaves it out, wherever it stands."""
    if any(p.startswith("!") and fnmatch.fnmatchcase(name, p[1:]) for p in patterns):
        return False
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
