"""What an OpenSSH user certificate says of itself: its users and when it is valid. Pure.

Format: openssh-portable, PROTOCOL.certkeys. Checking the signature is left to the server.

cryptography 50 has `load_ssh_public_identity`, but it reads neither the certificates of hardware
keys (`sk-`: UnsupportedAlgorithm) nor those that an authority on a hardware key signed (ValueError:
flags and a counter follow such a signature). Both need what is here, and nothing needs more.
"""

import struct
import time
from dataclasses import dataclass

# How many fields the key itself has, between the nonce and the serial number, by its type.
_KEY_FIELDS = {
    "ssh-rsa": 2,
    "ssh-dss": 4,
    "ssh-ed25519": 1,
    "ecdsa-sha2-nistp256": 2,
    "ecdsa-sha2-nistp384": 2,
    "ecdsa-sha2-nistp521": 2,
    "sk-ssh-ed25519": 2,
    "sk-ecdsa-sha2-nistp256": 3,
}
_SUFFIX = "-cert-v01@openssh.com"
_FOREVER = 2**64 - 1


@dataclass(frozen=True)
class Certificate:
    """Who may use a key, and when."""

    names: tuple[str, ...]
    """The users that it is for; empty: any."""
    after: int
    """Seconds since the epoch when it becomes valid."""
    before: int
    """Seconds since the epoch when it expires."""

    def objection(self, user: str, now: float) -> str:
        """Return why a server will refuse it, as the end of a sentence; empty: no reason seen."""
        if now >= self.before:
            return f"expired on {_clock(self.before)}"
        if now < self.after:
            return f"is valid only from {_clock(self.after)} on"
        if self.names and user not in self.names:
            return f"is for {', '.join(self.names)}, not for {user}"
        return ""


def read_certificate(blob: bytes) -> Certificate | None:
    """Return what the certificate in `blob` says; None: it is none, or cannot be read."""
    try:
        kind, rest = _text(blob)
        fields = _KEY_FIELDS[kind.decode().removesuffix(_SUFFIX)]
        if not kind.endswith(_SUFFIX.encode()):
            return None
        for _ in range(1 + fields):  # the nonce, then the key
            _, rest = _text(rest)
        _, rest = _text(rest[8 + 4 :])  # serial number, type; its name for the log
        packed, rest = _text(rest)
        after, before = struct.unpack_from(">QQ", rest)
        names = []
        while packed:
            name, packed = _text(packed)
            names.append(name.decode("utf-8", "replace"))
    except (KeyError, ValueError, struct.error):
        return None
    return Certificate(tuple(names), after, before)


def _text(data: bytes) -> tuple[bytes, bytes]:
    """Return the first string of `data` and what follows it."""
    (size,) = struct.unpack_from(">I", data)
    if len(data) < 4 + size:
        raise ValueError("the certificate ends too early")
    return data[4 : 4 + size], data[4 + size :]


def _clock(moment: int) -> str:
    if moment == _FOREVER:
        return "no day"
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))
    except (OverflowError, OSError, ValueError):
        return f"second {moment}"
