"""Host keys that are revoked: lists of keys, and KRLs as `ssh-keygen -k` makes them.

Format: openssh-portable, PROTOCOL.krl. As in OpenSSH, a list that is missing or cannot be
understood revokes every key: it may be the one that matters.
"""

import hashlib
import struct
from collections.abc import Sequence
from pathlib import Path

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.trust.key_lines import decoded, numbered_lines

_MAGIC = b"SSHKRL\n\0"
_MOST_BYTES = 32 << 20
_CERTIFICATES, _KEYS, _SHA1, _SHA256, _EXTENSION = 1, 2, 3, 5, 255
_OF_CERTIFICATES, _EXTENSION_OF_CERTIFICATES = (0x20, 0x21, 0x22, 0x23), 0x39


def check_revoked(files: Sequence[Path], name: str, blob: bytes, fingerprint: str) -> None:
    """Return if no file of `files` revokes the host key `blob` of the host `name`.

    Raises:
        LinkError: one does, or one cannot be read.
    """
    for path in files:
        try:
            revoked = _revokes(path, blob)
        except (OSError, ValueError, struct.error) as error:
            why = getattr(error, "strerror", None) or "it is neither a list of keys nor a KRL"
            raise LinkError(
                f"The list of revoked host keys {path} cannot be read: {why}.",
                "Correct the file or RevokedHostKeys in the ssh configuration; without the list "
                "no host key is trusted.",
            ) from error
        if revoked:
            raise LinkError(
                f"The host key of {name}, {fingerprint}, is revoked in {path}.",
                "Do not log in; ask the site's support.",
            )


def _revokes(path: Path, blob: bytes) -> bool:
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError("too large")
    return _in_krl(data, blob) if data.startswith(_MAGIC) else _in_list(data, blob)


def _in_list(data: bytes, blob: bytes) -> bool:
    """Read a list of public keys, one a line.

    As in OpenSSH, a line that is no key makes the list unusable, unless the key stands before it.
    """
    for _, words in numbered_lines(data):
        key = decoded(words[1] if len(words) > 1 else b"")
        kind, _ = _string(key)
        if kind != words[0]:
            raise ValueError("not a key")
        if key == blob:
            return True
    return False


def _in_krl(data: bytes, blob: bytes) -> bool:
    """Read a KRL to its end, so that one which is damaged or cut short revokes every key."""
    rest = data[len(_MAGIC) :]
    if struct.unpack_from(">I", rest) != (1,):
        raise ValueError("unknown version of the format")
    struct.unpack_from(">QQQ", rest, 4)  # number, date, flags
    _, rest = _string(rest[4 + 3 * 8 :])  # reserved
    _, rest = _string(rest)  # comment
    forms = {
        _KEYS: blob,
        _SHA1: hashlib.sha1(blob, usedforsecurity=False).digest(),
        _SHA256: hashlib.sha256(blob).digest(),
    }
    found = False
    while rest:
        kind, (section, rest) = rest[0], _string(rest[1:])
        if kind == _CERTIFICATES:
            _check_certificates(section)
        elif kind == _EXTENSION:
            _check_extension(section)
        elif kind not in forms:
            raise ValueError("unknown section")
        while kind in forms and section:
            entry, section = _string(section)
            if kind != _KEYS and len(entry) != len(forms[kind]):
                raise ValueError("a hash of another length")
            found = found or entry == forms[kind]
    return found


def _check_certificates(section: bytes) -> None:
    """Return if a section about certificates is complete; lumitui trusts no host's certificate."""
    _, rest = _string(section)  # the authority
    _, rest = _string(rest)  # reserved
    while rest:
        kind, (part, rest) = rest[0], _string(rest[1:])
        if kind == _EXTENSION_OF_CERTIFICATES:
            _check_extension(part)
        elif kind not in _OF_CERTIFICATES:
            raise ValueError("unknown section")


def _check_extension(section: bytes) -> None:
    """Return if an extension may be passed over: OpenSSH knows none either."""
    _, rest = _string(section)
    if not rest or rest[0]:
        raise ValueError("an extension that must be understood")


def _string(data: bytes) -> tuple[bytes, bytes]:
    """Return the first string of `data` and what follows it."""
    (size,) = struct.unpack_from(">I", data)
    if len(data) < 4 + size:
        raise ValueError("ends too early")
    return data[4 : 4 + size], data[4 + size :]
